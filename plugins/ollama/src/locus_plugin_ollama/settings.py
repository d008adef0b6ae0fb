"""The settings of the plugin: the table ``[plugins.ollama]``."""

from __future__ import annotations

import math
import re
from typing import Any, Literal

from attrs import Attribute, field, frozen

from locus.core import EMPTY, FrozenDict, freeze
from locus.models import Price
from locus.plugins import Secret
from locus_kit.validators import integer, number, optional, seconds
from locus_wire.thinking import ThinkTags

__all__ = ["OllamaSettings"]

#: A duration as Go reads it.
_DURATION = re.compile(r"[-+]?(0|(\d+\.?\d*|\.\d+)(ns|us|µs|ms|s|m|h))((\d+\.?\d*|\.\d+)(ns|us|µs|ms|s|m|h))*")


def _level(_: object, attribute: Attribute[Any], value: bool | str | None) -> None:  # noqa: FBT001  # as it was set
    if value == "":
        raise ValueError("think must be true, false or a level of the model, such as 'high', got ''")


def _duration(_: object, attribute: Attribute[Any], value: str | float | None) -> None:
    if isinstance(value, str) and not _DURATION.fullmatch(value):
        raise ValueError(f"keep_alive must be seconds or a duration such as '10m' or '1h30m', got {value!r}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"keep_alive must be seconds, negative for ever, got {value!r}")


def _price(_: object, attribute: Attribute[Any], value: Price | None) -> None:
    parts = () if value is None else (value.prompt, value.completion, value.cached, value.cache_write)
    if not all(part is None or 0 <= part < math.inf for part in parts):
        raise ValueError(f"price must be dollars per million tokens, 0 or more, got {value!r}")


@frozen(kw_only=True)
class OllamaSettings:
    """Where the server is and how its models are asked.

    Args:
        base_url: where it is, in any form that ``OLLAMA_HOST`` may have; None = ``OLLAMA_HOST``, else this machine.
        api_key: for hosted servers; None = ``OLLAMA_API_KEY``, which goes to this machine, and over https to ollama.com
            and to where ``OLLAMA_HOST`` says.
        think: whether a thinking model thinks: true, false, or a level such as ``"high"``; None = its own default.
        think_tags: how thoughts are marked in a text, as ``<think>...</think>``: ``"leading"``, at its beginning;
            ``"opened"``, the model's template has written the first tag; ``"off"``, tags are text.
        keep_alive: how long the model stays loaded after an answer: seconds, or text like ``"10m"``; a negative one
            means for ever; None = as the server is set.
        num_ctx: tokens of the context window; None = as the server is set, which may be as few as 4,096.
        max_tokens: the most tokens of one answer, where the request does not say; None = no limit of its own.
        temperature: 0.0 (always the likeliest token) and up, where the request does not say.
        top_p: the share of probability that tokens are drawn from, 0 to 1.
        top_k: how many tokens are drawn from.
        seed: makes sampling repeatable, where the request does not say.
        stop: texts that end an answer, where the request does not say.
        options: further options of the server by their own names, such as ``min_p`` or ``num_gpu``.
        overflow: what happens to a prompt that is longer than the window: ``"error"``, a typed error; ``"server"``,
            what the server does, which is to drop the oldest messages without a word.
        price: dollars per million tokens; None = nothing for a server on this machine, unknown for any other.
        timeout: seconds for one answer, loading the model included.
        connect_timeout: seconds to make a connection.
        silence: seconds without a byte after which an answer is given up; an answer that is not streamed comes as a
            whole, after all of its silence.
        connections: the most at a time in one event loop.
    """

    base_url: str | None = None
    api_key: Secret | None = None
    think: bool | str | None = field(default=None, validator=_level)
    think_tags: ThinkTags = "leading"
    keep_alive: str | float | None = field(default=None, validator=_duration)
    num_ctx: int | None = field(default=None, validator=optional(integer(1)))
    max_tokens: int | None = field(default=None, validator=optional(integer(1)))
    temperature: float | None = field(default=None, validator=optional(number(0)))
    top_p: float | None = field(default=None, validator=optional(number(0, 1)))
    top_k: int | None = field(default=None, validator=optional(integer(0)))
    seed: int | None = None
    stop: tuple[str, ...] = ()
    options: FrozenDict[str, Any] = field(default=EMPTY, converter=freeze)
    overflow: Literal["error", "server"] = "error"
    price: Price | None = field(default=None, validator=_price)
    timeout: float = field(default=600.0, validator=seconds)
    connect_timeout: float = field(default=10.0, validator=seconds)
    silence: float = field(default=600.0, validator=seconds)
    connections: int = field(default=64, validator=integer(1))
