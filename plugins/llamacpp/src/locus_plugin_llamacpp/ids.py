"""Restricts id parameters to ids that the conversation contains, so that ids are looked up rather than guessed.

A small model that lacks an id makes one up, or writes the name of the thing in its place, and the call fails or, worse,
does something to another thing. So where a tool can look an id up, a call that takes it may only be written with an id
that occurs in the conversation, and is not on offer before there is one. That is a matter of the grammar: the prompt,
and with it what llama.cpp has cached, stays the same.

Which parameters are ids is a conservative guess: a string parameter whose name ends in ``id``, without an ``enum`` or
a pattern of its own. Where no tool looks it up and no result has had one, it is free text as before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from locus.core import thaw
from locus.core.messages import Message, Role, text_of
from locus.tools import ToolSpec

__all__ = ["Said", "gather", "ground", "strike"]

#: With more values than this the grammar takes long to build, and restricts little.
_MOST = 200
_OF_ITS_OWN = frozenset({"const", "enum", "format", "pattern", "anyOf", "oneOf", "allOf", "$ref"})
_WORD = re.compile(r"[^\W_](?:[\w./:@-]*[^\W_])?")
_PARAMETER = re.compile(r"(.+)_id|(.+[a-z])Id|id")


@frozen
class Said:
    """The ids of a conversation.

    Args:
        by_key: those that a result has under a key, by the key in lower case without underscores.
        loose: those that are only words of a text.
    """

    by_key: Mapping[str, tuple[str, ...]]
    loose: tuple[str, ...]

    def ids_for(self, parameter: str) -> tuple[str, ...]:
        """The values that a parameter may have: the ids under its own key, and those that occur in texts."""
        own = (*self.by_key.get(_plain(parameter), ()), *self.by_key.get("id", ()))
        named = self.loose if own else (*self.loose, *(each for ids in self.by_key.values() for each in ids))
        return tuple(dict.fromkeys((*own, *named)))


def gather(messages: Sequence[Message]) -> Said:
    """The ids of a conversation, in the order in which they were said."""
    by_key: dict[str, list[str]] = {}
    loose: list[str] = []
    for message in messages:
        if message.role is not Role.TOOL:
            if message.role is not Role.ASSISTANT:
                loose += _words(message.text)
            continue
        for result in message.tool_results:
            text = text_of(result.content)
            try:
                leaves = list(_leaves(json.loads(text)))
            except ValueError:
                loose += _words(text)
                continue
            for key, value in leaves:
                if _PARAMETER.fullmatch(key) or _looks_like_id(value):
                    by_key.setdefault(_plain(key), []).append(value)
    return Said({key: tuple(dict.fromkeys(ids)) for key, ids in by_key.items()}, tuple(dict.fromkeys(loose)))


def ground(tools: tuple[ToolSpec, ...], said: Said) -> tuple[ToolSpec, ...]:
    """The tools that can be called by now, each of their ids restricted to what the conversation has.

    Args:
        tools: those on offer.
        said: the ids so far, from `gather`.
    """
    made = []
    for tool in tools:
        allowed = {name: said.ids_for(name) for name in _ids_of(tool) if _can_be_known(name, tool, tools, said)}
        required = frozenset(tool.parameters.get("required", ()))
        if any(not values and name in required for name, values in allowed.items()):
            continue
        made.append(_restrict(tool, {name: ids for name, ids in allowed.items() if 0 < len(ids) <= _MOST}))
    return tuple(made)


def strike(tool: ToolSpec, arguments: Mapping[str, Any]) -> ToolSpec | None:
    """The tool without the ids of a call that was made; None when nothing tells another call from that one.

    Args:
        tool: from `ground`.
        arguments: those of the call.
    """
    for name in _ids_of(tool, of_its_own=True):
        values = tool.properties[name].get("enum", ())
        left = tuple(value for value in values if value != arguments.get(name))
        if left and len(left) < len(values):
            return _restrict(tool, {name: left})
    return None


def _ids_of(tool: ToolSpec, *, of_its_own: bool = False) -> Iterator[str]:
    for name, schema in tool.properties.items():
        if not _PARAMETER.fullmatch(name) or not isinstance(schema, Mapping) or schema.get("type") != "string":
            continue
        if of_its_own or not _OF_ITS_OWN.intersection(schema):
            yield name


def _can_be_known(parameter: str, tool: ToolSpec, tools: Iterable[ToolSpec], said: Said) -> bool:
    """Whether an id was in a result before, or another tool that does not take it is about such things."""
    if said.by_key.get(_plain(parameter)):
        return True
    matched = _PARAMETER.fullmatch(parameter)
    thing = (matched[1] or matched[2] or "") if matched else ""
    if not thing:
        return False
    about = re.compile(rf"(?<![^\W_]){re.escape(thing.replace('_', ' '))}(?:s|es)?(?![^\W_])", re.IGNORECASE)
    return any(
        other.name != tool.name
        and parameter not in other.properties
        and about.search(f"{other.name.replace('_', ' ')}. {other.description}")
        for other in tools
    )


def _restrict(tool: ToolSpec, allowed: Mapping[str, Sequence[str]]) -> ToolSpec:
    if not allowed:
        return tool
    parameters = thaw(tool.parameters)
    properties = {**parameters["properties"]}
    for name, values in allowed.items():
        properties[name] = {"type": "string", "enum": list(values)}
    return evolve(tool, parameters={**parameters, "properties": properties})


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """The texts and whole numbers in a value, each with its key."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, key)
    elif isinstance(value, str) or (type(value) is int and _PARAMETER.fullmatch(key)):
        yield key, str(value)


def _words(text: str) -> Iterator[str]:
    return (word for word in _WORD.findall(text) if _looks_like_id(word))


def _looks_like_id(word: str) -> bool:
    """Whether a text is one word that has a digit, or is joined of several: ``O-17``, ``4711``, ``blue_door``."""
    if not _WORD.fullmatch(word):
        return False
    digits = sum(each.isdigit() for each in word)
    return digits > 2 if digits == len(word) else bool(digits) or any(each in word for each in "-_/:@")


def _plain(key: str) -> str:
    return key.replace("_", "").lower()
