"""Runs of agents in a worker: each is run by one of them, to its end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import anyio
import pytest

from locus import Agent, ToolContext, tool
from locus.core.directives import Suspended
from locus.core.errors import ConfigError
from locus.core.journal import Answered, Cancelled, Intent, Outcome, StepId, Transition
from locus.core.messages import Role
from locus.core.state import AgentState
from locus.journal import JournalHost, JournalStore, MemoryStore, QueueStore, Signal
from locus.plugin import hookimpl
from locus_plugin_worker import Worker
from locus_plugin_worker.agents import queue_of
from locus_testkit import FakeClock, ScriptedModel, call

from .test_handlers import PATIENCE, Log

pytestmark = pytest.mark.anyio


class Till:
    """A shop with a tool that may be used once for each order."""

    def __init__(self) -> None:
        self.paid: list[str] = []

    @tool
    async def pay(self, order: str) -> str:
        """Pay an order."""
        self.paid.append(order)
        return "paid"


def shop(till: Till, *, name: str | None = "shop", store: JournalStore | None = None) -> Agent[Any, Any]:
    # By the conversation, not by the number of requests: several runs, and another worker that goes on.
    model = ScriptedModel(script=lambda request: [call("pay", order="7"), "Done."], after="cycle")
    return Agent(model, tools=[till], name=name, checkpointer=store)


async def work(given: Any, store: Any, **options: Any) -> Log:
    log = Log()
    with anyio.fail_after(PATIENCE):
        await Worker(given, store, on_notice=log, **options).run(until_idle=True)
    return log


async def text_of(store: Any, thread: str) -> str | None:
    host = await JournalHost.peek(store, thread)
    last = None if host is None or host.open_node is not None else host.state.last_assistant
    return None if last is None else last.text


async def test_a_turn_that_was_handed_in_is_run_to_its_end() -> None:
    store, till = MemoryStore(), Till()
    thread = await shop(till, store=store).submit("Pay order 7.")

    log = await work(shop(till), store)

    assert till.paid == ["7"]
    assert await text_of(store, thread) == "Done."
    assert [each.text for each in log.notices if each.kind == "done"] == ["NoToolCalls"]
    assert await store.queues() == ()


async def test_an_agent_whose_checkpointer_keeps_queues_needs_no_other_store() -> None:
    store, till = MemoryStore(), Till()
    agent = shop(till, store=store)
    thread = await agent.submit("Pay order 7.")

    await work(agent, None)

    assert await text_of(store, thread) == "Done."


async def test_several_workers_run_each_run_once() -> None:
    store, till = MemoryStore(), Till()
    threads = [await shop(till, store=store).submit("Pay.", thread_id=f"t{n}") for n in range(12)]

    agents = [shop(till) for _ in range(3)]
    logs: list[Log] = []

    async def one(agent: Agent[Any, Any]) -> None:
        logs.append(await work(agent, store, slots=1))

    async with anyio.create_task_group() as group:
        for agent in agents:
            group.start_soon(one, agent)

    assert len(till.paid) == 12
    assert sorted(t for log in logs for t in log["done"]) == sorted(thread for thread in threads)
    assert [await text_of(store, thread) for thread in threads] == ["Done."] * 12


async def test_a_thread_that_another_holds_goes_back_for_a_quarter_of_the_lease() -> None:
    store, till = MemoryStore(lease=2.0), Till()
    thread = await shop(till, store=store).submit("Pay.")
    claim = await store.claim(thread, "a person")

    log = await work(shop(till), store)

    (back,) = [each for each in log.notices if each.kind == "back"]
    assert (back.seconds, back.text, till.paid) == (0.5, "held by a person", [])
    await store.release(claim)


async def test_a_run_that_ended_before_its_offer_did_is_not_run_again() -> None:
    store, till = MemoryStore(lease=0.05), Till()
    thread = await shop(till, store=store).submit("Pay.")
    assert await store.take(["shop"], "dies after the end and before done") is not None
    await shop(till, store=store).run("Pay.", thread_id=thread, request_id="r")
    await anyio.sleep(0.1)

    log = await work(shop(till), store)

    assert till.paid == ["7"]
    assert log["done"] == [thread]
    entries = await store.read(thread)
    assert sum(isinstance(e.body, Transition) and e.body.next_node == "end" for e in entries) == 1
    assert sum(isinstance(e.body, Intent) for e in entries) == 1


async def test_a_run_for_another_agent_waits_in_the_queue_of_that_one() -> None:
    store, till = MemoryStore(), Till()
    thread = await shop(till, name="other", store=store).submit("Pay.", queue="tenant:a")

    log = await work(shop(till), store, queues=["tenant:*"])

    (back,) = [each for each in log.notices if each.kind == "back"]
    assert "no agent 'other' here" in back.text
    assert await store.queues() == (queue_of("other"),)
    assert await text_of(store, thread) is None


async def test_a_run_in_a_queue_of_a_tenant_goes_to_the_agent_it_was_submitted_for() -> None:
    store, first, second = MemoryStore(), Till(), Till()
    thread = await shop(second, name="second", store=store).submit("Pay.", queue="tenant:a")

    await work([shop(first, name="first"), shop(second, name="second")], store, queues=["tenant:*"])

    assert (first.paid, second.paid) == ([], ["7"])
    assert await text_of(store, thread) == "Done."


@pytest.mark.parametrize(
    ("names", "message"), [((None,), "needs a name, by which a worker knows"), (("a", "a"), "two agents are named 'a'")]
)
async def test_agents_that_cannot_be_told_apart_are_refused(names: tuple[str | None, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Worker([shop(Till(), name=name) for name in names], MemoryStore())


async def test_agents_with_several_stores_are_refused() -> None:
    agents = [shop(Till(), name=name, store=MemoryStore()) for name in ("a", "b")]
    with pytest.raises(ConfigError, match="have 2 checkpointers"):
        Worker(agents)
    with pytest.raises(ConfigError, match="expected a store with queues, got None"):
        Worker(shop(Till()))


def test_a_memory_store_keeps_queues() -> None:
    assert isinstance(MemoryStore(), QueueStore)


class Counter:
    """Tools that leave traces, so that a test can count who did what."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.began, self.opened = anyio.Event(), anyio.Event()

    @tool(effect="once")
    async def first(self) -> str:
        """Do the first thing, when the gate is open."""
        self.done.append("first")
        self.began.set()
        await self.opened.wait()
        return "first done"

    @tool(effect="once")
    async def second(self) -> str:
        """Do the second thing."""
        self.done.append("second")
        return "second done"

    @tool
    async def ask(self, ctx: ToolContext[None], question: str) -> str:
        """Ask a person."""
        self.done.append("asked")
        return f"said {ctx.interrupt(question, options=['yes', 'no'])}"


def agent_of(counter: Counter, store: Any, *turns: Any, **options: Any) -> Agent[Any, Any]:
    model = ScriptedModel(script=lambda request: turns)
    return Agent(model, tools=[counter], name="steps", checkpointer=store, **options)


STEPS = (call("first"), call("second"), "Done.")


async def test_a_run_yields_to_another_worker_when_its_own_drains() -> None:
    store, counter, log = MemoryStore(), Counter(), Log()
    agent = agent_of(counter, store, *STEPS)
    thread = await agent.submit("Go.")
    worker = Worker(agent, on_notice=log)

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(worker.run)
            await counter.began.wait()
            worker.drain()
            await anyio.sleep(0.01)
            counter.opened.set()

    (back,) = [each for each in log.notices if each.kind == "back"]
    assert (back.text, back.seconds, counter.done) == ("yielded", 0.0, ["first"])
    assert (await store.depth("steps")).ready == 1

    await work(agent_of(counter, store, *STEPS), None)
    assert counter.done == ["first", "second"]
    assert await text_of(store, thread) == "Done."


async def test_a_cancel_reaches_a_run_in_a_worker() -> None:
    store, counter, log = MemoryStore(), Counter(), Log()
    agent = agent_of(counter, store, *STEPS)
    thread = await agent.submit("Go.")

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(partial(Worker(agent, on_notice=log).run, until_idle=True))
            await counter.began.wait()
            await store.signal(thread, Signal(body=Cancelled(run_id="", reason="too dear"), id="c"))
            counter.opened.set()

    # Offered once more, because the signal came while it ran: then nothing is left to do.
    done, *more = [each.text for each in log.notices if each.kind == "done"]
    assert (done, more, counter.done) == ("Cancelled: too dear", ["nothing was left to do"], ["first"])
    assert await store.signals(thread) == ()


async def test_an_answer_brings_a_waiting_run_back_to_a_worker() -> None:
    store, counter = MemoryStore(), Counter()
    agent = agent_of(counter, store, call("ask", question="Pay?"), call("second"), "Done.")
    thread = await agent.submit("Go.")

    log = await work(agent, None)
    assert [each.text for each in log.notices if each.kind == "done"] == ["waits for an answer: Pay?"]
    assert await store.queues() == ()

    await store.signal(thread, Signal(body=Answered(run_id="", interrupt_id="", answer="yes"), id="a"))
    await work(agent, None)
    assert counter.done == ["asked", "asked", "second"]  # its body is entered again, with the answer
    assert await text_of(store, thread) == "Done."


async def test_turns_of_one_thread_are_run_one_after_another() -> None:
    store, till = MemoryStore(), Till()
    agent = shop(till, store=store)
    for n in range(4):
        assert await agent.submit(f"Pay {n}.", thread_id="t", request_id=f"r{n}") == "t"
        await agent.submit("The same again.", thread_id="t", request_id=f"r{n}")

    log = await work(agent, None)

    host = await JournalHost.peek(store, "t")
    assert host is not None
    said = [m.text for m in host.state.messages if m.role is Role.USER]
    assert said == ["Pay 0.", "Pay 1.", "Pay 2.", "Pay 3."]
    assert len(till.paid) == 4
    assert log["done"] == ["t"]
    assert await store.queues() == ()


@pytest.mark.parametrize("version", ["1", None])
async def test_a_run_that_other_code_cannot_go_on_with_is_left_to_its_version(version: str | None) -> None:
    store, counter = MemoryStore(), Counter()
    counter.opened.set()
    old = agent_of(counter, store, *STEPS, version=version)
    thread = await old.submit("Go.")
    assert (await old.resume(thread, yield_after=1)).stop_reason == "Yielded"
    claim = await store.claim(thread, "a worker with the old code")
    asked = Outcome(run_id=(await state_of(store, thread)).run_id, step_id=StepId(1, "think"), digest="of old code")
    await store.append(claim, [asked])
    await store.release(claim)

    log = await work(agent_of(counter, store, *STEPS, version="2"), None)

    (back,) = [each for each in log.notices if each.kind == "back"]
    assert log["done"] == []
    assert counter.done == ["first"]
    if version is None:
        assert (await store.queues(), back.seconds > 0, back.is_failure) == (("steps",), True, True)
    else:
        assert (await store.queues(), back.is_failure) == (("agent.steps@1",), False)
        assert back.text.startswith("begun by version 1: ")
        assert Worker(old).rota.wanted == ("steps", "agent.steps@1")


async def state_of(store: Any, thread: str) -> AgentState:
    host = await JournalHost.peek(store, thread)
    assert host is not None
    return host.state


async def test_a_sleeping_run_is_offered_when_its_time_has_come() -> None:
    store, till = MemoryStore(), Till()
    agent = shop(till, store=store)
    thread = await agent.submit("Pay.", not_before=datetime.now(UTC) + timedelta(seconds=0.3))

    assert (await work(agent, None))["taken"] == []
    await anyio.sleep(0.4)
    assert (await work(agent, None))["done"] == [thread]


async def test_a_run_that_is_bound_to_a_version_is_run_by_that_version_alone() -> None:
    clock, till = FakeClock(), Till()
    store = MemoryStore(clock=clock)
    model = ScriptedModel(script=lambda request: ["Done."], after="cycle")
    old = Agent(model, tools=[till], name="shop", version="1", checkpointer=store)
    new = Agent(model, tools=[till], name="shop", version="2")
    thread = await old.submit("Pay.", pin=True)

    for queues in ((), ("agent.*",), (queue_of("shop", "1"),)):
        log = await work(new, store, queues=queues)
        assert [each.text for each in log.notices if each.kind == "done"] == []
        assert (await store.threads())[0].status == "queued"
        # An offer that another version has given back comes again later, and not at once.
        assert all(each.seconds > 1 for each in log.notices if each.kind == "back")
        clock.advance(60)
    await work(old, store)

    assert await text_of(store, thread) == "Done."


async def test_a_worker_that_dies_between_the_release_and_the_end_of_its_offer_loses_no_sleep() -> None:
    clock = FakeClock(datetime.now(UTC))
    store, naps = MemoryStore(clock=clock, lease=30.0), list[datetime]()

    class Naps:
        @hookimpl
        async def locus_think(self, state: AgentState, run: Any) -> AgentState:
            if not naps:
                naps.append(clock.now() + timedelta(hours=8))
                raise Suspended(until=naps[0])
            return await run.think(state)  # type: ignore[no-any-return]

    agent = Agent(ScriptedModel("Awake."), hooks=[Naps()], name="shop", checkpointer=store, clock=clock)
    thread = await agent.submit("Sleep.")
    offer = await store.take(["shop"], "dying")
    assert offer is not None
    slept = await agent.resume(thread, max_attempts=5)
    assert slept.not_before == naps[0]

    # It died here: the thread is free, and only the offer is left.
    assert (await store.threads())[0].holder is None
    await work(agent, store)
    assert (await store.depth("shop")).held == 1
    clock.advance(31)
    early = await work(agent, store)
    assert [each.text[:12] for each in early.notices if each.kind == "back"] == ["sleeps until"]
    assert (await store.depth("shop")).sleeping == 1
    clock.advance(9 * 3600)
    await work(agent, store)
    assert await text_of(store, thread) == "Awake."
