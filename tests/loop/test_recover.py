"""Runs whose worker is gone are found and resumed, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from locus import Agent, ToolContext, tool
from locus.core.errors import ConfigError
from locus.journal import MemoryStore, ThreadQuery
from locus.threads import Recovered, Threads
from locus_testkit import CrashingStore, ScriptedModel, SimulatedCrash, call

pytestmark = pytest.mark.anyio


@tool
def ask(ctx: ToolContext[Any]) -> str:
    """Ask a person."""
    return f"they said {ctx.interrupt('Shall I?')}"


@tool(effect="pure")
def add(a: int) -> int:
    """Add one."""
    return a + 1


async def crash(store: MemoryStore, thread_id: str, name: str | None = None, **metadata: Any) -> None:
    """A run whose process dies when the tool has run."""
    dying = CrashingStore("execute", store=store)
    agent = Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], name=name, checkpointer=dying)
    with pytest.raises(SimulatedCrash):
        await agent.run("Count.", thread_id=thread_id, metadata=metadata)
    await dying.revive()


async def test_only_crashed_runs_are_resumed() -> None:
    store = MemoryStore()
    await Agent(ScriptedModel("hi"), checkpointer=store).run("x", thread_id="ended")
    await Agent(ScriptedModel(call("ask")), tools=[ask], checkpointer=store).run("x", thread_id="waiting")
    await crash(store, "one", tenant="a")
    await crash(store, "two", tenant="b")
    agent = Agent(ScriptedModel("one is done", "two is done"), tools=[add, ask], checkpointer=store)

    found = await agent.threads.open_runs()
    assert [(info.thread_id, info.status, info.node) for info in found] == [
        ("two", "crashed", "execute"),
        ("one", "crashed", "execute"),
    ]
    seen: list[Recovered] = []
    made = await agent.threads.recover(query=ThreadQuery(metadata={"tenant": "a"}), on_run=seen.append)
    assert [(each.thread.thread_id, each.error) for each in made] == [("one", None)]
    assert made[0].result is not None
    assert made[0].result.text == "one is done"
    assert seen == [*made]
    assert [each.thread.thread_id for each in await agent.threads.recover()] == ["two"]
    assert await agent.threads.recover() == ()
    statuses = {info.thread_id: info.status for info in await agent.threads.list()}
    assert statuses == {"ended": "ended", "waiting": "waiting", "one": "ended", "two": "ended"}


async def test_each_of_two_agents_resumes_its_own_runs() -> None:
    store = MemoryStore()
    for name in ("billing", "support", None):
        await crash(store, f"of {name}", name)
    billing = Agent(ScriptedModel("paid"), tools=[add], name="billing", checkpointer=store)
    support = Agent(ScriptedModel("solved"), name="support", checkpointer=store)
    nameless = Agent(ScriptedModel("done"), tools=[add], checkpointer=store)

    (made,) = await billing.threads.recover()
    assert (made.thread.thread_id, made.thread.agent_id) == ("of billing", "billing")
    assert [info.agent_id for info in await billing.threads.open_runs()] == ["", "support"]
    assert [each.thread.thread_id for each in await nameless.threads.recover()] == ["of None"]
    # Asked for by name, another agent's runs are taken up as well.
    assert await billing.threads.recover(query=ThreadQuery(agent_id="billing")) == ()
    (other,) = await support.threads.recover(query=ThreadQuery(agent_id="support"))
    assert other.result is not None
    assert other.result.text == "solved"


async def test_a_run_that_kills_its_worker_each_time_is_set_aside() -> None:
    store = MemoryStore()
    await crash(store, "t")
    again = CrashingStore("execute", store=store)
    agent = Agent(ScriptedModel("never"), tools=[add], checkpointer=again)
    with pytest.raises(SimulatedCrash):
        await agent.threads.recover(max_attempts=2)
    await again.revive()
    (made,) = await agent.threads.recover(max_attempts=2)
    assert made.result is None
    assert type(made.error).__name__ == "DeadLetter"
    assert await agent.threads.recover(max_attempts=2) == ()
    assert [info.status for info in await agent.threads.list()] == ["dead_letter"]


async def test_threads_without_an_agent_resume_nothing() -> None:
    with pytest.raises(ConfigError, match="these threads have no agent"):
        await Threads(MemoryStore()).recover()
