"""The conversation as a small model is shown it: every turn of its own one JSON object, every result a user turn.

The encoding of a message depends on nothing after it, so the messages of one call are a prefix of those
of the next, and llama.cpp reuses what it has computed for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from locus.core import thaw
from locus.core.messages import MediaBlock, Message, Role, TextBlock, ToolCall, ToolResult, text_of
from locus_plugin_llamacpp.errors import BadRequest
from locus_plugin_llamacpp.examples import WorkedExample

__all__ = ["EXTRAS", "Wire", "call_text", "conversation", "demonstrations", "key", "text_conversation", "turn_of"]

#: A message in OpenAI's form.
Wire = dict[str, str]

#: Where an assistant turn keeps the text that the model wrote.
EXTRAS = "llamacpp"


def call_text(name: str, arguments: Mapping[str, Any]) -> str:
    """A turn as the grammar lets a model write it."""
    return json.dumps({"tool": name, "args": thaw(arguments)}, ensure_ascii=False)


def key(name: str, arguments: Mapping[str, Any]) -> str:
    """Equal for two calls that are the same call, whatever the order of their arguments."""
    return json.dumps([name, thaw(arguments)], sort_keys=True, ensure_ascii=False)


def turn_of(text: str) -> tuple[str, Mapping[str, Any]] | None:
    """Name and arguments of a complete turn, or None."""
    try:
        turn = json.loads(text)
        name, arguments = turn["tool"], turn["args"]
    except (ValueError, KeyError, TypeError):
        return None
    return (name, arguments) if isinstance(name, str) and isinstance(arguments, dict) else None


def demonstrations(examples: Iterable[WorkedExample], final: str) -> Iterator[Wire]:
    """Worked examples as turns of the conversation."""
    for example in examples:
        yield _user(example.user)
        for step in example.steps:
            yield _assistant(call_text(step.tool, step.arguments))
            yield _user(f"Result: {step.result}")
        yield _assistant(call_text(final, {"answer": example.answer}))


def conversation(messages: Sequence[Message], final: str) -> Iterator[Wire]:
    """The messages after the system prompt, in turns of the protocol.

    A turn with several calls, which this model never writes, becomes one turn a call.

    Raises:
        BadRequest: a message holds something other than text.
    """
    waiting: list[ToolCall] = []
    several = False
    for message in messages:
        if message.role is Role.ASSISTANT:
            waiting = list(message.tool_calls)
            several = len(waiting) > 1
            if not several:
                yield _assistant(_own_text(message) or _render(message, final))
            elif message.text:
                yield _assistant(message.text)
        elif message.role is Role.TOOL:
            for result in message.tool_results:
                call = _take_answered_call(result, waiting)
                if several and call is not None:
                    yield _assistant(call_text(call.name, call.arguments))
                yield _user(_result(result))
        else:
            yield _plain(message)


def text_conversation(messages: Sequence[Message]) -> Iterator[Wire]:
    """The messages after the system prompt where no tool is on offer: answers are plain text.

    Raises:
        BadRequest: a message holds something other than text.
    """
    for message in messages:
        if message.role is Role.ASSISTANT:
            yield _assistant("\n".join(_pieces(message)))
        elif message.role is Role.TOOL:
            yield from (_user(_result(result)) for result in message.tool_results)
        else:
            yield _plain(message)


def _pieces(message: Message) -> Iterator[str]:
    if message.text:
        yield message.text
    for call in message.tool_calls:
        yield call_text(call.name, call.arguments)


def _render(message: Message, final: str) -> str:
    for call in message.tool_calls:
        written = call_text(call.name, call.arguments)
        return f"{message.text}\n{written}" if message.text else written  # another model's: this model writes only JSON
    return call_text(final, {"answer": message.text})


def _take_answered_call(result: ToolResult, waiting: list[ToolCall]) -> ToolCall | None:
    # Ids may repeat, so the first call that still waits under this id is meant.
    for at, call in enumerate(waiting):
        if call.id == result.call_id:
            return waiting.pop(at)
    return waiting.pop(0) if waiting else None


def _own_text(message: Message) -> str | None:
    """What the model wrote, if the message still says it: a hook may have changed the message since."""
    kept = message.extras.get(EXTRAS)
    if not isinstance(kept, str):
        return None
    turn = turn_of(kept)
    if turn is None:
        return None
    name, arguments = turn
    if len(message.tool_calls) == 1:
        call = message.tool_calls[0]
        return kept if key(name, arguments) == key(call.name, call.arguments) else None
    answer = arguments.get("answer")
    if isinstance(answer, str):
        return kept if answer == message.text else None
    try:
        return kept if json.loads(message.text) == answer else None
    except ValueError:
        return None


def _result(result: ToolResult) -> str:
    return f"Result: {text_of(result.content)}"


def _plain(message: Message) -> Wire:
    for block in message.content:
        if isinstance(block, MediaBlock):
            raise BadRequest(f"a message holds {block.kind} content, and the embedded models read text only")
    text = "".join(block.text for block in message.content if isinstance(block, TextBlock))
    return {"role": "system" if message.role is Role.SYSTEM else "user", "content": text}


def _user(text: str) -> Wire:
    return {"role": "user", "content": text}


def _assistant(text: str) -> Wire:
    return {"role": "assistant", "content": text}
