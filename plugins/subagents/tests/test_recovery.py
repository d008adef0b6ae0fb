"""Subagents that ask, that a crash interrupts, and of runs side by side."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from locus import Agent, ToolContext, tool
from locus.core.messages import Role
from locus.journal import MemoryStore
from locus_testkit import ScriptedModel, call, every_crash

from .kit import WAYS, Make, define, kinds, last_result, results, task, with_plugin

pytestmark = pytest.mark.anyio


@pytest.fixture(params=WAYS)
def make(request: pytest.FixtureRequest) -> Make:
    """One way to have subagents, and the other."""
    found: Make = request.param
    return found


# -- questions and crashes ---------------------------------------------------------------------------


async def test_a_question_of_a_subagent_is_asked_by_its_parent(make: Make) -> None:
    @tool
    async def ask(ctx: ToolContext[Any]) -> str:
        """Ask."""
        return str(ctx.interrupt("Which one?"))

    child = ScriptedModel(call("ask"), lambda request: f"It is {last_result(request)}.")
    agent = make(ScriptedModel(task(), "Done."), [define(child, tools=[ask])], checkpointer=MemoryStore())
    events = [event async for event in agent.run("Go.", thread_id="t")]
    assert kinds(events, "interrupt")[-1].question == "Which one?"
    assert kinds(events, "deepagent_subagent_completed") == []

    result = await agent.resume("t", "the blue one")
    assert results(result) == ["It is the blue one."]


async def test_a_crash_at_any_write_repeats_no_effect(make: Make) -> None:
    for store in every_crash(least=40):
        done: list[str] = []

        @tool
        def act(what: str) -> str:
            """Act."""
            done.append(what)  # noqa: B023 - of this store
            return f"did {what}"

        def script(request: Any) -> Any:
            if any(spec.name == "task" for spec in request.tools):
                return [[task("one"), task("two")], task("three"), "All is done."]
            what = next(m.text for m in request.messages if m.role is Role.USER)
            return [call("act", what=what), f"{what} is done."]

        def build() -> Agent[Any, Any]:
            model = ScriptedModel(script=script)
            return make(model, [define(tools=[act])], checkpointer=store)  # noqa: B023 - as above

        result = await store.outlive(build, "Go.")
        assert len(done) == len(set(done))
        if result is not None:
            assert results(result) == ["one is done.", "two is done.", "three is done."]
            assert result.text == "All is done."


async def test_subagents_of_runs_side_by_side_do_not_meet(make: Make) -> None:
    def script(request: Any) -> Any:
        said = next(m.text for m in request.messages if m.role is Role.USER)
        is_parent = any(spec.name == "task" for spec in request.tools)
        return [task(said), said] if is_parent else [f"for {said}"]

    agent = make(ScriptedModel(script=script), [define()])
    found: dict[str, Any] = {}

    async def run(name: str) -> None:
        found[name] = results(await agent.run(name))

    async with anyio.create_task_group() as group:
        for name in "abcd":
            group.start_soon(run, name)
    assert found == {name: [f"for {name}"] for name in "abcd"}


async def test_a_tool_of_the_plugin_outside_of_a_run_says_so() -> None:
    body = with_plugin(ScriptedModel("Done."), [define(ScriptedModel("x"))]).runtime.tools["task"]
    with pytest.raises(RuntimeError, match="works in runs of the agent"):
        await body("reader", "Read.", None)
