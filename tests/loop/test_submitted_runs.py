"""Turns that are handed in for a worker, and what reaches them from other processes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, cast

import anyio
import pytest
from tests.loop.kit import add, confirm

from locus import Agent, AgentResult, Message, TerminateEvent, ToolContext, tool
from locus.core.directives import Suspended
from locus.core.errors import ConfigError, Fenced, InputError, NothingToResume, QueueFull, StepMismatch
from locus.core.journal import Entry, Intent, Paused, StepId, Submitted
from locus.core.state import AgentState
from locus.journal import Claim, MemoryStore, Offer, Signal, ThreadQuery, pinned_queue
from locus.plugin import hookimpl
from locus.threads import Threads
from locus_kit.snapshots import SnapshotAdapter
from locus_testkit import FakeClock, ScriptedModel, call

pytestmark = pytest.mark.anyio


async def take(store: MemoryStore, queue: str = "default") -> Offer:
    """The next offer, which there must be."""
    offer = await store.take((queue,), "worker")
    assert offer is not None
    return offer


# -- handing in --------------------------------------------------------------------------------------


async def test_a_submitted_turn_is_run_by_the_agent_that_resumes_its_thread() -> None:
    store = MemoryStore()
    here = Agent(ScriptedModel(), checkpointer=store, name="clerk", version="3")
    there = Agent(ScriptedModel("done"), checkpointer=store, name="clerk")

    thread_id = await here.submit("Do it.", metadata={"user": "ann"}, priority=2)
    (listed,) = await store.threads()
    offer = await take(store, "clerk")
    result = await there.resume(offer.thread_id)
    assert await offer.done() is True

    assert (listed.thread_id, listed.status, listed.title, listed.agent_id) == (thread_id, "queued", "Do it.", "clerk")
    assert (offer.thread_id, offer.priority) == (thread_id, 2)
    assert (result.text, result.state.metadata["user"], result.state.metadata["locus.version"]) == ("done", "ann", "3")
    first = (await store.read(thread_id))[0].body
    assert isinstance(first, Submitted)
    assert first.run_id == result.run_id
    with pytest.raises(NothingToResume):
        await there.resume(thread_id)


async def test_a_turn_that_is_submitted_twice_is_run_once() -> None:
    store, model = MemoryStore(), ScriptedModel("one", "two")
    agent = Agent(model, checkpointer=store)
    for _ in range(3):
        assert await agent.submit("Do it.", thread_id="t", request_id="r") == "t"
    offer = await take(store)
    await agent.resume("t")
    assert await store.signals("t") == ()
    with pytest.raises(NothingToResume):
        await agent.resume("t")
    await agent.submit("Do it.", thread_id="t", request_id="r")
    with pytest.raises(NothingToResume):
        await agent.resume("t")
    assert await offer.done() is True
    assert (len(model.requests), await store.signals("t")) == (1, ())
    # Called directly under the same name, it is the same turn as well.
    assert (await agent.run("Do it.", thread_id="t", request_id="r")).text == "one"
    assert len(model.requests) == 1


async def test_each_submit_without_a_request_id_is_a_turn_of_its_own() -> None:
    store, model = MemoryStore(), ScriptedModel("one", "two", "three")
    agent = Agent(model, checkpointer=store)
    for text in ("a", "b", "c"):
        await agent.submit(text, thread_id="t")
    texts = []
    for _ in range(3):
        texts.append((await agent.resume("t")).text)
    with pytest.raises(NothingToResume):
        await agent.resume("t")
    assert texts == ["one", "two", "three"]
    asked = [m.text for m in model.requests[-1].messages if m.role == "user"]
    assert asked == ["a", "b", "c"]


async def test_a_turn_for_a_thread_that_was_never_submitted_is_offered() -> None:
    store = MemoryStore()
    agent = Agent(ScriptedModel("one", "two"), checkpointer=store, name="clerk")
    await agent.run("Hello.", thread_id="t")
    await agent.submit("And then?", thread_id="t")
    offer = await take(store, "clerk")
    assert (await agent.resume(offer.thread_id)).text == "two"


async def test_a_submitted_turn_waits_for_its_time() -> None:
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    agent = Agent(ScriptedModel(), checkpointer=store)
    await agent.submit("Later.", thread_id="t", queue="night", not_before=clock.now() + timedelta(hours=1))
    assert await store.take(("night",), "w") is None
    clock.advance(3601)
    assert (await take(store, "night")).thread_id == "t"


async def test_what_cannot_be_submitted_is_refused_in_the_call() -> None:
    async def nothing(*_: Any) -> None:
        return None

    agent = Agent(ScriptedModel(), checkpointer=MemoryStore())
    with pytest.raises(InputError, match="one message"):
        await agent.submit([Message("user", "a"), Message("assistant", "b"), Message("user", "c")])
    with pytest.raises(InputError, match="empty"):
        await agent.submit(" ")
    for wrong in ({"priority": 3}, {"queue": ""}, {"not_before": datetime(2030, 1, 1)}, {"request_id": ""}):  # noqa: DTZ001
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            await agent.submit("Do it.", **wrong)  # the mistakes
    with pytest.raises(ConfigError, match="checkpointer"):
        await Agent(ScriptedModel()).submit("Do it.")
    with pytest.raises(ConfigError, match="SnapshotAdapter hands no threads to workers"):
        await Agent(ScriptedModel(), checkpointer=SnapshotAdapter(nothing, nothing)).submit("Do it.")


# -- yielding ----------------------------------------------------------------------------------------


def counting(*, turns: int = 3) -> ScriptedModel:
    return ScriptedModel(*[call("add", a=n, b=1) for n in range(turns)], "done")


async def test_a_segment_yields_after_so_many_iterations_and_the_run_ends_as_if_it_had_not() -> None:
    whole = await Agent(counting(), tools=[add]).run("Count.")
    store, model = MemoryStore(), counting()
    agent = Agent(model, tools=[add], checkpointer=store)
    await agent.submit("Count.", thread_id="t")
    reasons, asked = [], []
    result = await agent.resume("t", yield_after=1, max_attempts=2)
    while result.is_open:
        reasons.append(result.stop_reason)
        asked.append(len(model.requests))
        result = await agent.resume("t", yield_after=1, max_attempts=2)
    assert (reasons, asked) == (["Yielded"] * 3, [1, 2, 3])
    assert (result.text, result.iterations, result.stop_reason) == ("done", whole.iterations, whole.stop_reason)
    assert [m.text for m in result.state.messages] == [m.text for m in whole.state.messages]
    bodies = [entry.body for entry in await store.read("t")]
    assert [body.kind for body in bodies if isinstance(body, Paused)] == ["yielded"] * 3


async def test_a_segment_after_a_yield_is_shown_no_more_the_longer_the_run_is() -> None:
    shown: list[int] = []

    class Watched(MemoryStore):
        async def claim(self, thread_id: str, worker: str) -> Claim:
            found = await super().claim(thread_id, worker)
            shown.append(len(found.entries))
            return found

    agent = Agent(counting(turns=30), tools=[add], checkpointer=Watched(), max_iterations=99)
    await agent.submit("Count.", thread_id="t")
    while (await agent.resume("t", yield_after=1)).is_open:
        pass
    assert (len(shown), max(shown) < 5) == (31, True)


async def test_a_drained_run_yields_at_its_next_transition_and_goes_on_elsewhere() -> None:
    store = MemoryStore()

    @tool
    async def slow() -> str:
        """Work, while the worker is asked to leave."""
        assert agent.drain(thread_id="other") == 0
        assert agent.drain() == 1
        return "worked"

    agent = Agent(ScriptedModel(call("slow"), "never"), tools=[slow], checkpointer=store)
    await agent.submit("Work.", thread_id="t")
    run = agent.resume("t")
    ended = [event async for event in run if isinstance(event, TerminateEvent)]
    assert (run.result.stop_reason, run.result.is_open, run.result.not_before) == ("Yielded", True, None)
    assert [event.reason for event in ended] == ["Yielded"]
    assert (await store.threads())[0].status == "paused"
    result = await Agent(ScriptedModel("done"), tools=[slow], checkpointer=store).resume("t")
    assert (result.text, result.state.tool_executions[0].result) == ("done", "worked")


async def test_a_run_that_sleeps_is_woken_at_its_time_and_not_before() -> None:
    clock, naps = FakeClock(), [0]

    class Naps:
        @hookimpl
        async def locus_think(self, state: AgentState, run: Any) -> AgentState:
            if not naps[0]:
                naps[0] += 1
                raise Suspended(until=clock.now() + timedelta(hours=8))
            return await run.think(state)  # type: ignore[no-any-return]

    store = MemoryStore()
    agent = Agent(ScriptedModel("awake"), hooks=[Naps()], checkpointer=store, clock=clock)
    slept = await agent.run("Sleep.", thread_id="t")
    assert (slept.stop_reason, slept.is_open) == ("Yielded", True)
    assert slept.not_before == clock.now() + timedelta(hours=8)
    assert await store.next_ready(clock.now()) is None
    head = (await store.threads())[0].head
    early = await agent.resume("t", max_attempts=5)
    assert (early.is_open, early.not_before, (await store.threads())[0].head) == (True, slept.not_before, head)
    clock.advance(8 * 3600)
    assert await store.next_ready(clock.now()) == "t"
    late = await agent.resume("t", max_attempts=5)
    assert (late.text, late.is_open, late.not_before) == ("awake", False, None)


# -- signals -----------------------------------------------------------------------------------------


async def test_a_cancel_reaches_a_run_that_another_process_holds() -> None:
    store, elsewhere = MemoryStore(), anyio.Event()

    async def think(request: Any) -> str:
        elsewhere.set()
        await anyio.sleep_forever()
        raise AssertionError

    agent = Agent(ScriptedModel(think), checkpointer=store)
    await agent.submit("Work.", thread_id="t")
    threads = Threads(store)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:

            async def stop() -> None:
                await elsewhere.wait()
                assert await threads.cancel("t", "enough") is True

            group.start_soon(stop)
            result = await agent.resume("t")
    assert (result.stop_reason, result.is_open) == ("Cancelled: enough", False)
    assert await store.signals("t") == ()
    assert await threads.cancel("t") is False
    assert await threads.cancel("nobody") is False


async def test_a_cancel_ends_a_run_that_waits_in_its_queue_or_has_yielded() -> None:
    store, model = MemoryStore(), counting()
    agent = Agent(model, tools=[add], checkpointer=store)
    await agent.submit("Count.", thread_id="queued")
    await agent.submit("Count.", thread_id="yielded")
    await agent.resume("yielded", yield_after=1)
    for name, asked in (("queued", 1), ("yielded", 1)):
        assert await agent.threads.cancel(name, "enough") is True
        result = await agent.resume(name)
        assert (result.stop_reason, result.is_open, len(model.requests)) == ("Cancelled: enough", False, asked)
        assert await store.signals(name) == ()


async def test_a_cancel_that_comes_too_late_cancels_no_later_run() -> None:
    store = MemoryStore()
    agent = Agent(ScriptedModel("one", "two"), checkpointer=store)
    await agent.submit("Do it.", thread_id="t")
    assert await agent.threads.cancel("t") is True
    # What a worker that had not seen it does: it ends the run, and dies before it forgets the signal.
    claim = await store.claim("t", "w")
    await store.release(claim)
    signal = (await store.signals("t"))[0]
    result = await agent.resume("t")
    assert result.stop_reason == "Cancelled"
    await store.signal("t", Signal(body=signal.body, id="again"))
    await agent.submit("Go on.", thread_id="t")
    assert (await agent.resume("t")).text == "one"


async def test_an_answer_reaches_a_run_that_waits_for_it() -> None:
    store = MemoryStore()
    agent = Agent(ScriptedModel(call("confirm", what="go"), "done"), tools=[confirm], checkpointer=store)
    await agent.submit("Ask me.", thread_id="t")
    offer = await take(store)
    asked = await agent.resume("t")
    assert await offer.done() is True
    assert asked.interrupts != ()
    assert await store.take(("default",), "w") is None
    assert await agent.threads.answer("t", "yes") is True
    offer = await take(store)
    result = await agent.resume(offer.thread_id)
    assert (result.text, result.is_open) == ("done", False)
    # Said twice, and to a question that nobody asks any more: it changes nothing.
    assert await agent.threads.answer("t", "no") is True
    with pytest.raises(NothingToResume):
        await agent.resume("t")
    assert await store.signals("t") == ()


async def test_a_worker_that_lost_its_claim_pays_for_no_other_model_call() -> None:
    store = MemoryStore()

    async def think(request: Any) -> str:
        held = store._threads["t"].held
        assert held is not None
        store._threads["t"].held = None
        await store.claim("t", "successor")
        held.watch.lose()
        await anyio.sleep_forever()
        raise AssertionError

    model = ScriptedModel(think, "never")
    agent = Agent(model, checkpointer=store)
    await agent.submit("Work.", thread_id="t")
    with anyio.fail_after(30), pytest.raises(Fenced):
        await agent.resume("t")
    assert len(model.requests) == 1


async def test_a_child_of_a_run_that_lost_its_claim_is_left_for_the_successor() -> None:
    store = MemoryStore()

    async def overtaken(request: Any) -> str:
        held = store._threads["t"].held
        assert held is not None
        store._threads["t"].held = None
        taken.append(await store.claim("t", "successor"))
        held.watch.lose()
        await anyio.sleep_forever()
        raise AssertionError

    taken: list[Claim] = []
    child = Agent(ScriptedModel(call("add", a=1), overtaken, "found"), tools=[add])

    @tool(effect="pure")
    async def delegate(ctx: ToolContext[Any]) -> str:
        """Have it looked up."""
        found: AgentResult = await ctx.run_child(child, "Look.")
        return found.text

    agent = Agent(ScriptedModel(call("delegate"), "done"), tools=[delegate], checkpointer=store)
    await agent.submit("Work.", thread_id="t")
    with anyio.fail_after(30), pytest.raises(Fenced):
        await agent.resume("t")
    assert {info.status for info in await store.threads(ThreadQuery()) if info.thread_id != "t"} == {"crashed"}
    await store.release(taken[0])
    result = await agent.resume("t")
    assert [each.result for each in result.state.tool_executions] == ["found"]


# -- versions ----------------------------------------------------------------------------------------


async def test_a_run_of_another_version_is_never_set_aside() -> None:
    store = MemoryStore()

    @tool
    def pay(amount: int) -> str:
        """Pay."""
        raise AssertionError("it is under way already")

    old = Agent(ScriptedModel(call("pay", amount=1)), tools=[pay], checkpointer=store, version="1")
    await old.submit("Pay.", thread_id="t")
    stopped = Agent(
        ScriptedModel(call("pay", amount=1)), tools=[pay], checkpointer=store, version="1", hooks=[_Stops()]
    )
    with pytest.raises(KeyboardInterrupt):
        await stopped.resume("t")
    claim = await store.claim("t", "w")
    await store.append(
        claim, [Intent(run_id=_run_of(claim.entries), step_id=StepId(0, "execute"), digest="other", policy="pure")]
    )
    await store.release(claim)
    new = Agent(ScriptedModel("never"), tools=[pay], checkpointer=store, version="2")
    for _ in range(5):
        with pytest.raises(StepMismatch):
            await new.resume("t", max_attempts=2)
    listed = (await store.threads())[0]
    assert (listed.status, listed.metadata["locus.version"]) == ("paused", "1")


class _Stops:
    @hookimpl
    async def locus_execute(self, state: AgentState, run: Any) -> AgentState:
        raise KeyboardInterrupt


def _run_of(entries: Sequence[Entry]) -> str:
    return entries[-1].body.run_id


# -- a queue that is full, and versions --------------------------------------------------------------


async def test_a_full_queue_takes_no_more_turns_and_says_how_many_wait() -> None:
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    agent = Agent(ScriptedModel("one", "two"), checkpointer=store, name="clerk")
    await agent.submit("One.", thread_id="a", max_depth=2)
    await agent.submit("Two.", thread_id="b", max_depth=2, not_before=clock.now() + timedelta(hours=1))

    with pytest.raises(QueueFull, match="'clerk' is full: 2 waiting, max_depth=2") as refused:
        await agent.submit("Three.", thread_id="c", max_depth=2)
    assert (refused.value.queue, refused.value.waiting, refused.value.max_depth) == ("clerk", 2, 2)
    assert {info.thread_id for info in await store.threads()} == {"a", "b"}

    # Another queue, or no bound, is not full; and what a worker was offered does not wait.
    await agent.submit("Else.", queue="other", max_depth=1)
    offer = await take(store, "clerk")
    await agent.submit("Three.", thread_id="c", max_depth=2)
    assert await offer.back() is True
    await agent.submit("Four.", thread_id="d")


async def test_a_full_queue_accepts_a_turn_again_that_is_in_it() -> None:
    store = MemoryStore()
    agent = Agent(ScriptedModel("one", "two"), checkpointer=store, name="clerk")
    for thread_id, request_id in (("a", "1"), ("a", "2"), ("b", "1")):
        await agent.submit("Do it.", thread_id=thread_id, request_id=request_id)
    for thread_id, request_id in (("a", "1"), ("a", "2"), ("b", "1")):
        assert await agent.submit("Do it.", thread_id=thread_id, request_id=request_id, max_depth=1) == thread_id
    for thread_id, named in (("a", "3"), ("c", "1"), ("b", None)):
        with pytest.raises(QueueFull):
            await agent.submit("Do it.", thread_id=thread_id, request_id=named, max_depth=1)
    offer = await take(store, "clerk")
    await agent.resume(offer.thread_id)
    assert await agent.submit("Do it.", thread_id="a", request_id="1", max_depth=1) == "a"
    with pytest.raises(ConfigError, match="max_depth must be an integer of at least 1"):
        await agent.submit("Do it.", max_depth=0)


async def test_a_run_that_is_bound_to_its_version_waits_where_that_version_looks() -> None:
    store = MemoryStore()
    agent = Agent(ScriptedModel(), checkpointer=store, name="clerk", version="3")
    thread_id = await agent.submit("Do it.", pin=True)
    assert (await take(store, pinned_queue("clerk", "3"))).thread_id == thread_id
    for wrong in (
        partial(agent.submit, "Do it.", pin=True, queue="q"),
        partial(Agent(ScriptedModel(), checkpointer=store, name="clerk").submit, "Do it.", pin=True),
        partial(Agent(ScriptedModel(), checkpointer=store, version="3").submit, "Do it.", pin=True),
        partial(agent.submit, "Do it.", pin=cast("bool", 1)),
    ):
        with pytest.raises(ConfigError, match="pin"):
            await wrong()
    assert len(await store.threads()) == 1
