"""Where the values in a call's arguments come from: the literal look-up behind `ToolCall.provenance`.

What the model writes has the label of all that it has seen. A value is better than that only when it is literally in
the user's turn, or in a result that holds the user's own words alone. A result that repeats the arguments of a call
does not count: it does not say where those came from.

Texts are split into words and indexed when a hook first asks, and then as they come; the look-up of a value goes
through the occurrences of its rarest word. So a decision costs the same at the end of a long run as at its beginning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from attrs import evolve, frozen

from locus.core.labels import CLEAN, LEVELS, Label, Leaf, Provenance, Reads
from locus.core.messages import SYSTEM, USER, TextBlock

if TYPE_CHECKING:
    from locus.core.executions import ToolExecution
    from locus.core.messages import Message, ToolCall
    from locus.core.state import AgentState
    from locus.tools.definition import Tool

#: Where an imported thread says how many of its messages, the system prompt not counted, were imported: what the user
#: is said to have said in them does not count as the user's.
IMPORTED = "locus.imported"

# Scripts that are written without spaces between words: each character is a word.
_UNSPACED = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_GROUPED = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
# Words joined by these are parts of a longer name, number or address.
_JOINS_BEFORE, _JOINS_AFTER = frozenset("._-@+"), frozenset("._-@+/")


#: The fewest digits of an id that may be part of a longer text; a shorter id must be the whole value.
_SHORTEST_ID = 4

#: The number of an execution of a run above.
_ABOVE = -1

#: The keys and the indices that lead to a value in data.
_Path = tuple[str | int, ...]


def _fold(text: str) -> str:
    return _GROUPED.sub("", text.casefold())


@frozen
class _Text:
    """One text, and where it comes from; ``at`` is the number of the execution, None for the user's turn."""

    folded: str
    label: Label
    at: int | None = None
    tool: str = ""
    is_argument: bool = False


class ReadingRun(Protocol):
    """What is needed of a run."""

    literals: Literals | None
    #: The label of what it was given to do.
    given: Label

    @property
    def parent(self) -> ReadingRun | None:
        """The run that started this one, or None."""

    @property
    def state(self) -> AgentState:
        """The state whose last message asks for the call."""


class Literals:
    """The texts that a model has seen in one run, by their words.

    Args:
        given: the label of what the run was given as the user's turn.
        above: those of the run that started this one, or None.
    """

    __slots__ = ("_above", "_executions", "_given", "_known", "_last", "_messages", "_places")

    def __init__(self, given: Label = CLEAN, above: Literals | None = None) -> None:
        self._given, self._above = given, above
        self._clear()

    def _clear(self) -> None:
        self._messages = self._executions = 0
        self._last: Message | None = None
        #: Word -> the texts that it is in, each with the place.
        self._places: dict[str, list[tuple[_Text, int]]] = {}
        #: Every text that was added: one that a run repeats is stored once.
        self._known: set[tuple[str, Label, bool]] = set()

    def update(self, state: AgentState) -> None:
        """Add what is new in the state."""
        messages, done = state.messages, state.tool_executions
        seen = self._messages
        if seen > len(messages) or self._executions > len(done) or (seen and messages[seen - 1] is not self._last):
            self._clear()  # another conversation: a turn began, or a plugin thinks on another state
        imported = state.metadata.get(IMPORTED, 0) + sum(message.role is SYSTEM for message in messages[:1])
        for at in range(self._messages, len(messages)):
            message = messages[at]
            if message.role is USER and message.plugin is None and at >= imported:
                for block in message.content:
                    if type(block) is TextBlock:
                        self._add(_Text(_fold(block.text), self._given))
        if messages:
            self._messages, self._last = len(messages), messages[-1]
        for at in range(self._executions, len(done)):
            self._add_execution(at, done[at])
        self._executions = len(done)

    def _add_execution(self, at: int, execution: ToolExecution) -> None:
        for each in execution.arguments.values():
            for _, value in _walk(each):
                self._add(_Text(_fold(_text_of(value)), CLEAN, at, is_argument=True))
        if not execution.started or execution.result is None:
            return
        label, name = execution.known_label, execution.tool_name
        for path, value in _parts(execution.result):
            level = _level_at(execution.fields, path) if execution.fields else None
            found = label if level is None or level == label.reads else Label(level)
            self._add(_Text(_fold(_text_of(value)), found, at, name))

    def _add(self, text: _Text) -> None:
        known = text.folded, text.label, text.is_argument
        if known in self._known:
            return
        self._known.add(known)
        for word in _WORD.finditer(text.folded):
            self._places.setdefault(word[0], []).append((text, word.start()))

    def find(self, value: str, *, is_whole: bool = False) -> _Text | None:
        """The cleanest text that has the value in it literally, as a whole, and that is not an echo; None without one.

        Of texts that are equally clean it is the first. With ``is_whole`` the value must be all of the text.
        """
        needle = _fold(value)
        hits = list(self._find_all(needle))
        if is_whole:
            hits = [text for text in hits if text.folded == needle]
        best: _Text | None = None
        for text in hits:
            if text.is_argument or (best is not None and LEVELS[best.label.reads] <= LEVELS[text.label.reads]):
                continue
            if text.at is None or text.label.is_tainted or not self._is_echo(needle, text.at, hits):
                best = text
        if best is not None and not best.label.is_tainted:
            return best
        above = None if self._above is None else self._above.find(value, is_whole=is_whole)
        if above is None or above.label.is_tainted:
            return best
        return above if above.at is None else evolve(above, at=_ABOVE)

    def _find_all(self, needle: str) -> Iterator[_Text]:
        words = [(self._places.get(word[0], ()), word.start()) for word in _WORD.finditer(needle)]
        if not words:
            return
        places, offset = min(words, key=lambda each: len(each[0]))
        for text, place in places:
            if _is_whole(text.folded, needle, place - offset):
                yield text

    def _is_echo(self, needle: str, at: int, hits: Sequence[_Text]) -> bool:
        """Whether the call, or one before it, was given the value, or all of its words."""
        if any(text.is_argument and text.at is not None and text.at <= at for text in hits):
            return True
        return not _WORD.search(self._without_arguments(needle, at))

    def _without_arguments(self, needle: str, at: int) -> str:
        words = {word[0] for word in _WORD.finditer(needle)}
        given = {
            text.folded
            for word in words
            for text, _ in self._places[word]
            if text.is_argument and text.at is not None and text.at <= at
        }
        for text in sorted(given, key=len, reverse=True):
            needle = needle.replace(text, " ")
        return needle


def _is_whole(text: str, needle: str, start: int) -> bool:
    end = start + len(needle)
    if start < 0 or not text.startswith(needle, start):
        return False
    if start and _continues(text[start - 1], needle[0], text[start - 2 : start - 1], _JOINS_BEFORE):
        return False
    return end == len(text) or not _continues(text[end], needle[-1], text[end + 1 : end + 2], _JOINS_AFTER)


def _continues(beside: str, edge: str, beyond: str, joins: frozenset[str]) -> bool:
    """Whether the value goes on in the text: by another letter of its last word, or by a sign and another word."""
    if beside in joins:
        return beyond.isalnum()
    return beside.isalnum() and edge.isalnum() and not re.search(f"[{_UNSPACED}]", beside + edge)


def _text_of(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value)


def _parts(result: str) -> Iterator[tuple[_Path, Any]]:
    """The values of a result that is JSON, each with its path; the whole of another one."""
    if result[:1] in ("{", "["):
        try:
            data = json.loads(result)
        except (ValueError, RecursionError):
            data = result
    else:
        data = result
    return _walk(data)


def _walk(data: Any, path: _Path = (), known: str = "") -> Iterator[tuple[_Path, Any]]:
    """The values in data that say something, and the keys that a schema, as JSON, does not name, each with its path."""
    if isinstance(data, Mapping):
        for key, each in data.items():
            inner = (*path, key)
            if not known or f"{json.dumps(key)}:" not in known:
                yield inner, key
            yield from _walk(each, inner, known)
    elif isinstance(data, list | tuple):
        for at, each in enumerate(data):
            yield from _walk(each, (*path, at), known)
    elif data is not None and data != "":
        yield path, data


def _level_at(fields: Mapping[str, Reads], path: _Path) -> Reads | None:
    """The level of the longest pattern that the path begins with; of equally long ones the strictest."""
    best: tuple[int, int, Reads] | None = None
    for pattern, level in fields.items():
        parts = pattern.split(".") if pattern else []
        if len(parts) <= len(path) and all(a in ("*", str(b)) for a, b in zip(parts, path, strict=False)):
            found = (len(parts), LEVELS[level], level)
            best = found if best is None else max(best, found)
    return None if best is None else best[2]


# -- one call ------------------------------------------------------------------------------------------


def read_literals(run: ReadingRun) -> Literals:
    """The texts that the model of a run has seen by now."""
    if run.literals is None:
        run.literals = Literals(run.given, None if run.parent is None else read_literals(run.parent))
    run.literals.update(run.state)
    return run.literals


def trace_call(call: ToolCall, tool: Tool[..., Any] | None, run: ReadingRun) -> Provenance:
    """Where everything in the arguments of a call comes from, as the body would get them."""
    state, literals = run.state, read_literals(run)
    leaves: list[Leaf] = []
    properties = {} if tool is None else tool.spec.properties
    is_nested = tool is not None and any(isinstance(each, Mapping | list | tuple) for each in call.arguments.values())
    known = json.dumps(tool.spec.parameters, default=str) if tool is not None and is_nested else ""
    for parameter, value in call.arguments.items():
        schema = properties.get(parameter)
        is_default = isinstance(schema, Mapping) and "default" in schema and schema["default"] == value
        for path, each in _walk(value, (), known):
            where = parameter + "".join(f"[{part!r}]" for part in path)
            if is_default:
                leaves.append(Leaf(path=where, parameter=parameter, value=each, origin="default", label=CLEAN))
            else:
                leaves.append(_leaf(where, parameter, each, state, literals))
    return Provenance(
        leaves=tuple(leaves),
        context=state.label,
        targets=tuple(call.arguments) if tool is None else tool.find_targets(call.arguments),
        effect="once" if tool is None else tool.effect,
        is_egress=tool is None or tool.is_egress,
    )


def _leaf(where: str, parameter: str, value: Any, state: AgentState, literals: Literals) -> Leaf:
    # True and False are in no text.
    found = None if isinstance(value, bool) else literals.find(_text_of(value), is_whole=_is_short_id(value))
    if found is None or (found.at is None and found.label.is_tainted):
        return Leaf(path=where, parameter=parameter, value=value, origin="context", label=state.label)
    if found.at is None:
        return Leaf(path=where, parameter=parameter, value=value, origin="user", label=found.label)
    return Leaf(
        path=where,
        parameter=parameter,
        value=value,
        origin="result",
        label=found.label,
        result=None if found.at == _ABOVE else found.at,
        tool=found.tool,
    )


def _is_short_id(value: Any) -> bool:
    """Whether it is a text such as "13", which in the midst of another text is a day, a time or an amount."""
    return isinstance(value, str) and value.isdecimal() and len(value) < _SHORTEST_ID
