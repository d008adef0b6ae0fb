"""JSON in the text of an answer: alone, in a fence, or between sentences.

Models wrap what they were asked for. The search is bounded: a hostile text costs a fixed number of attempts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

__all__ = ["LONGEST", "json_values"]

#: Longer texts are not searched, in characters.
LONGEST = 2_000_000

_ATTEMPTS = 100
_FENCE = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)
_OPENING = re.compile(r"[\[{]")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def json_values(text: str) -> Iterator[Any]:
    """The JSON values that a text may mean, the likeliest first.

    The whole text; else the content of its fences, the last one first; else the objects and arrays between its
    words, the longest first.
    """
    if len(text) > LONGEST:
        return
    whole = _decoded(text.strip())
    if whole:
        yield whole[0]
        return
    fences = [match[1] for match in _FENCE.finditer(text)][-_ATTEMPTS:]
    for content in reversed(fences):
        yield from _decoded(content.strip())
    found: list[tuple[int, Any]] = []
    at, attempts = 0, 0
    while attempts < _ATTEMPTS and (opening := _OPENING.search(text, at)):
        attempts += 1
        at = opening.start() + 1
        try:
            value, end = _DECODER.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            continue
        found.append((end - opening.start(), value))
        at = end
    for _, value in sorted(found, key=lambda each: each[0], reverse=True):
        yield value


def _decoded(text: str) -> tuple[Any, ...]:
    try:
        return (_DECODER.decode(text),)
    except (ValueError, RecursionError):
        return ()
