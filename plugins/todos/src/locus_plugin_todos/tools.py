"""The tools: `write_todos` replaces the list, `read_todos` gives it.

Both are synchronous functions of JSON text, so that they can be called, and their list looked at, without a run.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from locus import tool
from locus.plugin import Lazy
from locus.tools import Tool
from locus_plugin_todos.events import find_changes
from locus_plugin_todos.todo import TodosInvalid, TodoState, read_json, to_json

__all__ = ["READ", "RUN_TODOS", "WRITE", "make_run_tools", "make_todo_tools"]

signals: Any = Lazy("locus.observability.emit")

READ, WRITE = "read_todos", "write_todos"

#: The list of the run whose calls are executed. It goes with the context into the threads of the bodies.
RUN_TODOS: ContextVar[TodoState] = ContextVar("locus_todos")

_WRITE = """\
Replace the list of todos: what has to be done for the user's request, step by step.

Write it at the beginning of a task that takes several steps, set a todo to in_progress before you work on it and to \
completed as soon as it is done, and change the list when you learn of more. A task of one or two steps needs none. \
Always give the whole list: what is not in it is gone. Call this once a turn, and not together with read_todos. The \
result is the list as it is kept."""


def make_todo_tools(state: TodoState | None = None) -> list[Tool[..., Any]]:
    """The tools `write_todos` and `read_todos`.

    A list that cannot be used leaves the one that is there as it was, and the result says what is wrong with it. What
    changes is said by the signals ``EV_DEEPAGENT_TODO_ADDED`` and ``EV_DEEPAGENT_TODO_COMPLETED``.

    Args:
        state: the list, to be looked at from outside; None = one of their own. `Agent(todos=True)` keeps a list a run.
    """
    kept = TodoState() if state is None else state
    return _make(lambda: kept)


def make_run_tools() -> list[Tool[..., Any]]:
    """The same tools, with the list of the run that calls them."""
    return _make(_find_run_todos)


def _find_run_todos() -> TodoState:
    found = RUN_TODOS.get(None)
    if found is None:
        raise RuntimeError(
            "the todos of a run are read and written in its calls; make_todo_tools(state) works anywhere"
        )
    return found


def _make(find: Callable[[], TodoState]) -> list[Tool[..., Any]]:
    # Asked for here and not in the bodies: from now on hooks may listen to these events.
    emit, completed, added = signals.emit_sync, signals.EV_DEEPAGENT_TODO_COMPLETED, signals.EV_DEEPAGENT_TODO_ADDED

    @tool(name=WRITE, description=_WRITE, effect="pure")
    def write_todos(todos_json: str) -> str:
        """Replace the list of todos.

        Args:
            todos_json: The list as JSON text: an array of at most 100 objects with content (what to do, at most 500
                characters) and status (pending, in_progress or completed; pending where it is left out).
        """
        try:
            before, after = find().swap(read_json(todos_json))
        except TodosInvalid as e:
            return str(e)
        for change in find_changes(before, after):
            if change.is_completed:
                emit(completed, content=change.content, status=change.after)
            elif change.before is None:
                emit(added, content=change.content, status=change.after)
        return to_json(after)

    @tool(name=READ, effect="pure")
    def read_todos() -> str:
        """Read the list of todos, as JSON text: an array of objects with content and status."""
        return to_json(find().snapshot())

    return [write_todos, read_todos]
