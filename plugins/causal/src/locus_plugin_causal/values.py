"""The values that one call hands to the next: what in a result is worth recognising in later arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["argument_values", "result_values"]

#: How much of one result is looked at, in characters, and how many values of it are remembered.
_LONGEST_RESULT = 10_000
_MOST_VALUES = 500

#: How long a value may be, in characters; a longer text is recognised by the names in it.
_LONGEST_VALUE = 200
_SHORTEST_VALUE = 3

_TOKEN = re.compile(r"[^\s,;()\[\]{}<>\"'`|=]+")
_EDGES = ".:!?*-_/"
#: A token that is a name for something rather than a word: with a digit, or a sign within it, or all capitals.
_NAME = re.compile(r"(?=.*\d)|.*\w[-_./@#:]\w|^[A-Z]{3,}$")

_WORDS = frozenset({"true", "false", "null", "none", "nan"})


def _tokens(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(text):
        token = match[0].strip(_EDGES)
        if _SHORTEST_VALUE <= len(token) <= _LONGEST_VALUE and _NAME.match(token):
            yield token


def _leaves(data: Any) -> Iterator[str]:
    """The texts and numbers in plain data, as texts."""
    todo = [data]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            yield item.strip()
        elif isinstance(item, Mapping):
            todo += reversed(list(item.values()))
        elif isinstance(item, list | tuple):
            todo += reversed(item)
        elif isinstance(item, int | float) and not isinstance(item, bool):
            yield repr(item)


def _telling(leaf: str) -> bool:
    return _SHORTEST_VALUE <= len(leaf) <= _LONGEST_VALUE and leaf.casefold() not in _WORDS


def argument_values(arguments: Mapping[str, Any]) -> dict[str, None]:
    """The values in the arguments of a call, in order: each text or number as a whole, and the names within texts."""
    found: dict[str, None] = {}
    for leaf in _leaves(arguments):
        if _telling(leaf):
            found[leaf] = None
        found.update(dict.fromkeys(_tokens(leaf[:_LONGEST_RESULT])))
    return found


def result_values(text: str) -> dict[str, None]:
    """The values in a result, or in any text: the leaves of JSON, the text as a whole, the names within it."""
    text = text[:_LONGEST_RESULT].strip()
    found: dict[str, None] = {}
    for value in _whole(text):
        if len(found) == _MOST_VALUES:
            break
        found[value] = None
    return found


def _whole(text: str) -> Iterator[str]:
    if text[:1] in ("[", "{"):
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            data = None
        yield from filter(_telling, _leaves(data))
    if _telling(text):
        yield text
    yield from _tokens(text)
