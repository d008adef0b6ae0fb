"""A plugin's node that leaves its run open with an error, and what it says of the coming transition."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from locus import Agent, AgentResult, AgentState, Hook
from locus.core.termination import MaxIterations
from locus.journal import MemoryStore, read_history
from locus.loop import LeftOpen, SegmentContext
from locus.plugin import hookimpl
from locus_testkit import ScriptedModel

pytestmark = pytest.mark.anyio


class Flaky(Hook):
    """A Think that fails until it is mended."""

    def __init__(self) -> None:
        self.broken, self.entered = True, 0

    @hookimpl
    async def locus_think(self, state: AgentState, run: SegmentContext) -> AgentState:
        self.entered += 1
        if state.iteration == 1 and self.broken:
            raise LeftOpen("the lamp is broken", OSError("no light"))
        run.because(f"step {state.iteration} is done")
        return state.with_metadata("steps", state.iteration)


def agent(hook: Hook, **options: Any) -> Agent[Any, Any]:
    return Agent(ScriptedModel(), hooks=[hook], stop_on_text=False, termination=MaxIterations(3), **options)


async def test_a_node_that_leaves_the_run_open_ends_the_segment_with_its_error() -> None:
    hook, store = Flaky(), MemoryStore()

    result = await agent(hook, checkpointer=store).run("x", thread_id="t")

    assert (result.stop_reason, result.detail) == ("NodeError", "the lamp is broken")
    assert isinstance(result.error, OSError)
    assert result.failed
    assert result.is_open
    assert [info.status for info in await store.threads()] == ["paused"]


async def test_a_resume_enters_the_node_that_failed_and_no_other() -> None:
    hook, store = Flaky(), MemoryStore()
    await agent(hook, checkpointer=store).run("x", thread_id="t")
    hook.broken = False

    result = await agent(hook, checkpointer=store).resume("t")

    assert (result.stop_reason, result.is_open) == ("MaxIterations", False)
    assert hook.entered == 4  # 0, 1 in vain, 1, 2
    assert result.state.metadata["steps"] == 2


async def test_without_a_store_the_result_is_what_is_resumed() -> None:
    hook = Flaky()
    result = await agent(hook).run("x")
    hook.broken = False

    assert (await agent(hook).resume(result)).stop_reason == "MaxIterations"


async def test_a_failure_ends_its_segment_with_one_event() -> None:
    hook = Flaky()
    ends = [event async for event in agent(hook).run("x") if event.type == "terminate"]

    assert [(end.reason, end.error) for end in ends] == [("NodeError", "OSError: no light")]  # type: ignore[attr-defined]


async def test_the_history_shows_what_a_node_says_of_the_transition() -> None:
    hook, store = Flaky(), MemoryStore()
    hook.broken = False
    await agent(hook, checkpointer=store).run("x", thread_id="t")

    whys = [entry.why for entry in await read_history(store, "t") if entry.node == "think"]

    # The end has its own reason.
    assert whys == ["step 0 is done", "step 1 is done", "MaxIterations"]


async def test_another_result_can_be_made_of_a_run_however_it_is_used() -> None:
    hook = Flaky()
    hook.broken = False

    def name(result: AgentResult[Any]) -> AgentResult[Any]:
        return evolve(result, message=f"{result.iterations} steps")

    assert (await agent(hook).run("x").map(name)).text == "3 steps"
    run = agent(hook).run("x").map(name)
    async for _ in run:
        pass
    assert run.result.text == "3 steps"


def test_several_entries_of_metadata_are_set_as_each_by_itself() -> None:
    state = AgentState().with_metadata("a", [1]).with_metadata("b", 2)

    made = state.with_entries({"a": (1, 2), "c": {"d": [3]}})

    assert made == state.with_metadata("a", [1, 2]).with_metadata("c", {"d": [3]})
    assert list(made.metadata) == ["a", "b", "c"]
