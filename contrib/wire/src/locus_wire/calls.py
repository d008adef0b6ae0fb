"""Tool calls as servers send them: with ids that repeat or are missing, with arguments that are not JSON.

A `ToolCall` is made in any case: the loop tells the model what is wrong with it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from locus.core import EMPTY
from locus.core.messages import ToolCall

__all__ = ["arguments_of", "tool_call", "unique_ids"]


def tool_call(call_id: str, name: str, arguments: Any, extras: Mapping[str, Any] = EMPTY) -> ToolCall:
    """The call that a server asks for.

    Args:
        call_id: as it came, possibly empty.
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
    """The arguments of a call, or None if they are not a JSON object. None and an empty text mean no arguments."""
    if arguments is None or arguments == "":
        return {}
    if isinstance(arguments, Mapping):
        return dict(arguments)
    if not isinstance(arguments, str):
        return None
    try:
        value = json.loads(arguments, parse_constant=_refuse, parse_float=_finite)
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
        raise ValueError(f"{text} is a number that cannot be stored")
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
