"""What is written down of a workflow, and what ``build`` refuses."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from locus import Agent
from locus.core.errors import CheckpointError, ConfigError
from locus_plugin_workflow import (
    AgentLoopConfig,
    InvalidWorkflow,
    NewWorkflow,
    RetryPolicy,
    StepDef,
    StepTypeAgentLoop,
    Workflow,
    WorkflowDef,
)
from locus_testkit import ScriptedModel


def test_program_of_the_source_builds_what_it_says() -> None:
    wf = NewWorkflow("code-review")
    review = (
        wf.AgentLoop("review", "llm-review")
        .WithMaxIterations(10)
        .WithMaxDuration(timedelta(minutes=5))
        .WithLoopDelay(timedelta(milliseconds=500))
        .WithTimeout(timedelta(seconds=30))
    )
    definition = wf.Build()

    assert review.name == "review"
    (step,) = definition.steps
    assert step == StepDef(
        name="review",
        type=StepTypeAgentLoop,
        handler="llm-review",
        config=AgentLoopConfig(max_iterations=10, max_duration=300, loop_delay=0.5),
        timeout=30,
    )
    assert StepTypeAgentLoop == "agent_loop"
    assert (step.Config, step.Timeout) == (AgentLoopConfig(10, 300, 0.5), 30.0)


def test_python_names_build_the_same_as_those_of_the_source() -> None:
    one = NewWorkflow("w")
    one.AgentLoop("a", "h").WithMaxIterations(2).WithMaxDuration(60).WithLoopDelay(1).WithTimeout(3).DependsOn("b")
    one.Step("b", "g")
    other = Workflow("w")
    loop = other.agent_loop("a", "h", depends_on=["b"])
    loop.with_max_iterations(2).with_max_duration(60).with_loop_delay(1).with_timeout(3)
    other.step("b", "g")

    assert one.Build() == other.build()


def test_workflow_can_be_written_as_one_chain() -> None:
    definition = Workflow("w").step("a", "h").agent_loop("b", "h").with_max_iterations(1).depends_on("a").build()

    assert [step.name for step in definition.steps] == ["a", "b"]
    assert [step.name for step in definition.roots] == ["a"]
    assert [step.name for step in definition.downstream("a")] == ["b"]
    assert [step.name for step in definition.sinks] == ["b"]


def test_bounds_of_a_loop_are_unlimited_unless_given() -> None:
    definition = Workflow("w").agent_loop("a", "h").with_max_iterations(1).build()

    assert definition.steps[0].config == AgentLoopConfig(max_iterations=1, max_duration=0, loop_delay=0)
    assert definition.steps[0].timeout == 0
    assert definition.steps[0].retry == RetryPolicy(max_attempts=1)


@pytest.mark.parametrize("bad", [0, -1, True, "3", 2.0, None])
def test_number_of_iterations_is_refused_with_the_name_of_the_step(bad: Any) -> None:
    wf = Workflow("w")
    wf.agent_loop("review", "h").with_max_iterations(bad)

    with pytest.raises(
        InvalidWorkflow, match=r"step 'review': max_iterations: expected an integer greater than 0, got"
    ):
        wf.build()


def test_loop_without_a_bound_is_refused_with_the_name_of_the_step() -> None:
    wf = Workflow("w")
    wf.agent_loop("review", "h").with_timeout(3)

    with pytest.raises(InvalidWorkflow, match=r"step 'review': an agent loop needs a bound; give it with_max_iterat"):
        wf.build()


@pytest.mark.parametrize("option", ["with_max_duration", "with_loop_delay", "with_timeout"])
@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf"), "3", True, None, timedelta(seconds=-1)])
def test_duration_is_refused_with_the_name_of_the_step(option: str, bad: Any) -> None:
    wf = Workflow("w")
    getattr(wf.agent_loop("review", "h").with_max_iterations(1), option)(bad)

    with pytest.raises(InvalidWorkflow, match=rf"step 'review': {option.removeprefix('with_')}: expected seconds"):
        wf.build()


def test_every_problem_is_named_at_once() -> None:
    wf = Workflow("w")
    wf.agent_loop("a", "h").with_max_iterations(0).depends_on("b", "nobody")
    wf.step("b", "h").depends_on("a")
    wf.step("c", "h")
    wf.step("c", "h").with_max_iterations(3)

    with pytest.raises(InvalidWorkflow) as caught:
        wf.build()

    text = "\n".join(caught.value.problems)
    assert "step 'a': max_iterations" in text
    assert "step 'a': it depends on 'nobody', which is not a step of the workflow" in text
    assert "step 'c': 2 steps have this name" in text
    assert "step 'c': max_iterations: only an agent loop has these" in text
    assert "it depends on itself: " in text
    assert caught.value.workflow == "w"


def test_step_that_depends_on_itself_is_refused() -> None:
    wf = Workflow("w")
    wf.step("a", "h").depends_on("a")

    with pytest.raises(InvalidWorkflow, match="step 'a': it depends on itself"):
        wf.build()


def test_misspelled_dependency_is_refused_with_the_nearest_name() -> None:
    wf = Workflow("w")
    wf.step("review", "h")
    wf.step("publish", "h").depends_on("reviev")

    with pytest.raises(InvalidWorkflow, match=r"step 'publish': it depends on 'reviev', .*did you mean 'review'\?"):
        wf.build()


@pytest.mark.parametrize("bad", [["a"], 3, None, {}, b"a"])
def test_dependency_that_is_not_a_text_is_refused_with_the_name_of_the_step(bad: Any) -> None:
    wf = Workflow("w")
    wf.step("a", "h")
    wf.step("b", "h").depends_on(bad)
    wf.step("c", "h", depends_on=[bad])

    with pytest.raises(InvalidWorkflow) as caught:
        wf.build()

    text = f"it depends on {bad!r}; expected the name of a step, as in depends_on('a', 'b')"
    assert caught.value.problems == (f"step 'b': {text}", f"step 'c': {text}")


def test_dependencies_that_cannot_be_iterated_are_refused_with_the_name_of_the_step() -> None:
    wf = Workflow("w")
    wf.step("a", "h", depends_on=None)  # type: ignore[arg-type]

    with pytest.raises(InvalidWorkflow, match="step 'a': it depends on None; expected the name of a step"):
        wf.build()


def test_workflow_without_a_name_is_refused_beside_its_other_problems() -> None:
    with pytest.raises(InvalidWorkflow) as caught:
        Workflow("").build()

    assert [problem.split(":")[0] for problem in caught.value.problems] == [
        "name",
        "it has no steps; add one with agent_loop(step, handler) or step(step, handler)",
    ]


def test_workflow_without_steps_is_refused() -> None:
    with pytest.raises(InvalidWorkflow, match="it has no steps"):
        Workflow("w").build()


@pytest.mark.parametrize("name", ["", "a/b", " a", "a\n", 3, None, ["a"], "x" * 201])
def test_names_that_cannot_be_a_part_of_a_thread_are_refused(name: Any) -> None:
    wf = Workflow("w")
    wf.step(name, "h")
    with pytest.raises(InvalidWorkflow, match="name: expected a name"):
        wf.build()

    named = Workflow(name)
    named.step("a", "h")
    with pytest.raises(InvalidWorkflow, match="name: expected a name"):
        named.build()


def test_steps_come_behind_what_they_depend_on() -> None:
    wf = Workflow("w")
    wf.step("publish", "h").depends_on("test", "review")
    wf.step("review", "h").depends_on("plan")
    wf.step("test", "h").depends_on("plan")
    wf.step("plan", "h")

    order = [step.name for step in wf.build().steps]

    assert order[0] == "plan"
    assert order[-1] == "publish"


def test_definition_reads_back_from_its_json_form() -> None:
    wf = Workflow("w", version="2")
    wf.agent_loop("a", "h").with_max_iterations(3).with_retry(RetryPolicy(4, initial=0.5, jitter=0.1)).with_timeout(9)
    wf.step("b", "h").depends_on("a")
    definition = wf.build()

    form = json.loads(json.dumps(definition.to_json()))

    assert form["steps"][0]["config"] == {"max_iterations": 3, "max_duration": 0.0, "loop_delay": 0.0}
    assert WorkflowDef.from_json(form) == definition


@pytest.mark.parametrize("change", [{"colour": "red"}, {"name": "a/b"}, {"steps": 3}])
def test_definition_that_cannot_be_read_is_an_error_that_says_so(change: dict[str, Any]) -> None:
    wf = Workflow("w")
    wf.step("a", "h")

    with pytest.raises(CheckpointError, match="the recorded definition cannot be read"):
        WorkflowDef.from_json(wf.build().to_json() | change)


def test_function_is_known_by_its_name_and_an_agent_by_its_own() -> None:
    async def review(ctx: Any) -> None: ...

    agent = Agent(ScriptedModel("done"), name="reviewer")
    wf = Workflow("w")
    wf.agent_loop("a", review).with_max_iterations(1)
    wf.agent_loop("b", agent).with_max_iterations(1)
    wf.agent_loop("c", Agent(ScriptedModel("done"))).with_max_iterations(1).with_dispatch("iteration")
    definition = wf.build()

    assert [step.handler for step in definition.steps] == ["review", "reviewer", "c"]
    assert [step.dispatch for step in definition.steps] == ["iteration", "run", "iteration"]
    assert definition.local["review"] is review
    assert definition.local["reviewer"] is agent
    assert "local" not in definition.to_json()


def test_two_handlers_of_one_name_are_refused() -> None:
    wf = Workflow("w")
    wf.step("a", lambda ctx: ctx.complete())
    wf.step("b", lambda ctx: ctx.complete())

    with pytest.raises(InvalidWorkflow, match="step 'b': another handler of this workflow has the name '<lambda>'"):
        wf.build()


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"jitter": 2}, "jitter"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"initial": -1}, "initial"),
        ({"cap": "x"}, "cap"),
    ],
)
def test_retry_policy_refuses_what_it_is_not(given: dict[str, Any], wanted: str) -> None:
    with pytest.raises(ConfigError, match=f"{wanted}: expected"):
        RetryPolicy(**given)


def test_waits_of_a_retry_policy_grow_up_to_the_cap() -> None:
    policy = RetryPolicy(9, initial=1, factor=3, cap=10, jitter=0.5)

    assert [policy.delay(n) for n in (1, 2, 3, 4)] == [1, 3, 9, 10]
    assert policy.delay(4, luck=1.0) == 15
    assert RetryPolicy(9, cap=0).delay(5_000) < float("inf")
