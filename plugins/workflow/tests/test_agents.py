"""Agents as steps: no handler, the bounds of the step, and a run that another worker goes on with."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from locus import Agent, tool
from locus.core.errors import ConfigError
from locus.journal import MemoryStore
from locus_plugin_workflow import Worker, Workflow, show, start
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


@tool(effect="pure")
def look(n: int) -> str:
    """Look."""
    return f"seen {n}"


def workflow(agent: Agent[Any, Any], n: int = 10) -> Any:
    wf = Workflow("w")
    wf.agent_loop("review", agent).with_max_iterations(n)
    return wf.build()


async def test_answer_of_an_agent_is_the_output_of_its_step() -> None:
    store = MemoryStore()
    agent = Agent(ScriptedModel(call("look", n=1), "Done."), tools=[look], name="reviewer", checkpointer=store)

    run = await Worker(store).run_workflow(workflow(agent), {"diff": "x"}, run_id="r")

    assert (run.status, run.output) == ("completed", "Done.")
    state = (await agent.threads.show("r/review/agent")).state
    assert state.messages[0].text == '{"diff": "x"}'


async def test_bound_of_the_step_is_one_of_the_agent() -> None:
    store = MemoryStore()
    model = ScriptedModel(*(call("look", n=n) for n in range(9)))
    agent = Agent(model, tools=[look], name="reviewer", checkpointer=store)

    run = await Worker(store).run_workflow(workflow(agent, 3), "x")

    assert (run.status, run.error) == ("failed", "step 'review' failed: the agent did not end in 3 iterations")
    assert len(model.requests) == 3


async def test_agent_that_fails_fails_its_step() -> None:
    store = MemoryStore()
    agent = Agent(ScriptedModel(OSError("no model")), name="reviewer", checkpointer=store)

    run = await Worker(store).run_workflow(workflow(agent), "x")

    assert run.status == "failed"
    assert "no model" in run.error


async def test_agent_goes_on_in_another_worker_where_it_was() -> None:
    store = MemoryStore()
    entered, runs = anyio.Event(), list[str]()

    @tool(effect="pure")
    async def slow() -> str:
        """Take long."""
        runs.append("slow")
        entered.set()
        if len(runs) == 1:
            await anyio.sleep_forever()
        return "slow"

    def agent(*turns: Any) -> Agent[Any, Any]:
        return Agent(ScriptedModel(*turns), tools=[look, slow], name="reviewer", checkpointer=store)

    first = agent(call("look", n=1), call("slow"))
    await start(store, workflow(first), "x", run_id="r")
    async with Worker(store, workflow(first)).at_work():
        await entered.wait()
    second = agent("Done.")
    await Worker(store, workflow(second)).run(until_idle=True)

    run = await show(store, "r")
    assert (run.status, run.output) == ("completed", "Done.")
    state = (await second.threads.show("r/review/agent")).state
    assert [e.tool_name for e in state.tool_executions] == ["look", "slow"]


async def test_agent_without_a_store_is_refused() -> None:
    agent = Agent(ScriptedModel("Done."), name="reviewer")

    with pytest.raises(ConfigError, match="agent 'reviewer' has no checkpointer"):
        Worker(MemoryStore(), workflow(agent))


@pytest.mark.parametrize("dispatch", ["run", "iteration"])
async def test_both_ways_to_dispatch_an_agent_come_to_the_same(dispatch: Any) -> None:
    store = MemoryStore()
    model = ScriptedModel(*(call("look", n=n) for n in range(4)), "Done.")
    agent = Agent(model, tools=[look], name="reviewer", checkpointer=store)
    wf = Workflow("w")
    wf.agent_loop("review", agent).with_max_iterations(9).with_dispatch(dispatch)
    begun: list[int] = []

    def see(event: Any) -> None:
        if event.type == "step.started":
            begun.append(event.iteration)

    run = await Worker(store, hooks=[see]).run_workflow(wf.build(), "x", run_id="r")

    assert (run.status, run.output) == ("completed", "Done.")
    assert len(model.requests) == 5
    assert begun == ([0] if dispatch == "run" else [0, 1, 2, 3, 4])
    state = (await agent.threads.show("r/review/agent")).state
    assert [e.tool_name for e in state.tool_executions] == ["look"] * 4


@pytest.mark.parametrize("dispatch", ["run", "iteration"])
async def test_bound_of_the_step_ends_the_agent_after_so_many_iterations(dispatch: Any) -> None:
    store = MemoryStore()
    model = ScriptedModel(*(call("look", n=n) for n in range(9)))
    agent = Agent(model, tools=[look], name="reviewer", checkpointer=store)
    wf = Workflow("w")
    wf.agent_loop("review", agent).with_max_iterations(3).with_dispatch(dispatch)

    run = await Worker(store).run_workflow(wf.build(), "x")

    assert run.status == "failed"
    assert "3 iterations" in run.error
    assert len(model.requests) == 3
