"""`OciModel`: the kernel's Model protocol over OCI Generative AI, in whichever form a model speaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, TypeVar

from locus.core.errors import ConfigError
from locus.models import ModelRequest, ModelResponse, OnChunk
from locus.plugin import Lazy
from locus_kit.origins import Origin
from locus_plugin_oci.credentials import Credentials
from locus_plugin_oci.errors import CredentialsUnusable
from locus_plugin_oci.names import form_of
from locus_plugin_oci.regions import domain_of, is_region
from locus_plugin_oci.settings import OciSettings
from locus_plugin_oci.signing import sign
from locus_wire import output_as_tool
from locus_wire.client import Client, Endpoint, Outgoing
from locus_wire.errors import KeyMissing
from locus_wire.keys import Key
from locus_wire.options import Options

# A model speaks one of the forms, and the others need not be loaded.
if TYPE_CHECKING:
    from locus_plugin_oci import cohere, generic, native
    from locus_wire import chat_completions, responses
else:
    chat_completions, responses = Lazy("locus_wire.chat_completions"), Lazy("locus_wire.responses")
    native, generic = Lazy("locus_plugin_oci.native"), Lazy("locus_plugin_oci.generic")
    cohere = Lazy("locus_plugin_oci.cohere")

__all__ = ["OciModel", "make"]

T = TypeVar("T")


def make(name: str, settings: OciSettings | None = None) -> OciModel:
    """The model behind ``oci:NAME``; nothing is read or asked before the first request.

    Args:
        name: ``"openai.gpt-5.5"``, the OCID of a model, or the OCID of a dedicated endpoint.
        settings: None = the defaults.

    Raises:
        ConfigError: the name is missing, or the settings do not fit together.
    """
    return OciModel(name, settings or OciSettings())


class OciModel:
    """A model of OCI Generative AI. One instance serves any number of runs, threads and event loops at a time.

    Args:
        name: as the service calls it.
        settings: the credentials, the region, and options.
    """

    def __init__(self, name: str, settings: OciSettings) -> None:
        if not name.strip():
            raise ConfigError("model 'oci:' has no model name; write 'oci:NAME', such as 'oci:openai.gpt-5.5'")
        self._model, self._settings = name, settings
        self.form = form_of(name, settings.api)
        if settings.api_key is not None and self.form not in ("chat", "responses"):
            raise ConfigError(
                f"oci:{name} is asked in the service's own form, which takes signatures and no api_key; "
                "leave api_key out, or set api = 'chat'"
            )
        self._credentials = Credentials(settings)
        self._made: Client | None = None
        self._options = Options(
            provider="oci",
            model=name,
            # The strict form is OpenAI's; the service passes it on to the model's server.
            strict=name.startswith("openai."),
            max_tokens="max_completion_tokens" if name.startswith("openai.") else "max_tokens",
        )

    @property
    def name(self) -> str:
        """``"oci:"`` and what was asked for."""
        return f"oci:{self._model}"

    def __repr__(self) -> str:
        return f"OciModel({self._model!r}, form={self.form!r})"

    def session(self) -> AbstractAsyncContextManager[object]:
        """Keeps connections open while it is entered."""
        try:
            return self._client().session()
        except KeyMissing:
            return nullcontext()  # the first request reports it

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        """Answer one request; see `locus.models.Model.complete`.

        Raises:
            ModelError: see `locus_wire.errors`; `KeyMissing` if no usable credentials were found.
            InputError: the request holds what the model cannot be sent.
        """
        client = self._client()
        origin = Origin.of(f"oci.{self.form}", client.endpoint.base_url, self._model)
        readable, notes = origin.read(request)
        return origin.sign(await self._ask(client, readable, on_chunk), notes)

    async def _ask(self, client: Client, request: ModelRequest, on_chunk: OnChunk | None) -> ModelResponse:
        if self.form == "chat":
            return await chat_completions.ask(client, "/chat/completions", request, self._options, on_chunk)
        if self.form == "responses":
            return await responses.ask(client, "/responses", request, self._options, on_chunk)
        target = native.Target(model=self._model, compartment=self._compartment())
        if self.form == "generic":
            return await native.ask(client, request, target, generic.Generic(), on_chunk)
        if request.output is not None and request.tools:
            # These models follow a schema or use tools. They cannot be made to call one, so the loop looks after them.
            forced = output_as_tool(request, force=False)
            return forced.read(await native.ask(client, forced.request, target, cohere.Cohere(), on_chunk))
        return await native.ask(client, request, target, cohere.Cohere(), on_chunk)

    # -- credentials and address -----------------------------------------------------------------------

    def _client(self) -> Client:
        if self._made is None:
            self._made = Client(self._endpoint())
        return self._made

    def _endpoint(self) -> Endpoint:
        own = self._settings
        base = own.endpoint or self._address()
        headers: dict[str, str] = {}
        if self.form in ("chat", "responses"):
            base = f"{base.rstrip('/')}/openai/v1" if not base.rstrip("/").endswith("/v1") else base
            if own.api_key is None or own.compartment:
                # The older name beside the newer one, as Oracle's own library sends them.
                headers = dict.fromkeys(("opc-compartment-id", "compartmentid"), self._compartment())
            if own.project:
                headers["openai-project"] = own.project
        return Endpoint(
            provider="oci",
            base_url=base,
            headers=headers,
            sign=self._sign
            if own.api_key is None
            else Endpoint.with_key(Key(provider="oci", given=own.api_key), base).sign,
            remedy=f"look at {self._source()}, the policies of its owner, and the clock of this machine",
            timeout=own.timeout,
            connect_timeout=own.connect_timeout,
            silence=own.silence,
            connections=own.connections,
        )

    def _source(self) -> str:
        if self._settings.api_key is not None:
            return "api_key in [plugins.oci]"
        return f"the profile {self._settings.profile!r}"

    def _address(self) -> str:
        own = self._settings
        region = own.region if own.api_key is not None else self._look_up(lambda: self._credentials.region)
        if region is None or not is_region(region):
            raise KeyMissing(
                f"oci: the region is {region!r}; write region = 'us-chicago-1' in [plugins.oci], or into the profile",
                provider="oci",
                retryable=False,
            )
        return f"https://inference.generativeai.{region}.oci.{domain_of(region)}"

    def _compartment(self) -> str:
        found = self._look_up(lambda: self._credentials.compartment)
        if not found:
            raise KeyMissing(
                "oci: no compartment is set; write compartment = 'ocid1.compartment...' in "
                "[plugins.oci], or set OCI_COMPARTMENT_ID",
                provider="oci",
                retryable=False,
            )
        return found

    def _sign(self, outgoing: Outgoing) -> Mapping[str, str]:
        identity = self._look_up(self._credentials.identity)
        body = outgoing.body if outgoing.method in ("POST", "PUT", "PATCH") else None
        media_type = outgoing.headers.get("content-type", "application/json")
        return sign(identity, outgoing.method, outgoing.url, body=body, media_type=media_type)

    def _look_up(self, find: Callable[[], T]) -> T:
        try:
            return find()
        except CredentialsUnusable as e:
            raise KeyMissing(f"oci cannot sign a request: {e}", provider="oci", retryable=False) from e
