"""Which server it is, and therefore whose key it gets and what it takes.

A key of the environment is sent to the one whose key it is: ``OPENAI_API_KEY`` to OpenAI, or to the address that
``OPENAI_BASE_URL`` names beside it, and to no address that only a configuration file names; nor in the clear.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlsplit

from attrs import frozen

from locus_plugin_openai.settings import OpenAISettings
from locus_wire.client import Endpoint
from locus_wire.keys import Key

__all__ = ["OPENAI", "Server", "server_of"]

OPENAI = "https://api.openai.com/v1"

_AZURE = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")

#: Whose key is in which variable, by host.
_KEYS = {
    "api.openai.com": "OPENAI_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
    "api.deepseek.com": "DEEPSEEK_API_KEY",
    "api.groq.com": "GROQ_API_KEY",
    "api.mistral.ai": "MISTRAL_API_KEY",
    "api.together.xyz": "TOGETHER_API_KEY",
    "api.x.ai": "XAI_API_KEY",
}


@frozen(kw_only=True)
class Server:
    """A server.

    Args:
        endpoint: where it is.
        kind: whose.
        deployments: whether a model is a part of the path (Azure with a version).
    """

    endpoint: Endpoint
    kind: Literal["openai", "azure", "other"]
    deployments: bool = False


def server_of(settings: OpenAISettings, environ: Mapping[str, str] | None = None) -> Server:
    """The server that settings mean.

    Args:
        settings: the plugin's.
        environ: the process's environment when None.

    Raises:
        ConfigError: its address is invalid.
    """
    known = os.environ if environ is None else environ
    named = known.get("OPENAI_BASE_URL", "").strip()
    url = settings.base_url or named or OPENAI
    parts = urlsplit(url) if "://" in url else urlsplit("")
    host = parts.hostname or ""
    azure = host.endswith(_AZURE) or settings.api_version is not None
    deployments = False
    if azure and parts.path in ("", "/"):
        deployments = settings.api_version is not None
        url = url.rstrip("/") + ("/openai" if deployments else "/openai/v1")
    variables = _variables(parts.scheme, host, named=bool(named) and settings.base_url in (None, named))
    key = Key(provider="openai", given=settings.api_key, env=variables, needed=bool(variables))
    endpoint = Endpoint.with_key(key, url, header="api-key", scheme="") if azure else Endpoint.with_key(key, url)
    headers = {"openai-organization": settings.organization, "openai-project": settings.project}
    endpoint = endpoint.with_options(
        headers={**{name: value for name, value in headers.items() if value}, **settings.headers},
        query={"api-version": settings.api_version} if settings.api_version else {},
        timeout=settings.timeout,
        connect_timeout=settings.connect_timeout,
        silence=settings.silence,
        connections=settings.connections,
    )
    kind: Literal["openai", "azure", "other"] = "azure" if azure else "openai" if host == "api.openai.com" else "other"
    return Server(endpoint=endpoint, kind=kind, deployments=deployments)


def _variables(scheme: str, host: str, *, named: bool) -> tuple[str, ...]:
    if scheme == "https" and host.endswith(_AZURE):
        return ("AZURE_OPENAI_API_KEY",)
    if scheme == "https" and host in _KEYS:
        return (_KEYS[host],)
    return ("OPENAI_API_KEY",) if named else ()
