"""The settings of the plugin: the table ``[plugins.openai]``."""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen

from locus.core import EMPTY, FrozenDict, freeze
from locus.plugins import Secret, redact
from locus_kit.validators import integer, seconds
from locus_wire.thinking import ThinkTags

__all__ = ["OpenAISettings"]


@frozen(kw_only=True)
class OpenAISettings:
    """Where the models are and how they are asked.

    Args:
        api_key: the key; None = from the environment, see `locus_plugin_openai.servers`.
        base_url: the address, ``"https://host/v1"``; None = ``OPENAI_BASE_URL``, else OpenAI itself.
        api: which form of request; ``"auto"`` = Responses at OpenAI, Chat Completions elsewhere.
        api_version: of Azure, such as ``"2025-04-01-preview"``; None = its addresses without a version.
        organization: sent as ``OpenAI-Organization``.
        project: sent as ``OpenAI-Project``.
        headers: further ones, sent with each request; no keys.
        strict: whether tools and outputs are sent in the strict form; None = at OpenAI and Azure.
        structured_output: whether the server decodes by a schema; else the schema is sent as text.
        reasoning_effort: such as ``"low"``; None = as the model has it.
        reasoning_summary: ``"auto"``, ``"concise"`` or ``"detailed"`` (Responses); None = no summaries.
        send_reasoning: whether the model's reasoning is sent back to it.
        think_tags: how thoughts are marked in a text, as ``<think>...</think>``: ``"leading"``,
            at its beginning; ``"opened"``, the model's template has written the first tag; ``"off"``, tags are text;
            None = off at OpenAI and Azure, leading elsewhere.
        parallel_tool_calls: whether several calls in one turn are allowed; None = as the model has it.
        store: whether the server may keep the answers (Responses).
        stream_usage: whether to ask for the usage of a stream (Chat Completions); a few old servers refuse that.
        max_tokens_field: what `max_tokens` is called (Chat Completions); None = as the server is known to want it.
        timeout: seconds for one call.
        connect_timeout: seconds to make a connection.
        silence: seconds without a byte after which an answer is given up.
        connections: the most at a time in one event loop.
    """

    api_key: Secret | None = None
    base_url: str | None = field(default=None, repr=lambda url: repr(url and redact(url)))
    api: Literal["auto", "chat", "responses"] = "auto"
    api_version: str | None = None
    organization: str | None = None
    project: str | None = None
    headers: FrozenDict[str, str] = field(default=EMPTY, converter=freeze, repr=False)
    strict: bool | None = None
    structured_output: bool = True
    reasoning_effort: str | None = None
    reasoning_summary: str | None = None
    send_reasoning: bool = True
    think_tags: ThinkTags | None = None
    parallel_tool_calls: bool | None = None
    store: bool = False
    stream_usage: bool = True
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None
    timeout: float = field(default=600.0, validator=seconds)
    connect_timeout: float = field(default=10.0, validator=seconds)
    silence: float = field(default=300.0, validator=seconds)
    connections: int = field(default=64, validator=integer(1))
