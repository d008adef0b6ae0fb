"""Model calls, tool specifications, and scripts for `ScriptedModel`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from locus.core import freeze
from locus.core.errors import ContextOverflow, ModelError
from locus.core.messages import Message, Role, ToolCall
from locus.models import ModelRequest, ModelResponse, ModelSettings, OutputSpec, StopReason
from locus.tools import ToolExample, ToolSpec
from locus_testkit.scripted_model import Turn
from locus_testkit.strategies.data import TOOLS, arguments, build_once, texts
from locus_testkit.strategies.messages import conversations, messages, usages

__all__ = ["model_requests", "model_responses", "model_settings", "scripts", "tool_specs", "turns"]

_TYPES = ("string", "integer", "number", "boolean", "object", "array")


@build_once
@st.composite
def tool_specs(draw: DrawFn) -> ToolSpec:
    """What a model gets to know about a tool: a legal name, an object schema, examples perhaps."""
    names = st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True)
    fields = draw(st.dictionaries(names, st.sampled_from(_TYPES).map(lambda t: {"type": t}), max_size=3))
    required = draw(st.lists(st.sampled_from(sorted(fields)), unique=True)) if fields else []
    examples = st.builds(ToolExample, user=texts(), arguments=arguments(), result=texts(), answer=texts())
    return ToolSpec(
        name=draw(names),
        description=draw(texts()),
        parameters=freeze({"type": "object", "properties": fields, "required": required}),
        examples=tuple(draw(st.lists(examples, max_size=1))),
    )


@build_once
def model_settings() -> SearchStrategy[ModelSettings]:
    """Settings, each given or left to the provider."""
    return st.builds(
        ModelSettings,
        temperature=st.none() | st.floats(0, 2),
        max_tokens=st.none() | st.integers(1, 10_000),
        tool_choice=st.none() | st.sampled_from(["auto", "none", "required", *TOOLS]),
        seed=st.none() | st.integers(),
        stop=st.lists(texts(), max_size=2).map(tuple),
        extras=arguments(),
    )


@build_once
def model_requests() -> SearchStrategy[ModelRequest]:
    """Requests with a legal history; no deadline, because that is a time on the caller's clock."""
    outputs = st.builds(OutputSpec, name=st.sampled_from(TOOLS), schema=arguments(), strict=st.booleans())
    return st.builds(
        ModelRequest,
        messages=conversations(),
        tools=st.lists(tool_specs(), max_size=2, unique_by=lambda spec: spec.name).map(tuple),
        settings=model_settings(),
        output=st.none() | outputs,
        purpose=st.sampled_from(["think", "judge"]),
    )


@build_once
def model_responses() -> SearchStrategy[ModelResponse]:
    """Assistant turns with their usage and a stop reason that fits."""

    def around(message: Message) -> SearchStrategy[ModelResponse]:
        ends = [reason for reason in get_args(StopReason) if reason != "tool_calls"]
        reasons = st.just("tool_calls") if message.tool_calls else st.sampled_from(ends)
        return st.builds(ModelResponse, message=st.just(message), usage=usages(), stop_reason=reasons, model=texts())

    return messages(Role.ASSISTANT).flatmap(around)


def turns(tools: Iterable[str] = TOOLS, *, failures: bool = True) -> SearchStrategy[Turn]:
    """One scripted turn; weak models call unknown tools, malformed, twice, or say nothing, and so do these.

    Args:
        tools: the names of the tools that exist.
        failures: exceptions too.
    """
    known = sorted(tools)
    names = st.sampled_from([*known, *known, "no_such_tool"]) if known else st.just("no_such_tool")
    good = st.builds(ToolCall, st.just(""), names, arguments())
    calls = good | good | st.builds(ToolCall, st.just(""), names, malformed=texts())
    several = st.lists(calls | texts(), min_size=1, max_size=4)
    doubled = calls.map(lambda one: [one, one])
    made: SearchStrategy[Turn] = texts() | calls | several | doubled | messages(Role.ASSISTANT)
    if failures:
        made |= st.builds(ModelError, texts(), retryable=st.booleans()) | st.builds(ContextOverflow, texts())
        made |= st.just(RuntimeError("a bug of the provider"))
    return made


def scripts(tools: Iterable[str] = TOOLS, *, max_turns: int = 5, failures: bool = True) -> SearchStrategy[list[Turn]]:
    """A script that ends with a final text.

    Args:
        tools: the names of the tools that exist.
        max_turns: the most turns before the last one.
        failures: exceptions among the turns too.
    """
    before = st.lists(turns(tools, failures=failures), max_size=max_turns)
    return st.builds(lambda script, last: [*script, last], before, texts())
