"""`Todo` and `TodoState`: what is to be done, and the list of it; and how a list is read and written as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any

from attrs import Attribute, asdict, field, frozen

from locus.core.labels import CLEAN, Label

__all__ = [
    "COMPLETED",
    "MAX_CHARS",
    "MAX_TODOS",
    "Todo",
    "TodoState",
    "TodosInvalid",
    "read_json",
    "read_list",
    "to_json",
    "to_list",
]

COMPLETED = "completed"

#: The bounds of a list, and of each text in it, in characters: it is sent to the model with each result.
MAX_TODOS, MAX_CHARS = 100, 500

#: More characters than any list within the bounds has, even if each one is escaped as a surrogate pair.
_MAX_JSON = MAX_TODOS * (12 * 2 * MAX_CHARS + 200)
#: How much of an entry an error shows, in characters.
_SHOWN = 200


class TodosInvalid(ValueError):
    """Something is not a list of todos; the text says why, for the model."""


def _text(_: object, attribute: Attribute[Any], value: Any) -> None:
    if not isinstance(value, str):
        raise ValueError(f"{attribute.name} must be a str, got {value!r:.80}")
    if len(value) > MAX_CHARS:
        raise ValueError(f"{attribute.name} must have at most {MAX_CHARS} characters, got {len(value):,}")
    if any("\ud800" <= c <= "\udfff" for c in value):
        raise ValueError(f"{attribute.name} must be text, got half of a surrogate pair in {value!r:.80}")


@frozen
class Todo:
    """One thing that is to be done.

    Args:
        content: what, in at most 500 characters.
        status: ``"pending"``, ``"in_progress"`` or ``"completed"``. Any other text is kept as it is, and counts as not
            completed.

    Raises:
        ValueError: one of them is not a str, or is longer.
    """

    content: str = field(validator=_text)
    status: str = field(default="pending", validator=_text)

    @property
    def is_completed(self) -> bool:
        """Whether it is done."""
        return self.status == COMPLETED


class TodoState:
    """The list of one run, or of several that share it; it may be used from several threads."""

    __slots__ = ("_label", "_lock", "_todos")

    def __init__(self) -> None:
        self._lock = Lock()
        self._todos: tuple[Todo, ...] = ()
        self._label = CLEAN

    @property
    def label(self) -> Label:
        """Whose words may be in it: those of the program, and what the runs that wrote it had read."""
        return self._label

    def add_label(self, label: Label) -> None:
        """Let a run that has read what the label says write to the list, until the program replaces it."""
        with self._lock:
            self._label |= label

    def replace(self, todos: Iterable[Todo]) -> list[Todo]:
        """Put a list of the program's own in the place of the one that is there.

        Args:
            todos: at most 100.

        Returns:
            The list as it is then.

        Raises:
            ValueError: there are more, or something else than a `Todo` is among them. The list stays as it was.
        """
        new = self.swap(todos)[1]
        with self._lock:
            self._label = CLEAN
        return list(new)

    def snapshot(self) -> list[Todo]:
        """The list as it is now."""
        return list(self._todos)

    def swap(self, todos: Iterable[Todo]) -> tuple[tuple[Todo, ...], tuple[Todo, ...]]:
        """Put a list that has the label in the place of the one that is there; gives the old one and the new one."""
        new = tuple(todos)
        for each in new:
            if not isinstance(each, Todo):
                raise ValueError(f"expected a Todo, got {each!r:.80}")
        if len(new) > MAX_TODOS:
            raise ValueError(f"a list has at most {MAX_TODOS} todos, got {len(new):,}")
        with self._lock:
            old, self._todos = self._todos, new
        return old, new

    def __repr__(self) -> str:
        return f"TodoState({self.snapshot()!r})"


def read_json(todos_json: str) -> tuple[Todo, ...]:
    """The todos of a list as a model writes it.

    Raises:
        TodosInvalid: it is not one.
    """
    if len(todos_json) > _MAX_JSON:
        raise TodosInvalid(
            f"invalid JSON: got {len(todos_json):,} characters, which is more than {MAX_TODOS} todos of {MAX_CHARS} "
            "characters take"
        )
    try:
        found = json.loads(todos_json)
    except RecursionError:
        raise TodosInvalid("invalid JSON: it is nested too deeply") from None
    except ValueError as e:
        raise TodosInvalid(f"invalid JSON: {e}") from None
    return read_list(found)


def read_list(found: Any) -> tuple[Todo, ...]:
    """The todos of a list of objects.

    Raises:
        TodosInvalid: it is not one.
    """
    if not isinstance(found, list | tuple):
        raise TodosInvalid("todos_json must be a JSON array of {content, status} objects")
    if len(found) > MAX_TODOS:
        raise TodosInvalid(f"todos_json must have at most {MAX_TODOS} todos, got {len(found):,}")
    todos = []
    for entry in found:
        if not isinstance(entry, Mapping):
            raise TodosInvalid("each todo must be an object with `content` and optional `status`")
        try:
            # Further keys say nothing here, and are left out.
            todos.append(Todo(**{key: entry[key] for key in ("content", "status") if key in entry}))
        except TypeError:
            raise TodosInvalid(f"invalid todo entry {_show(entry)}: content is missing") from None
        except ValueError as e:
            raise TodosInvalid(f"invalid todo entry {_show(entry)}: {e}") from None
    return tuple(todos)


def _show(entry: Mapping[str, Any]) -> str:
    try:
        text = repr(dict(entry))
    except RecursionError:
        text = "{...}"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def to_list(todos: Iterable[Todo]) -> list[dict[str, str]]:
    """The todos as plain data."""
    return [asdict(todo) for todo in todos]


def to_json(todos: Iterable[Todo]) -> str:
    """The canonical JSON of a list: both fields of each todo, in this order."""
    return json.dumps(to_list(todos), ensure_ascii=False)
