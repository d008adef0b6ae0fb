"""The settings of the plugin: the table ``[plugins.oci]``."""

from __future__ import annotations

from typing import Literal

from attrs import Attribute, field, frozen
from attrs.validators import in_

from locus.plugins import Secret
from locus_kit.validators import integer, number, seconds

__all__ = ["Api", "Auth", "OciSettings"]

#: Who signs: found out, a user with an API key, a session of the command line, or a resource of OCI.
Auth = Literal["auto", "api_key", "security_token", "resource_principal", "instance_principal"]

#: How a model is asked; see `locus_plugin_oci.names`.
Api = Literal["auto", "chat", "responses", "generic", "cohere"]

_AUTHS = ("auto", "api_key", "security_token", "resource_principal", "instance_principal")
_APIS = ("auto", "chat", "responses", "generic", "cohere")


def _readable_at_once(_: object, attribute: Attribute[Secret | None], value: Secret | None) -> None:
    if value is not None and value.is_async:
        raise ValueError(f"{attribute.name} must be text or a plain function, got an async one")


@frozen(kw_only=True)
class OciSettings:
    """The credentials, the region, and options of models and stores.

    Args:
        profile: the profile of the configuration file.
        config_file: that file; None = ``~/.oci/config``, or where ``OCI_CONFIG_FILE`` says.
        auth: who signs; ``"auto"`` = the resource that ``OCI_RESOURCE_PRINCIPAL_VERSION`` names, else the profile.
        pass_phrase: of the private key; None = what the profile says.
        api_key: an API key of OCI Generative AI, sent in place of signatures to its OpenAI-compatible address.
        region: such as ``"us-chicago-1"``; None = the profile's, or ``OCI_REGION``.
        compartment: OCID of the compartment that pays; None = ``OCI_COMPARTMENT_ID``, else the tenancy.
        project: OCID of a Generative AI project, which the Responses API may ask for.
        api: how models are asked; ``"auto"`` = by the name of the model.
        endpoint: the address of Generative AI inference; None = the region's.
        timeout: seconds for one call of a model.
        connect_timeout: seconds to make a connection.
        silence: seconds without a byte after which an answer is given up.
        connections: the most at a time in one event loop.
        namespace: of Object Storage; None = asked for.
        storage_endpoint: the address of Object Storage; None = the region's.
        lease: seconds, 5 or more, after which a worker without a heartbeat is taken for dead. It writes one
            three times in that time, by a timer.
        storage_timeout: seconds for one request to Object Storage.
        retries: how often a request to Object Storage that failed by the way is sent again.
    """

    profile: str = "DEFAULT"
    config_file: str | None = None
    auth: Auth = field(default="auto", validator=in_(_AUTHS))
    pass_phrase: Secret | None = field(default=None, validator=_readable_at_once)
    api_key: Secret | None = None
    region: str | None = None
    compartment: str | None = None
    project: str | None = None
    api: Api = field(default="auto", validator=in_(_APIS))
    endpoint: str | None = None
    timeout: float = field(default=600.0, validator=seconds)
    connect_timeout: float = field(default=10.0, validator=seconds)
    silence: float = field(default=300.0, validator=seconds)
    connections: int = field(default=64, validator=integer(1))
    namespace: str | None = None
    storage_endpoint: str | None = None
    lease: float = field(default=60.0, validator=number(5, unit="seconds"))  # the service's clock has whole seconds
    storage_timeout: float = field(default=20.0, validator=seconds)
    retries: int = field(default=4, validator=integer(0))
