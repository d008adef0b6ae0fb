"""The journal in memory: what is written when, and how a run that broke off goes on in the same process."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tests.loop.kit import Recorder, add, bodies, collect, confirm, kinds, of, results

from locus import (
    Agent,
    Hook,
    ModelCompleteEvent,
    ModelRequest,
    ThinkEvent,
    ToolCompleteEvent,
    ToolContext,
    ToolStartEvent,
    tool,
)
from locus.core.codec import converter
from locus.core.errors import Fenced, JournalError, NothingToResume, StepMismatch, ThreadBusy
from locus.core.journal import (
    BLANK,
    END,
    START,
    Answered,
    Asked,
    Body,
    Intent,
    Outcome,
    Paused,
    Resumed,
    Transition,
    entry_from_json,
    entry_to_json,
    fold,
)
from locus.core.state import AgentState
from locus.core.termination import TimeLimit
from locus.journal import MemoryStore
from locus.journal.store import Appended
from locus.models.call import ModelCallResult
from locus.tools.outcome import CallOutcome
from locus_testkit import FullStore, InterceptedStore, ScriptedModel, SimulatedCrash, call
from locus_testkit.clock import FakeClock

pytestmark = pytest.mark.anyio


async def journal(store: MemoryStore, thread_id: str = "t") -> list[Body]:
    return [entry.body for entry in await store.read(thread_id)]


def transitions(entries: Sequence[Body]) -> list[tuple[str, str]]:
    return [(b.node, b.next_node) for b in entries if isinstance(b, Transition)]


# -- what is written -------------------------------------------------------------------------------------


async def test_every_transition_is_one_entry_and_the_state_is_their_fold() -> None:
    store = MemoryStore()
    agent = Agent(ScriptedModel(call("add", a=1), "two"), tools=[add], checkpointer=store)
    result = await agent.run("x", thread_id="t")
    entries = await journal(store)
    assert transitions(entries) == [
        (START, "think"),
        ("think", "execute"),
        ("execute", "think"),
        ("think", "terminate"),
        ("terminate", END),
    ]
    assert fold(BLANK, entries) == result.state
    assert [e.n for e in await store.read("t")] == list(range(1, len(entries) + 1))


async def test_the_journal_survives_real_json() -> None:
    store = MemoryStore()
    agent = Agent(
        ScriptedModel([call("add", a=1), call("confirm", what="pay")], call("nope"), "done"),
        tools=[add, confirm],
        checkpointer=store,
    )
    await agent.run("x", thread_id="t")
    result = await agent.resume("t", "yes")
    entries = await journal(store)
    again = [entry_from_json(json.loads(json.dumps(entry_to_json(b)))) for b in entries]
    assert again == entries
    assert fold(BLANK, again) == result.state
    assert {type(b) for b in entries} == {Transition, Intent, Outcome, Asked, Answered, Paused, Resumed}


async def test_every_effect_is_a_step_written_before_and_after() -> None:
    store = MemoryStore()

    @tool(effect="pure")
    async def look() -> str:
        """No effect."""
        return "seen"

    model = ScriptedModel([call("add", a=1), call("look")], "done")
    await Agent(model, tools=[add, look], checkpointer=store, tool_execution="sequential").run("x", thread_id="t")
    steps = [b for b in await journal(store) if isinstance(b, Intent | Outcome)]
    calls = [(type(b).__name__, str(b.step_id)) for b in steps if b.step_id.node == "execute"]
    assert calls == [
        ("Intent", "0/execute/0"),
        ("Outcome", "0/execute/0"),
        ("Outcome", "0/execute/1"),  # nothing is announced that may happen again anyway
    ]
    assert all(
        isinstance(b.value, CallOutcome) for b in steps if isinstance(b, Outcome) and b.step_id.node == "execute"
    )
    models = [b for b in steps if isinstance(b, Outcome) and isinstance(b.value, ModelCallResult)]
    assert [str(b.step_id) for b in models] == ["0/think/0", "1/think/0"]


async def test_an_entry_holds_what_the_node_added_and_not_what_the_run_holds() -> None:
    store = MemoryStore()
    model = ScriptedModel(*[call("add", a=n) for n in range(30)], "done")
    await Agent(model, tools=[add], max_iterations=40, checkpointer=store).run("x" * 10_000, thread_id="t")
    sizes = [len(json.dumps(entry_to_json(b))) for b in await journal(store) if isinstance(b, Transition)]
    assert sizes[0] > 10_000
    assert max(sizes[1:]) < 3_000


async def test_transitions_are_saved_before_the_next_node_runs() -> None:
    store = MemoryStore()
    saved: list[list[tuple[str, str]]] = []

    @tool
    async def look() -> str:
        """Look at the journal."""
        saved.append(transitions(await journal(store)))
        return "looked"

    def think(request: ModelRequest) -> Any:
        return call("look") if len(saved) == 0 else "done"

    await Agent(ScriptedModel(think, after="repeat"), tools=[look], checkpointer=store).run("x", thread_id="t")
    assert saved == [[(START, "think"), ("think", "execute")]]


# -- going on ---------------------------------------------------------------------------------------------


async def leave(agent: Agent[Any, Any], kind: type[Any], *, nth: int = 1) -> None:
    """Start a run on thread "t" and leave it in the middle of its n-th event of one kind."""
    run = agent.run("x", thread_id="t")
    async for event in run:
        if isinstance(event, kind):
            nth -= 1
            if nth == 0:
                break
    await run.aclose()


async def test_a_recorded_answer_is_not_asked_for_again() -> None:
    model = ScriptedModel(call("add", a=1), "two")
    agent = Agent(model, tools=[add], checkpointer=MemoryStore())
    await leave(agent, ThinkEvent)
    assert len(model.requests) == 1
    result = await agent.resume("t")
    assert len(model.requests) == 2
    assert (result.message, results(result)) == ("two", ["2"])
    assert result.usage.total_tokens == 30  # and it is paid once


async def test_a_finished_tool_is_not_run_again() -> None:
    bodies.clear()
    agent = Agent(
        ScriptedModel([call("add", a=1), call("add", a=2)], "done"),
        tools=[add],
        checkpointer=MemoryStore(),
        tool_execution="sequential",
    )
    await leave(agent, ToolStartEvent, nth=2)
    assert bodies["add"] == 1
    result = await agent.resume("t")
    assert bodies["add"] == 2
    assert results(result) == ["2", "3"]


async def test_events_of_a_resumed_run_say_which_segment_and_which_are_replayed() -> None:
    def agent(*hooks: Hook) -> Agent[Any, str]:
        model = ScriptedModel(script=lambda request: [[call("add", a=1), call("add", a=2)], "done"])
        return Agent[Any, str](model, tools=[add], checkpointer=store, tool_execution="sequential", hooks=hooks)

    store, tool_recorder, think_recorder = MemoryStore(), Recorder(), Recorder()
    await leave(agent(), ToolStartEvent, nth=2)
    await agent(tool_recorder).resume("t")
    assert {e.segment for e in tool_recorder.events} == {1}
    assert [e.replayed for e in of(tool_recorder.events, ToolCompleteEvent)] == [True, False]
    assert not any(e.replayed for e in of(tool_recorder.events, ToolStartEvent))

    store = MemoryStore()
    await leave(agent(), ThinkEvent)
    await agent(think_recorder).resume("t")
    assert [e.replayed for e in of(think_recorder.events, ModelCompleteEvent)] == [True, False]
    assert [e.replayed for e in of(think_recorder.events, ThinkEvent)] == [True, False]


async def test_time_at_work_is_added_up_and_downtime_is_not() -> None:
    clock = FakeClock()

    @tool
    async def work(seconds: int, ctx: ToolContext[Any]) -> str:
        """Work, then ask."""
        clock.advance(seconds)
        return str(ctx.interrupt("fine?")) if seconds == 20 else "worked"

    agent = Agent(
        ScriptedModel(call("work", seconds=10), call("work", seconds=20), "done"),
        tools=[work],
        clock=clock,
        checkpointer=MemoryStore(),
        termination=TimeLimit(1000),
    )
    asked = await agent.run("x", thread_id="t")
    clock.advance(3600)
    result = await agent.resume("t", "yes")
    assert asked.state.active_seconds == 30.0
    assert result.stop_reason == "NoToolCalls"
    assert result.state.active_seconds == 50.0
    assert (result.state.updated_at - result.state.started_at).total_seconds() > 3600


async def test_a_run_can_break_off_and_go_on_many_times() -> None:
    store = MemoryStore()
    model = ScriptedModel(*[call("add", a=n) for n in range(5)], "done")
    agent = Agent(model, tools=[add], checkpointer=store)
    await leave(agent, ThinkEvent)
    segments = 1
    while True:
        run = agent.resume("t")
        async for event in run:
            if isinstance(event, ThinkEvent) and not event.replayed and event.tool_calls:
                break
        else:
            break
        await run.aclose()
        segments += 1
    assert segments > 1
    assert results(run.result) == ["1", "2", "3", "4", "5"]
    assert run.result.usage.total_tokens == 90
    resumed = [b.segment for b in await journal(store) if isinstance(b, Resumed)]
    assert resumed == list(range(1, len(resumed) + 1))


async def test_a_run_left_before_its_end_was_reported_has_nothing_left_to_do() -> None:
    agent = Agent(ScriptedModel("hi"), checkpointer=MemoryStore())
    run = agent.run("x", thread_id="t")
    async for event in run:
        if event.type == "checkpoint" and getattr(event, "next_node", "") == END:
            break
    await run.aclose()
    with pytest.raises(NothingToResume, match="NoToolCalls"):
        await agent.resume("t")


async def test_a_run_left_on_its_way_out_ends_for_the_reason_it_had() -> None:
    model = ScriptedModel(call("add", a=1), after="repeat")
    agent = Agent(model, tools=[add], max_iterations=2, checkpointer=MemoryStore())
    run = agent.run("x", thread_id="t")
    async for event in run:
        if event.type == "checkpoint" and getattr(event, "next_node", "") == "terminate":
            break
    await run.aclose()
    result = await agent.resume("t")
    assert (result.stop_reason, result.satisfied) == ("MaxIterations", ("MaxIterations",))
    assert len(model.requests) == 2


async def test_a_failure_on_its_way_out_is_still_the_failure() -> None:
    agent = Agent(ScriptedModel(RuntimeError("down")), checkpointer=MemoryStore())
    run = agent.run("x", thread_id="t")
    async for event in run:
        if event.type == "checkpoint" and getattr(event, "next_node", "") == "terminate":
            break
    await run.aclose()
    result = await agent.resume("t")
    assert result.stop_reason == "ModelError"
    assert result.failed
    assert "down" in str(result.error)


async def test_calls_that_were_not_run_get_the_true_reason_after_a_resume() -> None:
    class Stop(Hook):
        def on_think(self, event: ThinkEvent) -> Any:
            stopped.cancel("out of policy")

    stopped = Agent(ScriptedModel(call("add", a=1)), tools=[add], checkpointer=MemoryStore(), hooks=[Stop()])
    run = stopped.run("x", thread_id="t")
    async for event in run:
        if event.type == "checkpoint" and getattr(event, "next_node", "") == "terminate":
            break
    await run.aclose()
    result = await stopped.resume("t")
    assert result.stop_reason == "Cancelled: out of policy"
    assert results(result) == ["Error: not run: Cancelled: out of policy"]


# -- what does not fit ----------------------------------------------------------------------------------------


async def test_a_new_default_does_not_keep_a_run_from_going_on() -> None:
    store = MemoryStore()
    agent = Agent(
        ScriptedModel([call("add", a=1), call("confirm", what="pay")], "done"), tools=[add, confirm], checkpointer=store
    )
    await agent.run("x", thread_id="t")

    @tool(name="add")
    async def other(a: int, b: int = 5) -> int:
        """The default has changed since."""
        return a + b

    changed = Agent(ScriptedModel("done"), tools=[other, confirm], checkpointer=store)
    result = await changed.resume("t", "yes")
    # What was done stays done: the model gave the same arguments.
    assert results(result) == ["2", "pay: yes"]


async def test_another_model_does_not_go_on_with_this_ones_answer() -> None:
    store = MemoryStore()
    await leave(Agent(ScriptedModel("hi", name="one:model"), checkpointer=store), ThinkEvent)
    with pytest.raises(StepMismatch):
        await Agent(ScriptedModel("hello", name="other:model"), checkpointer=store).resume("t")
    result = await Agent(ScriptedModel(name="one:model"), checkpointer=store).resume("t")
    assert result.message == "hi"


async def test_two_resumes_at_the_same_time_are_one_too_many() -> None:
    agent = Agent(ScriptedModel(call("confirm", what="pay"), "paid"), tools=[confirm], checkpointer=MemoryStore())
    await agent.run("x", thread_id="t")
    outcomes: Counter[str] = Counter()

    async def one() -> None:
        try:
            outcomes[(await agent.resume("t", "yes")).message] += 1
        except ThreadBusy:
            outcomes["busy"] += 1

    async with anyio.create_task_group() as group:
        group.start_soon(one)
        group.start_soon(one)
    assert outcomes == {"paid": 1, "busy": 1}


def breaking(at: int, *, stored: bool) -> InterceptedStore:
    """Dies at its n-th append, before or after the entries are stored."""
    left = [at]

    def die(*_: object) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise SimulatedCrash

    return InterceptedStore(after={"append": die}) if stored else InterceptedStore({"append": die})


async def broke_off(agent: Agent[Any, Any]) -> bool:
    """Whether a run on thread "t" died, in a task group perhaps."""
    try:
        await agent.run("x", thread_id="t")
    except (SimulatedCrash, BaseExceptionGroup) as e:
        if isinstance(e, BaseExceptionGroup) and e.subgroup(SimulatedCrash) is None:
            raise
        return True
    return False


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("mode", ["concurrent", "sequential"])
async def test_a_run_that_breaks_at_any_write_continues_to_the_same_end(stored: bool, mode: Any) -> None:
    once: Counter[int] = Counter()

    @tool
    async def charge(n: int) -> str:
        """May happen once only."""
        once[n] += 1
        return f"charged {n}"

    @tool(effect="pure")
    async def look(n: int) -> str:
        """May happen again."""
        await anyio.lowlevel.checkpoint()
        return f"saw {n}"

    def agent(store: MemoryStore | None) -> Agent[Any, str]:
        script: list[Any] = [[call("charge", n=1), call("look", n=1), call("charge", n=2)], call("look", n=2), "done"]
        model = ScriptedModel(script=lambda request: script)
        return Agent[Any, str](model, tools=[charge, look], checkpointer=store, tool_execution=mode)

    whole = await agent(None).run("x")
    writes = 0
    for at in range(1, 100):
        once.clear()
        store = breaking(at, stored=stored)
        if not await broke_off(agent(store)):
            break
        writes += 1
        try:
            result = await agent(store).resume("t")
        except NothingToResume:
            done = transitions(await journal(store))
            assert not done or done[-1][1] == END
            continue
        assert max(once.values()) == 1
        assert (result.stop_reason, result.message) == (whole.stop_reason, whole.message)
        for got, wanted in zip(results(result), results(whole), strict=True):
            # A call that may have happened is confessed and not repeated.
            assert got == wanted or got.startswith("Error: outcome unknown")
        if stored and mode == "sequential":
            unknown = [r for r in results(result) if r.startswith("Error: outcome unknown")]
            assert len(unknown) <= 1
    assert writes == {"concurrent": 11, "sequential": 8}[mode]


def steal(store: InterceptedStore) -> None:
    """Let another worker take the thread over."""
    store.before["append"] = lambda claim, bodies: Appended.FENCED


@pytest.mark.parametrize("calls", [[call("lose")], [call("lose"), call("add", a=1)]], ids=["alone", "beside"])
async def test_a_worker_that_lost_its_thread_stops_and_writes_nothing(calls: Any) -> None:
    store = InterceptedStore()

    @tool
    async def lose() -> str:
        """Somebody takes the thread over meanwhile."""
        steal(store)
        return "lost"

    model = ScriptedModel(calls, "never")
    agent = Agent(model, tools=[lose, add], checkpointer=store)
    with pytest.raises(Fenced, match="took the run over"):
        await agent.run("x", thread_id="t")
    assert len(model.requests) == 1
    assert ("execute", "think") not in transitions(await journal(store))


async def test_a_worker_that_lost_its_thread_tells_its_hooks_that_the_segment_is_over() -> None:
    store, recorder = InterceptedStore(), Recorder()

    class Lose(Hook):
        def on_think(self, event: ThinkEvent) -> None:
            steal(store)

    agent = Agent(ScriptedModel("never"), hooks=[Lose(), recorder], checkpointer=store)
    with pytest.raises(Fenced):
        await agent.run("x", thread_id="t")
    assert kinds(recorder.events).count("terminate") == 1


async def test_a_store_that_fails_leaves_the_run_open_and_the_model_reads_no_untruth() -> None:
    bodies.clear()
    store = FullStore(1, counts=lambda body: isinstance(body, Outcome) and body.step_id.node == "execute")
    agent = Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], checkpointer=store)
    with pytest.raises(JournalError, match="no space left"):
        await agent.run("x", thread_id="t")
    store.mend()
    result = await agent.resume("t")
    assert bodies["add"] == 1
    # The body ran, so the model may not be told that it did not.
    assert results(result)[0].startswith("Error: outcome unknown")


async def test_the_default_without_a_checkpointer_keeps_the_newest_state_and_no_history() -> None:
    agent = Agent(ScriptedModel(call("add", a=1), call("confirm", what="pay"), "paid"), tools=[add, confirm])
    asked = await agent.run("x")
    assert asked.store is not None
    assert await asked.store.read(asked.thread_id) == await asked.store.read(asked.thread_id)
    result = await agent.resume(asked, "yes")
    assert result.message == "paid"
    assert results(result) == ["2", "pay: yes"]


async def test_both_stores_make_the_same_run() -> None:
    def once(store: MemoryStore | None) -> Agent[Any, str]:
        script: list[Any] = [[call("add", a=1), call("nope")], call("add", a="x"), "done"]
        model = ScriptedModel(script=lambda request: script)
        return Agent[Any, str](model, tools=[add], checkpointer=store, clock=FakeClock(), tool_execution="sequential")

    runs = [await collect(once(store).run("x", thread_id="t")) for store in (MemoryStore(), None)]
    assert kinds(runs[0]) == kinds(runs[1])
    states: list[AgentState] = [(await once(store).run("x", thread_id="t")).state for store in (MemoryStore(), None)]
    forms = [converter.unstructure(s) for s in states]
    for form in forms:
        form["run_id"] = ""
        for execution in form["tool_executions"]:
            execution.pop("duration_ms", None)
    assert forms[0] == forms[1]
    assert len(of(runs[0], ThinkEvent)) == 3
