"""Tool calls as servers send them: in pieces, with ids that repeat or are missing, with arguments that are no JSON.

Whatever comes, a `ToolCall` is made of it: what is wrong with it the model hears from the loop.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from attrs import define, frozen

from locus.core.frozen import EMPTY
from locus.core.messages import ToolCall

__all__ = ["CallPieces", "arguments_of", "tool_call", "unique_ids"]


@define
class _Pieces:
    id: str
    name: str
    arguments: list[str]


@frozen
class CallPieces:
    """The calls of one turn as they stream.

    Pieces belong to the call with their index. Some servers give each call the index 0 and tell them apart by their
    ids, some give none at all: a piece with a new id, or with a name after arguments, begins a call.
    """

    _calls: list[_Pieces]
    _at: dict[Any, _Pieces]

    @classmethod
    def empty(cls) -> CallPieces:
        """No calls yet."""
        return cls([], {})

    def add(self, index: Any, call_id: str | None, name: str | None, arguments: str | None) -> None:
        """Take one piece in; what it does not say is None or empty."""
        call = self._at.get(index)
        if call is not None and call_id and call.id and call_id != call.id:
            call = None
        if call is None:
            call = self._at[index] = _Pieces("", "", [])
            self._calls.append(call)
        call.id = call.id or call_id or ""
        if name and name != call.name:
            call.name += name
        if arguments:
            call.arguments.append(arguments)

    def __len__(self) -> int:
        return len(self._calls)

    def calls(self) -> tuple[ToolCall, ...]:
        """The calls in the order in which they began."""
        return unique_ids(tool_call(c.id, c.name, "".join(c.arguments)) for c in self._calls)


def tool_call(call_id: str, name: str, arguments: Any, extras: Mapping[str, Any] = EMPTY) -> ToolCall:
    """The call that a server asks for.

    Args:
        call_id: as it came, maybe empty.
        name: as it came.
        arguments: JSON text, or an object.
        extras: what else came with it.
    """
    parsed = arguments_of(arguments)
    if parsed is None:
        raw = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)
        return ToolCall(call_id, name, malformed=raw, extras=extras)
    return ToolCall(call_id, name, parsed, extras=extras)


def arguments_of(arguments: Any) -> dict[str, Any] | None:
    """The arguments of a call, or None where they are no JSON object. None and an empty text are no arguments."""
    if arguments is None or arguments == "":
        return {}
    if isinstance(arguments, Mapping):
        return dict(arguments)
    if not isinstance(arguments, str):
        return None
    try:
        value = json.loads(arguments, parse_constant=_refused, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def unique_ids(calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
    """The calls of one turn with ids that differ: a missing one is made up, a second one gets a number.

    What is made up says nothing but the place in the turn, so that the same turn has the same ids.
    """
    given = list(calls)
    taken: set[str] = {call.id for call in given}
    seen: set[str] = set()
    made: list[ToolCall] = []
    for number, call in enumerate(given):
        if call.id and call.id not in seen:
            seen.add(call.id)
            made.append(call)
            continue
        stem = call.id or "call"
        name, extra = f"{stem}_{number}", 0
        while name in taken:
            extra += 1
            name = f"{stem}_{number}_{extra}"
        taken.add(name)
        seen.add(name)
        made.append(ToolCall(name, call.name, call.arguments, call.malformed, extras=call.extras))
    return tuple(made)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no number that can be kept")
    return value


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
