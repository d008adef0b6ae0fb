"""The end of a run is one fact: what is stored, what hooks hear and what a caller gets do not contradict each other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from attrs import evolve

from locus import Agent, Hook, TerminateEvent
from locus.core.errors import NothingToResume
from locus.core.events import Event, RunStartEvent
from locus.core.journal import END, Body, Paused, Transition
from locus.core.state import AgentState
from locus.journal import Appended, Claim, MemoryStore
from locus_plugin_sqlite import SqliteStore
from locus_testkit import ScriptedModel

pytestmark = pytest.mark.anyio

#: Where the caller gives up: before the store has the end, or after, and before the store has said so.
Where = Literal["not stored", "stored", "stored, and nobody can tell"]


class Hanging(MemoryStore):
    """Does not answer while the end of a run is written, until the caller gives up."""

    def __init__(self, where: Where, *, history: bool) -> None:
        super().__init__(history=history)
        self.where, self.reached, self.hung = where, anyio.Event(), False

    async def hang(self) -> None:
        self.hung = True
        self.reached.set()
        await anyio.sleep_forever()

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        ends = any(isinstance(body, Transition) and body.next_node == END for body in bodies) and not self.hung
        if ends and self.where == "not stored":
            await self.hang()
        got = await super().append(claim, bodies)
        if ends:
            await self.hang()
        return got

    async def snapshot(self, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
        ends = last.next_node == END and not self.hung
        if ends and self.where == "not stored":
            await self.hang()
        got = await super().snapshot(claim, at, state, last)
        if ends:
            await self.hang()
        return got

    async def peek(self, thread_id: str) -> Claim | None:
        if self.hung and self.where == "stored, and nobody can tell":
            raise OSError("the network is gone")
        return await super().peek(thread_id)


class Hears(Hook):
    def __init__(self) -> None:
        self.heard = list[Event]()

    def on_event(self, event: Event) -> None:
        self.heard.append(event)

    @property
    def ends(self) -> list[tuple[str, bool]]:
        return [(e.reason, e.replayed) for e in self.heard if isinstance(e, TerminateEvent)]


async def give_up(agent: Agent[Any, Any], store: Hanging, how: str) -> None:
    """Run until the end is being written, then cancel the caller."""
    if how == "task":
        task = asyncio.create_task(agent.run("Do it.", thread_id="t"))
        await store.reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return
    async with anyio.create_task_group() as group:

        async def run() -> None:
            await agent.run("Do it.", thread_id="t")

        group.start_soon(run)
        await store.reached.wait()
        group.cancel_scope.cancel()


@pytest.mark.parametrize("history", [True, False], ids=["history", "latest"])
@pytest.mark.parametrize("how", ["scope", "task"])
@pytest.mark.parametrize("where", ["not stored", "stored"])
async def test_a_cancel_while_the_end_is_written_does_not_contradict_it(
    where: Where, how: str, history: bool, anyio_backend_name: str
) -> None:
    if how == "task" and anyio_backend_name == "trio":
        how = "scope"  # tasks of trio cannot be cancelled by themselves
    store, hears = Hanging(where, history=history), Hears()
    agent = Agent[Any, Any](ScriptedModel("done"), checkpointer=store, hooks=[hears])
    await give_up(agent, store, how)
    held = await store.peek("t")
    assert held is not None
    bodies = [entry.body for entry in held.entries]
    newest = next((b for b in reversed(bodies) if isinstance(b, Transition)), held.snapshot and held.snapshot.last)
    assert isinstance(newest, Transition)
    if where == "stored":
        assert newest.next_node == END
        assert not any(isinstance(body, Paused) for body in bodies)
        assert hears.ends == [("NoToolCalls", False)]
        with pytest.raises(NothingToResume):
            await agent.resume("t")
    else:
        assert newest.next_node != END
        assert isinstance(bodies[-1], Paused)
        assert hears.ends == [("Cancelled", False)]
        result = await agent.resume("t")
        assert result.stop_reason == "NoToolCalls"
        assert hears.ends == [("Cancelled", False), ("NoToolCalls", False)]


@pytest.mark.parametrize("history", [True, False], ids=["history", "latest"])
async def test_nothing_is_written_behind_an_end_of_which_nobody_knows(history: bool) -> None:
    store, hears = Hanging("stored, and nobody can tell", history=history), Hears()
    await give_up(Agent(ScriptedModel("done"), checkpointer=store, hooks=[hears]), store, "scope")
    (thread,) = store._threads.values()
    assert thread.held is None
    assert not any(isinstance(body, Paused) for body in thread.bodies)
    assert hears.ends == [("Cancelled", False)]
    end = next(event for event in hears.heard if isinstance(event, TerminateEvent))
    assert "whether the entry was stored" in (end.error or "")


async def test_a_cancel_while_the_end_is_posted_does_not_contradict_it(tmp_path: Path) -> None:
    hears, scopes = Hears(), list[anyio.CancelScope]()

    class Cancels(SqliteStore):
        def post(self, claim: Claim, bodies: Sequence[Body], after: Any = None) -> Any:
            if any(isinstance(body, Transition) and body.next_node == END for body in bodies):
                scopes[0].cancel()
            return super().post(claim, bodies, after)

        async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
            if any(isinstance(body, Transition) and body.next_node == END for body in bodies):
                scopes[0].cancel()
            return await super().append(claim, bodies)

    async with Cancels(tmp_path / "other.db") as cancels:
        agent = Agent[Any, Any](ScriptedModel("done"), checkpointer=cancels, hooks=[hears])
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            await agent.run("Do it.", thread_id="t")
        bodies = [entry.body for entry in await cancels.read("t")]
        assert isinstance(bodies[-1], Transition)
        assert bodies[-1].next_node == END
        assert hears.ends == [("NoToolCalls", False)]


# -- an end that nobody heard of ----------------------------------------------------------------------


class Abandoned(MemoryStore):
    """Knows of each claim that the one before was not given back."""

    async def claim(self, thread_id: str, worker: str) -> Claim:
        return evolve(await super().claim(thread_id, worker), is_abandoned=True)


async def ended(request_id: str = "") -> Abandoned:
    store = Abandoned()
    await Agent(ScriptedModel("done"), checkpointer=store).run("Do it.", thread_id="t", request_id=request_id or None)
    return store


async def test_a_resume_emits_the_end_that_nobody_heard_of() -> None:
    store, hears = await ended(), Hears()
    run = Agent(ScriptedModel(), checkpointer=store, hooks=[hears]).resume("t")
    events = [event async for event in run]
    assert [(type(e), e.replayed) for e in events] == [(RunStartEvent, True), (TerminateEvent, True)]
    assert hears.heard == events
    assert (run.result.text, run.result.stop_reason) == ("done", "NoToolCalls")
    assert {event.run_id for event in events} == {run.result.run_id}


async def test_the_same_request_emits_the_end_that_nobody_heard_of() -> None:
    store, hears = await ended("r1"), Hears()
    again = Agent[Any, Any](ScriptedModel(), checkpointer=store, hooks=[hears])
    result = await again.run("Do it.", thread_id="t", request_id="r1")
    assert result.text == "done"
    assert hears.ends == [("NoToolCalls", True)]


async def test_a_new_turn_emits_the_end_that_nobody_heard_of_to_hooks_alone() -> None:
    store, hears = await ended(), Hears()
    run = Agent(ScriptedModel("more"), checkpointer=store, hooks=[hears]).run("And now?", thread_id="t")
    events = [event async for event in run]
    assert hears.ends == [("NoToolCalls", True), ("NoToolCalls", False)]
    assert [e.seq for e in events] == list(range(1, len(events) + 1))
    assert {e.run_id for e in events} == {run.result.run_id}
    assert not any(e.replayed for e in events)


async def test_an_end_with_an_error_is_emitted_with_it() -> None:
    store, hears = Abandoned(), Hears()

    def breaks(messages: Any) -> Any:
        raise ValueError("no thought")

    first = await Agent(ScriptedModel(breaks), checkpointer=store).run("Do it.", thread_id="t")
    result = await Agent(ScriptedModel(), checkpointer=store, hooks=[hears]).resume("t")
    assert first.error is not None
    assert (result.stop_reason, result.detail) == (first.stop_reason, first.detail)
    assert [e.error for e in hears.heard if isinstance(e, TerminateEvent)] == [str(result.error)]
    assert "no thought" in str(result.error)
