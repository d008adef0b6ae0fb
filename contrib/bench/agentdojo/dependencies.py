"""Which calls of a ground truth need the results of others: found from the values, not from the order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

__all__ = ["Made", "find_dependencies"]

#: Digits of an id that can be told from a day or an amount in the midst of a text; a shorter one must be the whole.
_SHORTEST_ID = 4


@frozen(kw_only=True)
class Made:
    """A call of a ground truth, and what came of it.

    Args:
        arguments: as data.
        result: what it returns, as data.
        targets: the names of the arguments that say whom or what it reaches.
        is_read: it changes nothing.
        is_sent: something leaves the user's account with it.
    """

    arguments: Mapping[str, Any]
    result: Any
    targets: Sequence[str]
    is_read: bool
    is_sent: bool


def find_dependencies(prompt: str, calls: Sequence[Made]) -> list[list[int]]:
    """The indices of the calls that each call needs.

    - A value that the user has said needs nothing. Any other needs the first result that has it.
    - One that is in no result, such as a sum or a summary, is made of what was read, whatever that was: it comes after
      the reads before it. Those that may be refused do not count, an address being in them that others gave.
    - A call comes after those that changed the same thing, by a target that they have in common.

    Args:
        prompt: what the user says.
        calls: in order.
    """
    said = [prompt.casefold()]
    texts = [[_text(value) for value in _leaves(call.result, keys=True)] for call in calls]
    needed: list[list[int]] = []
    for n, call in enumerate(calls):
        found = {at for at in range(n) if not calls[at].is_read and not _targets(calls[at]).isdisjoint(_targets(call))}
        for value in _leaves(call.arguments, keys=False):
            if not _is_in(value, said):
                first = next((at for at in range(n) if _is_in(value, texts[at])), None)
                read = (at for at in range(n) if calls[at].is_read and not (calls[at].is_sent and needed[at]))
                found.update(read if first is None else (first,))
        needed.append(sorted(found))
    return needed


def _targets(call: Made) -> set[str]:
    return {_text(value) for name in call.targets for value in _leaves(call.arguments.get(name), keys=False)}


def _is_in(value: Any, texts: Sequence[str]) -> bool:
    """Whether one of the texts has the value, as a whole word or several."""
    text = _text(value)
    if isinstance(value, str) and value.isdecimal() and len(value) < _SHORTEST_ID:
        return text in texts
    pattern = re.compile(rf"(?<!\w){re.escape(text)}(?!\w)")
    return any(pattern.search(each) for each in texts)


def _text(value: Any) -> str:
    whole = int(value) if isinstance(value, float) and value.is_integer() else value
    return str(whole).casefold()


def _leaves(data: Any, *, keys: bool) -> Iterator[Any]:
    """The values in data that say something; in a result the keys may be names."""
    if isinstance(data, Mapping):
        for key, each in data.items():
            if keys:
                yield key
            yield from _leaves(each, keys=keys)
    elif isinstance(data, list | tuple):
        for each in data:
            yield from _leaves(each, keys=keys)
    elif data is not None and data != "":
        yield data
