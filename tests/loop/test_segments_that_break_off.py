"""A segment that ends because its worker must not go on: it tells its end like any other, and then raises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from tests.loop.kit import Recorder, add, confirm, kinds, of

from locus import Agent, AgentState, Event, Hook, RunStartEvent, TerminateEvent, ThinkEvent, ToolContext, tool
from locus.core.errors import Fenced, InterruptMismatch, JournalError, NothingToResume, StepMismatch, StoreError
from locus.core.journal import Body, Intent, Paused, StepId, Transition
from locus.journal import MemoryStore
from locus.journal.store import Appended, Claim
from locus.run import Run
from locus_testkit import FullStore, InterceptedStore, ScriptedModel, call

pytestmark = pytest.mark.anyio


def agent(store: MemoryStore, *hooks: Hook) -> Agent[Any, Any]:
    script: list[Any] = [[call("add", a=1), call("add", a=2)], call("confirm", what="pay"), "done"]
    model = ScriptedModel(script=lambda request: script)
    return Agent(model, tools=[add, confirm], hooks=hooks, checkpointer=store)


async def follow(run: Run[Any], seen: list[Event]) -> None:
    async for event in run:
        seen.append(event)


def assert_told(events: Sequence[Event], error: JournalError) -> None:
    assert [e.seq for e in events] == list(range(1, len(events) + 1))
    assert kinds(events)[0] == "run_start"
    assert kinds(events).count("terminate") == 1
    end = events[-1]
    assert isinstance(end, TerminateEvent)
    assert (end.reason, end.error) == ("JournalError", f"{type(error).__name__}: {error}")


async def test_whichever_write_fails_the_segment_tells_its_end_once_and_then_raises() -> None:
    untouched = FullStore(0)
    await agent(untouched).run("x", thread_id="t")
    for at in range(1, untouched.writes + 1):
        recorder, seen = Recorder(), list[Event]()
        with pytest.raises(StoreError) as caught:
            await follow(agent(FullStore(at), recorder).run("x", thread_id="t"), seen)
        assert_told(recorder.events, caught.value)
        assert seen == recorder.events
    assert untouched.writes > 5


async def test_the_end_shows_what_is_committed() -> None:
    seen: list[tuple[AgentState, TerminateEvent]] = []

    class Look(Hook):
        def on_terminate(self, event: TerminateEvent, run: Any) -> None:
            seen.append((run.state, event))

    store = FullStore(2, counts=lambda body: isinstance(body, Transition) and body.node == "think")
    with pytest.raises(StoreError):
        await agent(store, Look()).run("x", thread_id="t")
    committed = await store.peek("t")
    assert committed is not None
    [(state, event)] = seen
    assert (event.iterations_used, event.total_tool_calls, event.final_message) == (2, 2, "")
    assert event.usage == state.usage
    assert [len(m.tool_calls) for m in state.messages] == [0, 2, 0, 0]


async def test_a_segment_that_breaks_off_at_its_first_write_tells_its_start_and_its_end() -> None:
    store, recorder = FullStore(0), Recorder()
    one = agent(store, recorder)
    await one.run("x", thread_id="t")
    recorder.events.clear()
    store.at = 1
    with pytest.raises(StoreError, match="could not save Resumed") as caught:
        await one.resume("t", "yes")
    assert_told(recorder.events, caught.value)
    assert kinds(recorder.events) == ["run_start", "terminate"]
    assert of(recorder.events, RunStartEvent)[0].resumed


async def test_a_resume_that_is_cancelled_at_its_first_write_tells_its_start_and_its_end() -> None:
    async def cancel(claim: Claim, bodies: Sequence[Body]) -> None:
        store.before.clear()
        scope.cancel()
        await anyio.lowlevel.checkpoint()

    store, recorder = InterceptedStore(), Recorder()
    one = agent(store, recorder)
    await one.run("x", thread_id="t")
    recorder.events.clear()
    with anyio.CancelScope() as scope:
        store.before["append"] = cancel
        await one.resume("t", "yes")
    assert kinds(recorder.events) == ["run_start", "terminate"]
    assert (await one.resume("t", "yes")).message == "done"


@pytest.mark.parametrize("refusal", ["nothing", "mismatch"])
async def test_a_resume_that_is_refused_is_not_a_segment(refusal: str) -> None:
    recorder = Recorder()
    one = agent(MemoryStore(), recorder)
    if refusal == "mismatch":
        await one.run("x", thread_id="t")
        recorder.events.clear()
    with pytest.raises(NothingToResume if refusal == "nothing" else InterruptMismatch):
        await one.resume("t", {"1/execute/0?O": "yes"})
    assert recorder.events == []


async def test_a_worker_whose_code_has_changed_tells_its_end() -> None:
    store, recorder = MemoryStore(), Recorder()
    together = [call("add", a=1), call("confirm", what="pay")]
    await Agent(ScriptedModel(together, "done"), tools=[add, confirm], checkpointer=store).run("x", thread_id="t")
    claim = await store.claim("t", "another program")
    step_id = StepId(0, "execute", 1)
    await store.append(claim, [Intent(run_id=claim.entries[-1].body.run_id, step_id=step_id, digest="of another call")])
    await store.release(claim)

    changed = Agent(ScriptedModel("done"), tools=[add, confirm], hooks=[recorder], checkpointer=store)
    with pytest.raises(StepMismatch) as caught:
        await changed.resume("t", "yes")
    assert_told(recorder.events, caught.value)
    assert of(recorder.events, RunStartEvent)[0].resumed


async def test_a_child_and_its_parent_tell_an_end_each() -> None:
    recorder, theirs = Recorder(), Recorder()
    child = Agent(ScriptedModel("two"), hooks=[theirs], checkpointer=FullStore(2))

    @tool
    async def delegate(ctx: ToolContext[Any]) -> str:
        """Have somebody else do it."""
        return str((await ctx.run_child(child, "y")).message)

    parent = Agent(ScriptedModel(call("delegate")), tools=[delegate], hooks=[recorder], checkpointer=MemoryStore())
    with pytest.raises(StoreError) as caught:
        await parent.run("x", thread_id="t")
    assert_told(recorder.events, caught.value)
    assert_told(theirs.events, caught.value)


async def test_a_hook_that_fails_at_this_end_is_isolated_as_at_any_other() -> None:
    class Fails(Hook):
        def on_terminate(self, event: TerminateEvent) -> None:
            raise LookupError("my mistake")

    recorder = Recorder()
    with pytest.raises(StoreError):
        await agent(FullStore(3), Fails(), recorder).run("x", thread_id="t")
    assert kinds(recorder.events)[-2:] == ["terminate", "hook_failed"]


async def test_a_cancellation_that_cannot_be_saved_is_reported_nevertheless() -> None:
    recorder = Recorder()
    with anyio.CancelScope() as scope:

        class Leave(Hook):
            async def on_think(self, event: ThinkEvent) -> None:
                scope.cancel()
                await anyio.lowlevel.checkpoint()

        store = FullStore(1, counts=lambda body: isinstance(body, Paused))
        await agent(store, Leave(), recorder).run("x", thread_id="t")
    [end] = of(recorder.events, TerminateEvent)
    assert end.reason == "Cancelled"
    assert end.error is not None
    assert "no space left" in end.error


async def test_a_lost_claim_is_reported_with_what_it_was() -> None:
    store, recorder = InterceptedStore(), Recorder()

    class Lose(Hook):
        def on_think(self, event: ThinkEvent) -> None:
            store.before["append"] = lambda claim, bodies: Appended.FENCED

    with pytest.raises(Fenced) as caught:
        await agent(store, Lose(), recorder).run("x", thread_id="t")
    assert_told(recorder.events, caught.value)
