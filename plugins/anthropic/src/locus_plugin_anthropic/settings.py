"""The settings of the plugin: the table ``[plugins.anthropic]``."""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import urlsplit

from attrs import Attribute, field, frozen

from locus.plugins import Secret, redact
from locus_kit.validators import integer, seconds

__all__ = ["BASE_URL", "KEY", "TOKEN", "AnthropicSettings"]

BASE_URL = "https://api.anthropic.com"

KEY = "ANTHROPIC_API_KEY"
TOKEN = "ANTHROPIC_AUTH_TOKEN"  # noqa: S105  # the name of a variable

#: The least budget that the API takes for thinking.
LEAST_BUDGET = 1024


def _url(_: object, attribute: Attribute[str], value: str) -> None:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{attribute.name} must be a URL like {BASE_URL!r}, without /v1, got {redact(value)!r}")


def _thinking(_: object, attribute: Attribute[Any], value: object) -> None:
    if isinstance(value, int) and (isinstance(value, bool) or value < LEAST_BUDGET):
        raise ValueError(f"{attribute.name} must be a budget of {LEAST_BUDGET} tokens or more, got {value!r}")


@frozen(kw_only=True)
class AnthropicSettings:
    """Where the models are, and how they are asked.

    Args:
        api_key: the key, sent as ``x-api-key``; None = ``ANTHROPIC_API_KEY``, at Anthropic.
        auth_token: a bearer token in place of a key, for gateways; None = ``ANTHROPIC_AUTH_TOKEN``, at Anthropic.
        base_url: the server; a ``/v1`` at its end is understood.
        version: the ``anthropic-version``; None = the newest at Anthropic, ``2023-06-01`` elsewhere.
        betas: names for the header ``anthropic-beta``.
        max_tokens: the most tokens of one answer, thinking included, where the request does not say.
        thinking: ``"adaptive"``, ``"between_tools"``, ``"disabled"``, or a budget in tokens for models that want one;
            None = the model's own way.
        effort: ``"low"``, ``"medium"``, ``"high"``, ``"xhigh"`` or ``"max"``; None = the model's own.
        cache: how long prompt caches live, ``"5m"`` or ``"1h"``; ``"off"`` places no breakpoints.
        parallel_tools: whether one turn may ask for several calls.
        structured: how a structured answer is asked for: ``"native"``, ``"tool"``, or by what the model can.
        timeout: seconds for one call, from its beginning to the end of its answer.
        silence: seconds without a byte from the server before a call is given up.
        connections: the most at a time in one event loop; calls beyond them wait.
    """

    api_key: Secret | None = None
    auth_token: Secret | None = None
    base_url: str = field(default=BASE_URL, validator=_url, repr=lambda url: repr(redact(url)))
    version: str | None = None
    betas: tuple[str, ...] = ()
    max_tokens: int = field(default=32_000, validator=integer(1))
    thinking: Literal["adaptive", "between_tools", "disabled"] | int | None = field(default=None, validator=_thinking)
    effort: str | None = None
    cache: Literal["off", "5m", "1h"] = "5m"
    parallel_tools: bool = True
    structured: Literal["auto", "native", "tool"] = "auto"
    timeout: float = field(default=1200.0, validator=seconds)
    silence: float = field(default=300.0, validator=seconds)
    connections: int = field(default=64, validator=integer(1))

    @property
    def at_anthropic(self) -> bool:
        """Whether the server is Anthropic's own."""
        host = urlsplit(self.base_url).hostname or ""
        return host == "anthropic.com" or host.endswith(".anthropic.com")

    @property
    def variables(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The environment's variables for the key and for the token that may be sent there.

        They are Anthropic's: no address that only a configuration file names gets them, and no network sees them.
        """
        vouched = self.at_anthropic and urlsplit(self.base_url).scheme == "https"
        return ((KEY,), (TOKEN,)) if vouched else ((), ())

    @property
    def api_version(self) -> str:
        """The version that is asked for."""
        return self.version or ("2026-10-21" if self.at_anthropic else "2023-06-01")
