"""`TodosHook`: gives each run its list, and keeps it in the state.

The state gets the list in the transition that has the results of the calls, so both are there after a crash, or neither
is. It is made from the recorded arguments of the calls and not from what bodies did: after a crash within the node the
bodies of calls that had finished do not run again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from locus.core.labels import Label
from locus.core.messages import Message, ToolCall
from locus.core.state import AgentState, ToolExecution
from locus.plugin import Accept, Event, Hook, Revise, RunContext, hookimpl
from locus.tools import Tool
from locus_kit.metadata import read_run_data, with_run_data
from locus_plugin_todos.events import TodoChangedEvent, find_changes
from locus_plugin_todos.settings import TodosSettings
from locus_plugin_todos.todo import Todo, TodosInvalid, TodoState, read_json, read_list, to_list
from locus_plugin_todos.tools import READ, RUN_TODOS, WRITE, make_run_tools

__all__ = ["TodosHook"]

NAME = "todos"
_REMINDED = "todos.reminded"
_HEADER = "[Todos: the answer above is not accepted yet. This is not a message from the user.]"
#: How many todos a reminder names.
_NAMED = 10


class TodosHook(Hook):
    """Keeps the todos of runs.

    Args:
        settings: None = the defaults.
    """

    name = NAME

    def __init__(self, settings: TodosSettings | None = None) -> None:
        self.settings = TodosSettings() if settings is None else settings

    @hookimpl
    def locus_register_events(self) -> list[type[Event]]:
        """The plugin's own event."""
        return [TodoChangedEvent]

    @hookimpl
    def locus_register_tools(self) -> list[Tool[..., object]]:
        """The tools that read and write the list."""
        return make_run_tools()

    @hookimpl
    async def locus_wrap_node(
        self, call_next: Callable[[AgentState], Awaitable[AgentState]], node: str, state: AgentState, run: RunContext
    ) -> AgentState:
        """Be there for the calls in Execute, and keep what they made of the list."""
        if node == "execute":
            return await self._execute(call_next, state, run)
        new = await call_next(state)
        if node == "think" and new.pending_revision and _HEADER in new.messages[-1].text.splitlines():
            return with_run_data(new, _REMINDED, {})
        return new

    async def _execute(
        self, call_next: Callable[[AgentState], Awaitable[AgentState]], state: AgentState, run: RunContext
    ) -> AgentState:
        live = TodoState() if self.settings.state is None else self.settings.state
        if NAME in state.metadata:
            live.swap(_read(state))
        if NAME in state.metadata or any(call.name == WRITE for call in state.unanswered):
            live.add_label(state.label)
        before = tuple(live.snapshot())
        token = RUN_TODOS.set(live)
        try:
            new = await call_next(state)
        finally:
            RUN_TODOS.reset(token)
        after = _find_written(new.tool_executions[len(state.tool_executions) :])
        if after is None:
            return new
        live.swap(after)
        changes = find_changes(before, after)
        if changes:
            completed = sum(todo.is_completed for todo in after)
            await run.emit(TodoChangedEvent(changes=changes, completed=completed, total=len(after)))
        return new.with_metadata(NAME, to_list(after))

    @hookimpl
    def locus_label_result(self, call: ToolCall, result: str, run: RunContext) -> Label | None:
        """A list holds the words of the model, which may be those of anything that it had read."""
        if call.name not in (READ, WRITE):
            return None
        live = RUN_TODOS.get(None)
        return run.state.label if live is None else run.state.label | live.label

    @hookimpl
    def locus_review_answer(self, answer: Message, state: AgentState, run: RunContext) -> Accept | Revise:
        """Remind the model of what is left, once a run."""
        if not self.settings.remind or read_run_data(state, _REMINDED):
            return Accept()
        left = [todo.content for todo in _read(state) if not todo.is_completed]
        if not left:
            return Accept()
        count = f"{len(left)} todo{' is' if len(left) == 1 else 's are'} pending"
        shown = [f"- {content}" for content in left[:_NAMED]]
        more = [f"and {len(left) - _NAMED} more"] if len(left) > _NAMED else []
        rest = "Do what is left and set it to completed, or take it from the list; then answer again."
        return Revise("\n".join([_HEADER, f"{count}:", *shown, *more, rest]))


def _read(state: AgentState) -> tuple[Todo, ...]:
    """The list in the state; empty where something else is under its key."""
    with suppress(TodosInvalid):
        return read_list(state.metadata.get(NAME, ()))
    return ()


def _find_written(executions: Sequence[ToolExecution]) -> tuple[Todo, ...] | None:
    """The list that the last of the calls wrote, in the order in which the model made them; None if none did."""
    for execution in reversed(executions):
        if execution.tool_name == WRITE and execution.error is None:
            with suppress(TodosInvalid):
                return read_json(execution.arguments["todos_json"])
    return None
