"""Messages, their blocks, and whole conversations in which every call has its result."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from locus.core.messages import (
    Block,
    MediaBlock,
    Message,
    RawBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResult,
    Usage,
)
from locus_testkit.strategies.data import arguments, build_once, texts, tool_names

__all__ = [
    "blocks",
    "conversations",
    "media_blocks",
    "messages",
    "raw_blocks",
    "text_blocks",
    "thinking_blocks",
    "tool_calls",
    "tool_results",
    "usages",
]

_IDS = st.sampled_from(["call_0", "call_1", "call_2"]) | texts(max_size=8)


@build_once
def text_blocks() -> SearchStrategy[TextBlock]:
    """Text, sometimes with what a provider attaches to it."""
    return st.builds(TextBlock, texts(), extras=arguments())


@build_once
def thinking_blocks() -> SearchStrategy[ThinkingBlock]:
    """Reasoning with and without a signature."""
    return st.builds(ThinkingBlock, texts(), st.none() | texts(), extras=arguments())


@build_once
def tool_calls() -> SearchStrategy[ToolCall]:
    """Calls with parsed arguments, and calls whose arguments are not a JSON object. Ids repeat."""
    parsed = st.builds(ToolCall, _IDS, tool_names(), arguments(), extras=arguments())
    return parsed | st.builds(ToolCall, _IDS, tool_names(), malformed=texts())


@build_once
def media_blocks() -> SearchStrategy[MediaBlock]:
    """Images, audio and documents, by URL and by bytes."""
    kinds = st.sampled_from(["image", "audio", "document"])
    types = st.sampled_from(["image/png", "audio/wav", "application/pdf"])
    by_url = st.builds(MediaBlock, kinds, st.just("") | types, url=st.just("https://example.org/a"), name=texts())
    return by_url | st.builds(MediaBlock, kinds, types, data=st.binary(max_size=16), name=texts())


@build_once
def raw_blocks() -> SearchStrategy[RawBlock]:
    """Blocks that only their provider understands."""
    return st.builds(RawBlock, st.sampled_from(["one", "other"]), arguments())


@build_once
def tool_results() -> SearchStrategy[ToolResult]:
    """Results as text and as blocks, errors too."""
    content = texts() | st.lists(text_blocks() | media_blocks(), max_size=2).map(tuple)
    return st.builds(ToolResult, _IDS, content, st.booleans(), tool_names())


@build_once
def blocks() -> SearchStrategy[Block]:
    """Any block."""
    return st.one_of(text_blocks(), thinking_blocks(), tool_calls(), tool_results(), media_blocks(), raw_blocks())


@build_once
def messages(role: Role | None = None) -> SearchStrategy[Message]:
    """A message with blocks that fit its role.

    Args:
        role: who speaks; None = anybody.
    """
    if role is None:
        return st.one_of([messages(each) for each in Role])
    fitting: dict[Role, SearchStrategy[Block]] = {
        Role.SYSTEM: text_blocks(),
        Role.USER: text_blocks() | media_blocks(),
        Role.ASSISTANT: text_blocks() | thinking_blocks() | tool_calls() | raw_blocks(),
        Role.TOOL: tool_results(),
    }
    content = texts() if role is not Role.TOOL else tool_results()
    several = st.lists(fitting[role], max_size=3).map(tuple)
    return st.builds(Message, st.just(role), content | several, name=st.none() | texts(), extras=arguments())


@build_once
@st.composite
def conversations(draw: DrawFn, *, max_turns: int = 3) -> tuple[Message, ...]:
    """A legal history: a system prompt perhaps, user turns, answers, and one result a call, in order.

    Args:
        draw: given by hypothesis.
        max_turns: the most user turns.
    """
    told = list(draw(st.lists(messages(Role.SYSTEM), max_size=1)))
    for _ in range(draw(st.integers(0, max_turns))):
        told.append(draw(messages(Role.USER)))
        for answer in draw(st.lists(messages(Role.ASSISTANT), max_size=2)):
            told.append(answer)
            told += [
                Message(Role.TOOL, ToolResult(call.id, draw(texts()), draw(st.booleans()), call.name))
                for call in answer.tool_calls
            ]
    return tuple(told)


@build_once
@st.composite
def usages(draw: DrawFn) -> Usage:
    """Usage whose parts are not more than their whole."""
    prompt, completion = draw(st.integers(0, 10_000)), draw(st.integers(0, 10_000))
    cached = draw(st.integers(0, prompt))
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached,
        cache_write_tokens=draw(st.integers(0, prompt - cached)),
        reasoning_tokens=draw(st.integers(0, completion)),
        cost=draw(st.none() | st.floats(0, 1000)),
    )
