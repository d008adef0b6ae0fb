"""The plugin's event, and what changed from one list to the next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from attrs import field, frozen

from locus.plugin import Event, register_event
from locus_plugin_todos.todo import COMPLETED, Todo

__all__ = ["TodoChange", "TodoChangedEvent", "find_changes"]

#: The mark before a todo, by its status; a removed todo has no status.
_MARKS = {COMPLETED: "x", "in_progress": ">", None: "-"}


@frozen
class TodoChange:
    """How one todo changed.

    Args:
        content: what is to be done.
        before: its status before, or None if it was not on the list.
        after: its status now, or None if it is not on the list any more.
    """

    content: str
    before: str | None
    after: str | None

    @property
    def is_completed(self) -> bool:
        """Whether it is done now, and was not before."""
        return self.after == COMPLETED


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class TodoChangedEvent(Event):
    """The run has another list of todos.

    Args:
        changes: what is different; the rest of the list is as it was. Another order is not a change.
        completed: how many todos of the list are completed now.
        total: how many there are.
    """

    changes: tuple[TodoChange, ...] = field(default=(), converter=tuple[TodoChange, ...])
    completed: int = 0
    total: int = 0

    @property
    def shown(self) -> str:
        """The event as a person reads it: how far the list is, and a line for each change."""
        lines = [f"  [{_MARKS.get(each.after, ' ')}] {' '.join(each.content.split())}" for each in self.changes]
        return "\n".join([f"todos: {self.completed} of {self.total} completed", *lines])


def find_changes(before: Iterable[Todo], after: Iterable[Todo]) -> tuple[TodoChange, ...]:
    """What changed from one list to the next: first what is on the new one, in its order, then what is gone.

    Todos of the same content are paired in the order of the lists.
    """
    known: defaultdict[str, list[str]] = defaultdict(list)
    for todo in before:
        known[todo.content].append(todo.status)
    changes = []
    for todo in after:
        statuses = known[todo.content]
        status = statuses.pop(0) if statuses else None
        if status != todo.status:
            changes.append(TodoChange(todo.content, status, todo.status))
    gone = [TodoChange(content, status, None) for content, statuses in known.items() for status in statuses]
    return (*changes, *gone)
