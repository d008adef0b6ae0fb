"""A call of `task`: who runs, what it sees, what comes back, and which events report it."""

from __future__ import annotations

from typing import Any

import pytest

from locus import tool
from locus.core.errors import ModelError
from locus.core.events import RunStartEvent, ToolStartEvent
from locus.core.messages import Message, Role
from locus.models import ModelResponse
from locus_plugin_subagents import SubAgentFailed, task_tool
from locus_testkit import ScriptedModel, call

from .kit import WAYS, Make, define, kinds, results, task

pytestmark = pytest.mark.anyio


@pytest.fixture(params=WAYS)
def make(request: pytest.FixtureRequest) -> Make:
    """One way to have subagents, and the other."""
    found: Make = request.param
    return found


# -- what comes back ---------------------------------------------------------------------------------


async def test_the_answer_of_a_subagent_is_the_result(make: Make) -> None:
    child = ScriptedModel("It says 42.")
    result = await make(ScriptedModel(task("Read the page."), "Done."), [define(child)]).run("Go.")
    assert results(result) == ["It says 42."]


async def test_a_subagent_sees_its_prompt_and_its_task_alone(make: Make) -> None:
    @tool
    def look() -> str:
        """Look."""
        return "seen"

    child = ScriptedModel(call("look"), "First.", "Second.")
    agent = make(
        ScriptedModel(task("Read the page."), task("And the next one."), "Done."),
        [define(child, tools=[look])],
        system_prompt="The parent's.",
    )
    result = await agent.run("A secret of the user's.")

    assert results(result) == ["First.", "Second."]
    assert [[(m.role, m.text) for m in request.messages if m.text] for request in child.requests] == [
        [(Role.SYSTEM, "You read."), (Role.USER, "Read the page.")],
        [(Role.SYSTEM, "You read."), (Role.USER, "Read the page.")],
        [(Role.SYSTEM, "You read."), (Role.USER, "And the next one.")],  # it remembers nothing
    ]
    assert [spec.name for spec in child.requests[0].tools] == ["look"]
    # The parent has the answer, and nothing of how it came about.
    assert "seen" not in str(result.state.messages)


async def test_the_model_of_the_parent_is_the_default(make: Make) -> None:
    model = ScriptedModel(task(), "Of the same model.", "Done.")
    result = await make(model, [define()]).run("Go.")
    assert results(result) == ["Of the same model."]


async def test_a_wrong_name_is_answered_with_the_right_ones(make: Make) -> None:
    children = [define(ScriptedModel("x"), "writer"), define(ScriptedModel("y"), "reader")]
    model = ScriptedModel(task(name="nobody"), task(name="x" * 10_000), task(name="it's"), "Done.")
    result = await make(model, children).run("Go.")
    assert results(result) == [
        "unknown subagent_type 'nobody'; available: reader, writer",
        f"unknown subagent_type '{'x' * 100}...'; available: reader, writer",
        'unknown subagent_type "it\'s"; available: reader, writer',
    ]


@pytest.mark.parametrize(
    ("description", "problem"),
    [
        ("é" * 10_001, "ToolError: description must have at most 20,000 bytes, got 20,002"),
        ("x" * 5_000_000, "ToolError: description must have at most 20,000 bytes, got 5,000,000"),
        ("", "ToolError: description must say what the subagent is to do, got an empty one"),
        (" \n", "ToolError: description must say what the subagent is to do, got an empty one"),
    ],
)
async def test_a_description_that_cannot_be_used_starts_nothing(make: Make, description: str, problem: str) -> None:
    agent = make(ScriptedModel(task(description), "Done."), [define(ScriptedModel("Done."))])
    events = [event async for event in agent.run("Go.")]
    (done,) = kinds(events, "tool_complete")
    assert done.error.startswith(problem)
    assert len(kinds(events, "run_start")) == 1
    assert kinds(events, "deepagent_subagent_spawned") == []


async def test_the_longest_description_is_accepted(make: Make) -> None:
    text = "é" * 10_000
    child = ScriptedModel("Done.")
    await make(ScriptedModel(task(text), "Done."), [define(child)]).run("Go.")
    assert child.requests[0].messages[-1].text == text


async def test_wrong_arguments_are_the_kernels_error(make: Make) -> None:
    calls = [
        call("task", subagent_type="reader"),
        call("task", subagent_type="reader", description={"a": [1]}),
        call("task"),
    ]
    result = await make(ScriptedModel(calls, "Done."), [define(ScriptedModel("x"))]).run("Go.")
    assert [str(each)[:13] for each in results(result)] == ["ArgumentError"] * 3


async def test_the_tool_can_be_called_by_itself() -> None:
    child = ScriptedModel("It says 42.", ModelError("no", retryable=False))
    body = task_tool([define(child)], parent_model=child)
    assert await body("x", "Read it.") == "unknown subagent_type 'x'; available: reader"
    assert await body("reader", "Read it.") == "It says 42."
    with pytest.raises(SubAgentFailed, match="subagent 'reader' has no answer: ModelError"):
        await body(subagent_type="reader", description="Read it.")


# -- failures ----------------------------------------------------------------------------------------


async def fail_with(make: Make, *turns: Any, **options: Any) -> str:
    """The error that the parent's model gets."""
    child = ScriptedModel(*turns, after="repeat")
    result = await make(ScriptedModel(task(), "Done."), [define(child, **options)]).run("Go.")
    assert result.text == "Done."
    (done,) = result.state.tool_executions
    assert done.result is None
    return str(done.error)


async def test_an_empty_answer_is_an_empty_text(make: Make) -> None:
    result = await make(ScriptedModel(task(), "Done."), [define(ScriptedModel(""))]).run("Go.")
    assert [(each.result, each.error) for each in result.state.tool_executions] == [("", None)]


async def test_a_failed_model_is_an_error_with_its_reason(make: Make) -> None:
    said = await fail_with(make, ModelError("the key is wrong", retryable=False))
    assert said.startswith("SubAgentFailed: subagent 'reader' has no answer: ModelError: ")
    assert "the key is wrong" in said


async def test_an_answer_that_was_cut_is_an_error(make: Make) -> None:
    cut = ModelResponse(message=Message(Role.ASSISTANT, "The answer is"), stop_reason="length")
    said = await fail_with(make, cut)
    assert said.startswith("SubAgentFailed: subagent 'reader' has no answer: Truncated")
    assert said.endswith("Its last message: The answer is")


async def test_a_subagent_that_does_not_come_to_an_end_is_an_error(make: Make) -> None:
    @tool
    def look() -> str:
        """Look."""
        return "seen"

    said = await fail_with(make, ["Let me see.", call("look")], tools=[look], max_iterations=3)
    assert said.startswith("SubAgentFailed: subagent 'reader' has no answer: MaxIterations")
    assert said.endswith("Its last message: Let me see.")


async def test_an_answer_with_the_last_iteration_counts(make: Make) -> None:
    result = await make(ScriptedModel(task(), "Done."), [define(ScriptedModel("Just in time."), max_iterations=1)]).run(
        "Go."
    )
    assert results(result) == ["Just in time."]


async def test_long_reasons_are_cut(make: Make) -> None:
    said = await fail_with(make, ModelError("x" * 100_000, retryable=False))
    assert len(said) < 2_000


# -- events ------------------------------------------------------------------------------------------


async def test_events_of_a_subagent_are_on_the_stream_of_its_parent(make: Make) -> None:
    @tool
    def look() -> str:
        """Look."""
        return "seen"

    child = ScriptedModel(call("look"), "It says 42.")
    agent = make(ScriptedModel(task("Read. " * 100), "Done."), [define(child, tools=[look], max_iterations=7)])
    events = [event async for event in agent.run("Go.")]

    parent, inner = kinds(events, "run_start")
    assert isinstance(inner, RunStartEvent)
    assert inner.parent_run_id == parent.run_id
    assert [e.tool_name for e in events if isinstance(e, ToolStartEvent) and e.run_id == inner.run_id] == ["look"]
    (spawned,) = kinds(events, "deepagent_subagent_spawned")
    assert (spawned.subagent_type, spawned.max_iterations) == ("reader", 7)
    assert spawned.description_preview == ("Read. " * 100)[:200]
    (completed,) = kinds(events, "deepagent_subagent_completed")
    assert (completed.subagent_type, completed.output_length, completed.success) == ("reader", 11, True)
    assert completed.duration_ms > 0
    assert spawned.run_id == completed.run_id == parent.run_id
    order = [spawned, inner, kinds(events, "terminate")[0], completed]
    assert order == sorted(order, key=events.index)


@pytest.mark.parametrize("turn", ["", ModelError("no", retryable=False)], ids=["empty", "failed"])
async def test_a_subagent_without_an_answer_has_not_succeeded(make: Make, turn: Any) -> None:
    agent = make(ScriptedModel(task(), "Done."), [define(ScriptedModel(turn, after="repeat"))])
    events = [event async for event in agent.run("Go.")]
    (completed,) = kinds(events, "deepagent_subagent_completed")
    assert (completed.output_length, completed.success) == (0, False)
