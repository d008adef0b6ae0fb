"""What the two wire forms of OpenAI need to know about a server, beside the request."""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen

from locus.core import EMPTY, FrozenDict, freeze
from locus_wire.thinking import ThinkTags

__all__ = ["Options"]


@frozen(kw_only=True)
class Options:
    """How a server wants its requests.

    Args:
        provider: the scheme of the provider.
        model: the model, as the server calls it.
        strict: whether tools and outputs are sent in the strict form where they have one.
        structured: whether the server decodes by a schema; else the schema is sent as text.
        max_tokens: the name of the field for it (Chat Completions).
        stream_usage: whether to ask for the usage of a stream (Chat Completions).
        reasoning: whether the model's reasoning is sent back.
        think_tags: how the model marks thoughts in its text.
        parallel: whether several calls in one turn are allowed; None = as the server has it.
        store: whether the server may keep the answer (Responses).
        fields: further fields of each request, the weakest of all.
    """

    provider: str
    model: str
    strict: bool = True
    structured: bool = True
    max_tokens: Literal["max_completion_tokens", "max_tokens"] = "max_tokens"
    stream_usage: bool = True
    reasoning: bool = True
    think_tags: ThinkTags = "off"
    parallel: bool | None = None
    store: bool = False
    fields: FrozenDict[str, object] = field(default=EMPTY, converter=freeze)
