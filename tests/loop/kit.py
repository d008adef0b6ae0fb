"""What the tests of the loop share: a hook that keeps every event, and short ways to look at a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeVar

import anyio

from locus import AgentResult, AgentState, Event, Hook, Message, Role, ToolContext, tool
from locus.core.messages import ToolResult
from locus.models.protocol import ModelRequest
from locus_testkit import Turn, never

__all__ = [
    "Recorder",
    "add",
    "answers",
    "assert_valid_history",
    "bodies",
    "collect",
    "confirm",
    "interrupting",
    "kinds",
    "of",
    "results",
]

E = TypeVar("E", bound=Event)

#: How often the bodies below were entered; a test that counts clears it first.
bodies: Counter[str] = Counter()


@tool
async def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    bodies["add"] += 1
    return a + b


@tool
async def confirm(what: str, ctx: ToolContext[Any]) -> str:
    """Ask a person."""
    bodies["confirm"] += 1
    return f"{what}: {ctx.interrupt(f'Shall I {what}?')}"


class Recorder(Hook):
    """Keeps every event that a run tells its hooks."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def on_event(self, event: Event) -> None:
        self.events.append(event)


def interrupting(scope: anyio.CancelScope) -> Turn:
    """A turn that never comes: the caller's time is up once the model has been asked, however busy the machine is."""

    def turn(_: ModelRequest) -> Turn:
        scope.deadline = anyio.current_time()
        return never

    return turn


async def collect(run: AsyncIterator[Event]) -> list[Event]:
    """All events of a run, iterated to its end."""
    return [event async for event in run]


def of(events: Sequence[Event], kind: type[E]) -> list[E]:
    """The events of one class."""
    return [e for e in events if isinstance(e, kind)]


def kinds(events: Sequence[Event], *classes: type[Event]) -> list[str]:
    """The types of the events, of some classes only where any are given."""
    return [e.type for e in events if not classes or isinstance(e, classes)]


def answers(state: AgentState) -> list[ToolResult]:
    """Every tool result that the model gets to see, in order."""
    return [r for m in state.messages for r in m.tool_results]


def results(done: AgentState | AgentResult[Any]) -> list[str]:
    """The texts of the tool results, in order."""
    state = done if isinstance(done, AgentState) else done.state
    return [r.content if isinstance(r.content, str) else repr(r.content) for r in answers(state)]


def assert_valid_history(messages: Sequence[Message], *, closed: bool = True) -> None:
    """Each assistant turn is followed by one result a call, in call order, and nothing else has results.

    Args:
        messages: the conversation.
        closed: the last turn's calls must have their results too.
    """
    open_calls: list[tuple[str, str]] = []
    for message in messages:
        if message.role is Role.TOOL:
            for result in message.tool_results:
                assert open_calls, f"a result without a call: {result}"
                assert (result.call_id, result.name) == open_calls.pop(0)
            continue
        assert not open_calls, f"{message.role} stands before the results of {open_calls}"
        open_calls = [(c.id, c.name) for c in message.tool_calls]
    assert not closed or not open_calls
