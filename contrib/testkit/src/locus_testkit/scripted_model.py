"""`ScriptedModel`: a model that answers from a script, so that a test decides what the model does.

It is a real `Model`: it streams, obeys deadlines and cancellation, and passes `ModelContract`. What it was
asked stays in `requests`; a script that runs out fails loudly instead of inventing an answer.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from threading import Lock
from typing import Any, Literal, TypeAlias, cast, final, get_args

import anyio
import anyio.lowlevel
from attrs import evolve

from locus.core import encode_data
from locus.core.errors import ModelError
from locus.core.messages import Block, Message, Role, TextBlock, ThinkingBlock, ToolCall, Usage
from locus.models import Chunk, ModelRequest, ModelResponse, OnChunk, Price

__all__ = [
    "DEFAULT_USAGE",
    "CallIds",
    "ScriptExhausted",
    "ScriptedModel",
    "Turn",
    "blocks_of",
    "call",
    "malformed_call",
    "never",
]

#: One answer of a script; `ScriptedModel` says what each kind means.
Turn: TypeAlias = (
    str
    | Block
    | Sequence["str | Block"]
    | Message
    | ModelResponse
    | BaseException
    | Callable[[ModelRequest], "Turn | Awaitable[Turn]"]
)

#: How calls without an id get one: ``"unique"`` (never twice), ``"per_turn"`` (each turn counts from 0) or
#: ``"same"`` (always the same one). Local models do the latter two, and nothing may break when they do.
CallIds = Literal["unique", "per_turn", "same"]

#: What each scripted call costs unless the test says otherwise: constant, so that totals are easy to state.
DEFAULT_USAGE = Usage(prompt_tokens=10, completion_tokens=5)


def call(name: str, /, **arguments: Any) -> ToolCall:
    """A tool call for a script; the model gives it its id.

    Args:
        name: the tool's name.
        arguments: the arguments of the call, plain data.
    """
    return ToolCall("", name, arguments)


def blocks_of(turn: Turn) -> tuple[Block, ...]:
    """The blocks of an assistant's turn; for emulators of servers.

    Args:
        turn: neither an exception nor a function.
    """
    if isinstance(turn, ModelResponse):
        turn = turn.message
    if isinstance(turn, Message):
        return turn.content
    items = (turn,) if isinstance(turn, str | Block) else cast("Sequence[str | Block]", turn)
    return tuple(TextBlock(item) if isinstance(item, str) else item for item in items)


def malformed_call(name: str, text: str, /) -> ToolCall:
    """A tool call whose arguments are not a JSON object, as weak models make them.

    Args:
        name: the tool's name.
        text: the text in place of the arguments.
    """
    return ToolCall("", name, malformed=text)


async def never(request: ModelRequest) -> Turn:
    """A turn that does not come: the call lasts until it is cancelled or its deadline passes."""
    while True:
        await anyio.sleep_forever()


class ScriptExhausted(AssertionError):
    """A scripted model was asked once more than its script has turns.

    Args:
        model: the name of the model.
        turns: how many turns the script has.
        request: what was asked beyond them.
    """

    def __init__(self, model: str, turns: int, request: ModelRequest) -> None:
        self.model, self.turns, self.request = model, turns, request
        last = request.messages[-1] if request.messages else None
        asked = "without messages" if last is None else f"ending with {_shorten(last)}"
        super().__init__(
            f"{model} was scripted with {turns} turn(s), all used, and was asked again: "
            f"{len(request.messages)} message(s) {asked}; add a turn, or pass after='repeat' or after='cycle'"
        )


def _shorten(message: Message) -> str:
    shown = repr(message.content)
    return f"{message.role.value} {shown if len(shown) <= 300 else shown[:300] + '...'}"


@final
class ScriptedModel:
    """Answers one scripted turn a request, in order.

    A turn is

    - a str: the final text;
    - `call(...)`, or a list of calls, texts and blocks: an assistant turn made of them;
    - a `Message` with the role assistant, or a whole `ModelResponse`: given as it is;
    - an exception instance: raised;
    - a function from the `ModelRequest` to a turn, sync or async.

    Safe to share between tasks and threads: every request gets a turn of its own, in the order in which the
    requests come. Where that order is not fixed (concurrent runs), or runs must repeat (a resume in another
    process), give ``script=`` in place of turns.

    Args:
        turns: the script.
        name: the model's name.
        chunks: how to stream to an ``on_chunk``: False = not at all, True = word by word, a number = pieces
            of that many characters. Arguments of calls stream as JSON text of the kind ``"tool_call"``.
        usage: of each call, or a function from the request and the answer to it; None = `DEFAULT_USAGE`.
        price: dollars, for ``CostLimit``.
        after: what follows the last turn: ``"fail"`` raises `ScriptExhausted`, ``"repeat"`` gives the last
            turn again, ``"cycle"`` starts over.
        ids: see `CallIds`.
        script: a function from a request to the script of the conversation it belongs to. The number of
            assistant messages in the request then says which turn it gets, so nothing depends on the order
            of requests; an exception is raised by every attempt at its turn.

    Raises:
        TypeError: a turn is of none of these kinds; the message gives its position.
        ValueError: an option has no such value, or both turns and ``script`` are given.
    """

    def __init__(
        self,
        *turns: Turn,
        name: str = "scripted:model",
        chunks: bool | int = False,
        usage: Usage | Callable[[ModelRequest, Message], Usage] | None = None,
        price: Price | None = None,
        after: Literal["fail", "repeat", "cycle"] = "fail",
        ids: CallIds = "unique",
        script: Callable[[ModelRequest], Sequence[Turn]] | None = None,
    ) -> None:
        if after not in ("fail", "repeat", "cycle"):
            raise ValueError(f"after must be 'fail', 'repeat' or 'cycle', got {after!r}")
        if ids not in get_args(CallIds):
            raise ValueError(f"ids must be one of {', '.join(map(repr, get_args(CallIds)))}, got {ids!r}")
        if not isinstance(chunks, bool) and chunks < 1:
            raise ValueError(f"chunks must be False, True or a number of characters from 1, got {chunks!r}")
        if turns and script is not None:
            raise ValueError("give either turns or script=, not both")
        self.name = name
        self.price = price
        self._turns = _check_turns(turns)
        self._chunks, self._usage, self._after, self._ids, self._script = chunks, usage, after, ids, script
        self._lock = Lock()
        self._asked: list[ModelRequest] = []
        self._served = 0
        self._overrun: ScriptExhausted | None = None

    def __repr__(self) -> str:
        return f"<ScriptedModel {self.name!r}: {len(self._asked)} request(s), {self.remaining} turn(s) left>"

    @property
    def requests(self) -> tuple[ModelRequest, ...]:
        """What it was asked, oldest first, the request that found no turn included."""
        return tuple(self._asked)

    @property
    def remaining(self) -> int:
        """How many turns were not given yet; 0 for a model with ``script=``."""
        return max(0, len(self._turns) - self._served)

    @property
    def overrun(self) -> ScriptExhausted | None:
        """The first failure for want of a turn, or None. A run only reports a model error; a test can ask."""
        return self._overrun

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        """Give the next turn.

        Raises:
            ScriptExhausted: no turn is left.
            ModelError: the request's deadline passed first.
            BaseException: the turn is an exception.
        """
        number, turn = self._take(request)
        if request.deadline is None:
            return await self._answer(number, turn, request, on_chunk)
        if request.deadline <= anyio.current_time():
            raise self._wait_past_deadline()
        with anyio.CancelScope(deadline=request.deadline):
            return await self._answer(number, turn, request, on_chunk)
        raise self._wait_past_deadline()

    def _wait_past_deadline(self) -> ModelError:
        return ModelError(f"{self.name} did not answer by the request's deadline", provider=self.name.split(":")[0])

    def _take(self, request: ModelRequest) -> tuple[int, Turn]:
        """The number of the request, from 1, and the turn that answers it."""
        script = self._turns if self._script is None else _check_turns(self._script(request))
        with self._lock:
            self._asked.append(request)
            number = len(self._asked)
            if self._script is None:
                position, self._served = self._served, self._served + 1
            else:
                position = sum(m.role is Role.ASSISTANT for m in request.messages)
            if position >= len(script) and script and self._after != "fail":
                position = position % len(script) if self._after == "cycle" else len(script) - 1
            if position < len(script):
                return number, script[position]
            missing = ScriptExhausted(self.name, len(script), request)
            self._overrun = self._overrun or missing
            raise missing

    async def _answer(self, number: int, turn: Turn, request: ModelRequest, on_chunk: OnChunk | None) -> ModelResponse:
        # A model is always a place where other tasks run and where a cancelled caller ends.
        await anyio.lowlevel.checkpoint()
        while callable(turn) and not isinstance(turn, BaseException):
            made = turn(request)
            turn = await made if inspect.isawaitable(made) else made
            if _problem(turn):
                raise TypeError(f"a function of the script returned a turn that {_problem(turn)}")
        if isinstance(turn, BaseException):
            raise turn.with_traceback(None)
        response = turn if isinstance(turn, ModelResponse) else self._response(number, turn, request)
        if on_chunk is not None and self._chunks is not False:
            for block in response.message.content:
                for chunk in _pieces(block, self._chunks):
                    await on_chunk(chunk)
        return response

    def _response(self, number: int, turn: Turn, request: ModelRequest) -> ModelResponse:
        if isinstance(turn, Message):
            message = turn
        else:
            message = Message(Role.ASSISTANT, tuple(block for block in blocks_of(turn) if block != TextBlock("")))
        if any(c.id == "" for c in message.tool_calls):
            message = evolve(message, content=tuple(self._with_ids(number, message.content)))
        usage = self._usage(request, message) if callable(self._usage) else self._usage
        return ModelResponse(
            message=message,
            usage=DEFAULT_USAGE if usage is None else usage,
            stop_reason="tool_calls" if message.tool_calls else "stop",
            model=self.name,
        )

    def _with_ids(self, number: int, blocks: Iterable[Block]) -> Iterable[Block]:
        position = 0
        for block in blocks:
            if not isinstance(block, ToolCall):
                yield block
                continue
            position += 1
            yield block if block.id else evolve(block, id=self._id(number, position))

    def _id(self, number: int, position: int) -> str:
        if self._ids == "unique":
            return f"call_{number}_{position}"
        return f"call_{position}" if self._ids == "per_turn" else "call"


def _check_turns(turns: Iterable[Turn]) -> tuple[Turn, ...]:
    script = tuple(turns)
    for position, turn in enumerate(script, 1):
        problem = _problem(turn)
        if problem:
            raise TypeError(
                f"turn {position} {problem}; a turn is text, call(...), a list of those and of blocks, "
                "a Message, a ModelResponse, an exception instance, or a function from the request to a turn"
            )
    return script


def _problem(turn: object) -> str:
    if isinstance(turn, type) and issubclass(turn, BaseException):
        return f"is the class {turn.__name__}: give an instance, {turn.__name__}(...)"
    if isinstance(turn, Message):
        return "" if turn.role is Role.ASSISTANT else f"is a message of the role {turn.role.value!r}, not 'assistant'"
    if isinstance(turn, list | tuple):
        wrong = [item for item in turn if not isinstance(item, str | Block)]
        return f"holds {wrong[0]!r}" if wrong else ""
    if isinstance(turn, str | Block | ModelResponse | BaseException) or callable(turn):
        return ""
    return f"is {turn!r}"


def _json(arguments: Any) -> str:
    return json.dumps(encode_data(arguments), ensure_ascii=False)


def _pieces(block: Block, size: bool | int) -> Iterable[Chunk]:  # noqa: FBT001  # as the user gave it
    if isinstance(block, TextBlock):
        text, kind = block.text, "text"
    elif isinstance(block, ThinkingBlock):
        text, kind = block.text, "reasoning"
    elif isinstance(block, ToolCall):
        text, kind = _json(block.arguments) if block.malformed is None else block.malformed, "tool_call"
    else:
        return
    if size is True:
        yield from (Chunk(piece, kind) for piece in re.findall(r"\s*\S+|\s+$", text))
    else:
        yield from (Chunk(text[at : at + size], kind) for at in range(0, len(text), size))
