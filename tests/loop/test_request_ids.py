"""The same request id on a thread is the same turn: it is run once, whoever asks for it again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from locus import Agent, tool
from locus.core.errors import ConfigError, RequestSuperseded, ThreadBusy
from locus.core.journal import START, Transition
from locus.journal import MemoryStore
from locus.journal.store import JournalStore
from locus_plugin_sqlite import SqliteStore
from locus_testkit import CrashingStore, ScriptedModel, SimulatedCrash, call

from .kit import answers, bodies, collect, confirm, interrupting

pytestmark = pytest.mark.anyio


@tool(effect="pure")
def add(a: int) -> int:
    """Add one."""
    return a + 1


Stores = Callable[[], JournalStore]


@pytest.fixture(params=["memory", "newest state", "sqlite", "sqlite with snapshots"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Stores:
    """Opens the store; what lies in a file is read afresh each time."""
    if request.param == "sqlite":
        return lambda: SqliteStore(tmp_path / "runs.db")
    if request.param == "sqlite with snapshots":

        def often() -> SqliteStore:
            store = SqliteStore(tmp_path / "runs.db")
            store.snapshot_every = 1
            return store

        return often
    store = MemoryStore(history=request.param == "memory")
    return lambda: store


def agent(store: JournalStore, *turns: Any) -> Agent[Any, str]:
    return Agent(ScriptedModel(*turns), tools=[add, confirm], checkpointer=store)


async def test_an_ended_turn_is_not_run_again(opened: Stores) -> None:
    first = await agent(opened(), call("add", a=1), "2.").run("1 + 1?", thread_id="t", request_id="r")
    second = agent(opened())
    result = await second.run("1 + 1?", thread_id="t", request_id="r")
    assert (result.text, result.run_id, result.stop_reason) == ("2.", first.run_id, first.stop_reason)
    assert (result.state, result.usage, result.detail) == (first.state, first.usage, first.detail)
    assert await collect(second.run("something else", thread_id="t", request_id="r")) == []


async def test_a_turn_that_a_limit_ended_says_the_same_again(opened: Stores) -> None:
    made = Agent(ScriptedModel(call("add", a=1)), tools=[add], checkpointer=opened(), max_iterations=1)
    first = await made.run("x", thread_id="t", request_id="r")
    again = await agent(opened()).run("x", thread_id="t", request_id="r")
    assert (again.stop_reason, again.detail, again.satisfied) == (first.stop_reason, first.detail, first.satisfied)
    assert again.stop_reason == "MaxIterations"


async def test_a_turn_that_waits_for_a_person_still_waits(opened: Stores) -> None:
    first = await agent(opened(), call("confirm", what="go")).run("x", thread_id="t", request_id="r")
    bodies.clear()
    again = await agent(opened()).run("x", thread_id="t", request_id="r")
    assert again.ending.is_interrupted
    assert again.interrupts == first.interrupts
    assert not bodies
    ended = await agent(opened(), "gone").resume("t", "yes")
    assert (await agent(opened()).run("x", thread_id="t", request_id="r")).state == ended.state


async def test_a_second_caller_meets_the_first(opened: Stores) -> None:
    store, entered, go_on = opened(), anyio.Event(), anyio.Event()

    @tool
    async def work() -> str:
        """Work."""
        entered.set()
        await go_on.wait()
        return "done"

    made = Agent(ScriptedModel(call("work"), "fine"), tools=[work], checkpointer=store)
    got = []

    async def first() -> None:
        got.append(await made.run("x", thread_id="t", request_id="r"))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(first)
            await entered.wait()
            with pytest.raises(ThreadBusy):
                await made.run("x", thread_id="t", request_id="r")
            go_on.set()
    assert (await made.run("x", thread_id="t", request_id="r")).state == got[0].state


@pytest.mark.parametrize("at", ["execute", "think", 1])
async def test_a_turn_whose_worker_died_continues(opened: Stores, at: str | int) -> None:
    dying = CrashingStore(at, store=opened())
    with pytest.raises(SimulatedCrash):
        await agent(dying, call("add", a=1), "2.").run("x", thread_id="t", request_id="r")
    await dying.revive()
    turns = ("2.",) if at == "execute" else (call("add", a=1), "2.")
    made = agent(opened(), *turns)
    result = await made.run("x", thread_id="t", request_id="r")
    assert (result.text, [each.content for each in answers(result.state)]) == ("2.", ["2"])
    assert [message.text for message in result.state.messages if message.role == "user"] == ["x"]
    assert (await made.run("x", thread_id="t", request_id="r")).run_id == result.run_id


async def test_a_cancelled_turn_continues(opened: Stores) -> None:
    with anyio.CancelScope() as scope:
        await agent(opened(), interrupting(scope)).run("x", thread_id="t", request_id="r")
    assert scope.cancelled_caught
    result = await agent(opened(), "done").run("x", thread_id="t", request_id="r")
    assert [message.text for message in result.state.messages] == ["x", "done"]


async def test_another_request_is_another_turn(opened: Stores) -> None:
    made = agent(opened(), "one", "two", "three")
    await made.run("1", thread_id="t", request_id="a")
    assert (await made.run("2", thread_id="t", request_id="b")).text == "two"
    assert (await made.run("1", thread_id="other", request_id="a")).text == "three"


@pytest.mark.parametrize("request_id", ["b", None])
async def test_an_earlier_turn_is_not_run_again(opened: Stores, request_id: str | None) -> None:
    made = agent(opened(), "one", "two")
    await made.run("1", thread_id="t", request_id="a")
    second = await made.run("2", thread_id="t", request_id=request_id)
    with pytest.raises(RequestSuperseded, match="'a' was an earlier turn of thread 't'") as caught:
        await agent(opened()).run("1", thread_id="t", request_id="a")
    assert (caught.value.thread_id, caught.value.request_id) == ("t", "a")
    assert second.state.metadata["locus.request_ids"] == ("a", request_id or "")
    # The thread is free, and nothing was written.
    assert (await agent(opened(), "three").run("3", thread_id="t")).text == "three"


async def test_a_state_from_elsewhere_brings_no_ids_with_it() -> None:
    store = MemoryStore()
    made = agent(store, "one", "two", "three")
    first = await made.run("1", thread_id="t", request_id="a")
    assert (await made.run(first.state, thread_id="u", request_id="b")).state.metadata["locus.request_ids"] == ("b",)
    assert (await made.run(first.state, thread_id="v")).state.metadata["locus.request_ids"] == ("",)


async def test_the_first_transition_names_the_request() -> None:
    store = MemoryStore()
    await agent(store, "one").run("1", thread_id="t", request_id="a")
    made = [entry.body for entry in await store.read("t") if isinstance(entry.body, Transition)]
    assert [body.request_id for body in made] == ["a"] + [""] * (len(made) - 1)
    assert made[0].node == START


async def test_a_request_names_a_turn_of_a_thread_that_is_kept() -> None:
    with pytest.raises(ConfigError, match="give the run its thread_id"):
        agent(MemoryStore()).run("x", request_id="r")
    with pytest.raises(ConfigError, match="build it with checkpointer="):
        Agent(ScriptedModel()).run("x", thread_id="t", request_id="r")
    for wrong in ("", 7):
        with pytest.raises(ConfigError, match="request_id must be a str that is not empty"):
            agent(MemoryStore()).run("x", thread_id="t", request_id=wrong)  # type: ignore[arg-type]


def test_run_sync_takes_it() -> None:
    made = agent(MemoryStore(), "one")
    first = made.run_sync("x", thread_id="t", request_id="r")
    assert made.run_sync("x", thread_id="t", request_id="r").state == first.state
