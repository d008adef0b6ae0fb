"""What the two wire forms of OpenAI need to know about a server, beside the request."""

from __future__ import annotations

import re
from typing import Literal
from urllib.parse import urlsplit

from attrs import field, frozen

from locus.core import EMPTY, FrozenDict, freeze
from locus_wire.thinking import ThinkTags

__all__ = ["Options", "origin_of"]


@frozen(kw_only=True)
class Options:
    """How a server wants its requests.

    Args:
        provider: the scheme of the provider.
        origin: which models of the provider understand what this one said: its server and its family, see `origin_of`.
            Reasoning, signatures and other blocks that only they can read are sent to no other; ``""`` = all of them.
        model: the model, as the server calls it.
        strict: whether tools and outputs are sent in the strict form where they have one.
        structured: whether the server decodes by a schema; else the schema is sent as text.
        max_tokens: the name of the field for it (Chat Completions).
        stream_usage: whether to ask for the usage of a stream (Chat Completions).
        reasoning: whether the model's reasoning is sent back.
        think_tags: how the model marks thoughts in its text (Chat Completions).
        parallel: whether several calls in one turn are allowed; None = as the server has it.
        store: whether the server may keep the answer (Responses).
        fields: further fields of each request, the weakest of all.
    """

    provider: str
    model: str
    origin: str = ""
    strict: bool = True
    structured: bool = True
    max_tokens: Literal["max_completion_tokens", "max_tokens"] = "max_tokens"
    stream_usage: bool = True
    reasoning: bool = True
    think_tags: ThinkTags = "off"
    parallel: bool | None = None
    store: bool = False
    fields: FrozenDict[str, object] = field(default=EMPTY, converter=freeze)

    @property
    def writer(self) -> str:
        """By what blocks that only this model can read are known."""
        return f"{self.provider}@{self.origin}" if self.origin else self.provider


def origin_of(base_url: str, model: str) -> str:
    """The server of a model and its family, such as ``"api.groq.com/qwen"``.

    Args:
        base_url: the address of the server.
        model: as the server calls it. The family is how its name begins, without the one who serves it and the number.
    """
    host = urlsplit(base_url).hostname or ""
    name = model.lower().removeprefix("ft:").partition(":")[0].rpartition("/")[2]
    family = re.match(r"[a-z]+(?:-[a-z]+)*", name)
    return f"{host}/{family[0] if family else name}"
