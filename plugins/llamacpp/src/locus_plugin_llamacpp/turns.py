"""The turn protocol: each answer of the model is one JSON object that calls a tool or gives the answer.

Decoding is constrained to that object, because small models do not keep to a format by themselves; and
a call that was made before in the same user turn is not accepted again, because they repeat the right
call for ever. Everything here is a pure function of the request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from attrs import evolve, frozen

from locus.core.messages import Message, Role, ToolCall
from locus.models import ModelRequest
from locus.tools import ToolSpec
from locus_plugin_llamacpp.errors import BadRequest
from locus_plugin_llamacpp.examples import examples_for
from locus_plugin_llamacpp.history import Wire, conversation, demonstrations, key, text_conversation, turn_of
from locus_plugin_llamacpp.ids import gather, ground, strike
from locus_plugin_llamacpp.jsonstream import AnswerStream
from locus_plugin_llamacpp.prompt import final_name, system_prompt
from locus_plugin_llamacpp.schema import ANSWER, answer_schema, turn_schema

__all__ = ["Reply", "Turn", "is_repeat", "plan", "read", "without"]

_LONE = re.compile("[\ud800-\udfff]")
_NAME = re.compile(r'\s*\{\s*"tool"\s*:\s*"((?:[^"\\]|\\.)*)"')


@frozen(kw_only=True)
class Turn:
    """What the model is asked, and how its text is read.

    Args:
        messages: the conversation in OpenAI's form.
        final: the name that gives the answer; None where the text itself is the answer.
        tools: the tools that may be called in this turn.
        may_end: whether the answer may be given in this turn.
        output: the schema of a structured answer, or None.
        made: the calls of this user turn, each as `history.key`.
        call_id: the id of the call that this turn may ask for.
    """

    messages: tuple[Wire, ...]
    final: str | None = None
    tools: tuple[ToolSpec, ...] = ()
    may_end: bool = True
    output: Mapping[str, Any] | None = None
    made: frozenset[str] = frozenset()
    call_id: str = ""

    @property
    def schema(self) -> dict[str, Any] | None:
        """What the text is constrained to; None for free text."""
        if self.final is not None:
            answer = ANSWER if self.output is None else self.output
            return turn_schema(self.tools, self.final if self.may_end else None, answer)
        return None if self.output is None else answer_schema(self.output)

    def stream(self) -> AnswerStream | None:
        """Picks the answer out of the text as it streams; None where the text is the answer."""
        return None if self.final is None else AnswerStream(self.final, raw=self.output is not None)


@frozen
class Reply:
    """What the model said: a call, or an answer (possibly cut)."""

    call: ToolCall | None = None
    answer: str = ""
    complete: bool = True


def plan(request: ModelRequest, *, id_guard: bool = True) -> Turn:
    """The turn that a request asks for.

    Args:
        request: what is asked.
        id_guard: ids are those of the conversation, see `locus_plugin_llamacpp.ids`.

    Raises:
        BadRequest: a message holds more than text, or the tool choice names no tool.
    """
    own, rest = _split(request.messages)
    output = None if request.output is None else request.output.schema
    if not request.tools:
        system = [{"role": "system", "content": own}] if own else []
        return Turn(messages=(*system, *text_conversation(rest)), output=output)
    final = final_name(request.tools)
    tools, may_end = _offer(request.tools, request.settings.tool_choice)
    if id_guard:
        # Where a call is required, it is made: with a guessed id, if the conversation has none.
        tools = ground(tools, gather(request.messages)) or (() if may_end else tools)
    return Turn(
        messages=(
            {"role": "system", "content": system_prompt(own, request.tools, final, output)},
            *demonstrations(examples_for(request.tools), final),
            *conversation(rest, final),
        ),
        final=final,
        tools=tools,
        may_end=may_end,
        output=output,
        made=_calls_made(rest),
        call_id=f"call_{1 + sum(len(message.tool_calls) for message in rest)}",
    )


def read(turn: Turn, text: str) -> Reply:
    """What a text says; a text that was cut is reported as such, never guessed at."""
    if turn.final is None:
        return Reply(answer=_LONE.sub("\ufffd", text))
    said = turn_of(text)
    if said is None:
        return _cut(turn, text)
    name, arguments = said
    if name != turn.final:
        return Reply(ToolCall(turn.call_id, name, _whole(arguments)))
    stream = AnswerStream(turn.final, raw=turn.output is not None)
    return Reply(answer=stream.feed(text))


def is_repeat(turn: Turn, reply: Reply) -> bool:
    """Whether the reply makes a call that this user turn has seen, and something else could be done."""
    if reply.call is None or reply.call.malformed is not None:
        return False
    return key(reply.call.name, reply.call.arguments) in turn.made and (turn.may_end or len(turn.tools) > 1)


def without(turn: Turn, call: ToolCall) -> Turn:
    """The same turn with less on offer: another id for that tool, else one tool less. Only the grammar changes."""
    left = (strike(tool, call.arguments) if tool.name == call.name else tool for tool in turn.tools)
    return evolve(turn, tools=tuple(tool for tool in left if tool is not None))


def _split(messages: Sequence[Message]) -> tuple[str, Sequence[Message]]:
    """The system prompt, and what follows it."""
    leading = list(takewhile(lambda message: message.role is Role.SYSTEM, messages))
    return "\n\n".join(message.text for message in leading if message.text), messages[len(leading) :]


def _offer(tools: tuple[ToolSpec, ...], choice: str | None) -> tuple[tuple[ToolSpec, ...], bool]:
    if choice in (None, "auto"):
        return tools, True
    if choice == "none":
        return (), True
    if choice == "required":
        return tools, False
    named = tuple(tool for tool in tools if tool.name == choice)
    if not named:
        known = ", ".join(tool.name for tool in tools)
        raise BadRequest(f"tool_choice must be 'auto', 'none', 'required' or one of {known}, got {choice!r}")
    return named, False


def _calls_made(messages: Sequence[Message]) -> frozenset[str]:
    starts = [at for at, message in enumerate(messages) if message.role is Role.USER]
    current = messages[starts[-1] :] if starts else messages
    return frozenset(key(call.name, call.arguments) for message in current for call in message.tool_calls)


def _cut(turn: Turn, text: str) -> Reply:
    assert turn.final is not None
    stream = AnswerStream(turn.final, raw=turn.output is not None)
    answer = stream.feed(text)
    named = _NAME.match(text)
    if stream.is_final or named is None or named[1] == turn.final:
        return Reply(answer=answer, complete=False)
    return Reply(ToolCall(turn.call_id, json.loads(f'"{named[1]}"'), malformed=text), complete=False)


def _whole(value: Any) -> Any:
    """The value with half surrogate pairs replaced: they are not characters, and nothing could encode them."""
    if isinstance(value, str):
        return _LONE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_whole(name): _whole(inner) for name, inner in value.items()}
    return [_whole(inner) for inner in value] if isinstance(value, list) else value
