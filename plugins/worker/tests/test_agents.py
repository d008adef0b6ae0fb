"""Runs of agents in a worker: each is run by one of them, to its end."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from locus import Agent, tool
from locus.core.errors import ConfigError
from locus.core.journal import Intent, Transition
from locus.journal import JournalHost, JournalStore, MemoryStore, QueueStore
from locus_plugin_worker import Worker, submit_turn
from locus_plugin_worker.agents import queue_of
from locus_testkit import ScriptedModel, call

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
    model = ScriptedModel(script=lambda request: [call("pay", order="7"), "Done."])
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
    turn = await submit_turn(shop(till), "Pay order 7.", store=store)

    log = await work(shop(till), store)

    assert till.paid == ["7"]
    assert await text_of(store, turn.thread_id) == "Done."
    assert [each.text for each in log.notices if each.kind == "done"] == ["NoToolCalls"]
    assert await store.queues() == ()


async def test_an_agent_whose_checkpointer_keeps_queues_needs_no_other_store() -> None:
    store, till = MemoryStore(), Till()
    agent = shop(till, store=store)
    turn = await submit_turn(agent, "Pay order 7.", store=store)

    await work(agent, None)

    assert await text_of(store, turn.thread_id) == "Done."


async def test_several_workers_run_each_run_once() -> None:
    store, till = MemoryStore(), Till()
    turns = [await submit_turn(shop(till), "Pay.", store=store, thread_id=f"t{n}") for n in range(12)]

    agents = [shop(till) for _ in range(3)]
    logs: list[Log] = []

    async def one(agent: Agent[Any, Any]) -> None:
        logs.append(await work(agent, store, slots=1))

    async with anyio.create_task_group() as group:
        for agent in agents:
            group.start_soon(one, agent)

    assert len(till.paid) == 12
    assert sorted(t for log in logs for t in log["done"]) == sorted(turn.thread_id for turn in turns)
    assert [await text_of(store, turn.thread_id) for turn in turns] == ["Done."] * 12


async def test_a_thread_that_another_holds_goes_back_for_a_quarter_of_the_lease() -> None:
    store, till = MemoryStore(lease=2.0), Till()
    turn = await submit_turn(shop(till), "Pay.", store=store)
    claim = await store.claim(turn.thread_id, "a person")

    log = await work(shop(till), store)

    (back,) = [each for each in log.notices if each.kind == "back"]
    assert (back.seconds, back.text, till.paid) == (0.5, "held by a person", [])
    await store.release(claim)


async def test_a_run_that_ended_before_its_offer_did_is_not_run_again() -> None:
    store, till = MemoryStore(lease=0.05), Till()
    turn = await submit_turn(shop(till), "Pay.", store=store)
    assert await store.take([turn.queue], "dies after the end and before done") is not None
    await shop(till, store=store).run("Pay.", thread_id=turn.thread_id, request_id=turn.run_id)
    await anyio.sleep(0.1)

    log = await work(shop(till), store)

    assert till.paid == ["7"]
    assert log["done"] == [turn.thread_id]
    entries = await store.read(turn.thread_id)
    assert sum(isinstance(e.body, Transition) and e.body.next_node == "end" for e in entries) == 1
    assert sum(isinstance(e.body, Intent) for e in entries) == 1


async def test_a_run_for_another_agent_waits_in_the_queue_of_that_one() -> None:
    store, till = MemoryStore(), Till()
    turn = await submit_turn(shop(till, name="other"), "Pay.", store=store, queue="tenant:a")

    log = await work(shop(till), store, queues=["tenant:*"])

    (back,) = [each for each in log.notices if each.kind == "back"]
    assert "no agent 'other' here" in back.text
    assert await store.queues() == (queue_of("other"),)
    assert await text_of(store, turn.thread_id) is None


async def test_a_run_in_a_queue_of_a_tenant_goes_to_the_agent_it_was_submitted_for() -> None:
    store, first, second = MemoryStore(), Till(), Till()
    turn = await submit_turn(shop(second, name="second"), "Pay.", store=store, queue="tenant:a")

    await work([shop(first, name="first"), shop(second, name="second")], store, queues=["tenant:*"])

    assert (first.paid, second.paid) == ([], ["7"])
    assert await text_of(store, turn.thread_id) == "Done."


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
