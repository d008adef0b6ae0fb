"""Nodes are hooks too: a plugin replaces one, or leaves a case to the kernel; Reflect is everybody's, in order."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import frozen
from tests.loop.hook_kit import WAYS, failures, question, wrong
from tests.loop.kit import Recorder, add, assert_valid_history, bodies, confirm, kinds, of, results

import locus_plugin_timetravel as timetravel
from locus import (
    Agent,
    AgentState,
    CheckpointEvent,
    Hook,
    Message,
    ReflectEvent,
    Role,
    TerminateEvent,
    ThinkEvent,
    tool,
)
from locus.core.errors import ConditionError, HookSpecError, PluginError
from locus.core.executions import ToolExecution
from locus.core.messages import ToolCall, ToolResult, plugin_message
from locus.core.termination import ConfidenceMet, TokenLimit
from locus.journal import MemoryStore
from locus.plugin import Accept, Plugin, Retry, Revise, RunContext, hookimpl
from locus_kit.reflect import EveryIterations, OnRepetition, OnToolError
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _count_anew() -> None:
    bodies.clear()


@tool
async def fail() -> str:
    """Fails."""
    raise LookupError("broken")


def visited(recorder: Recorder) -> list[str]:
    """The nodes that finished, in order."""
    return [e.node for e in of(recorder.events, CheckpointEvent) if e.node != "start"]


# -- think --------------------------------------------------------------------------------------------


class PlanFirst(Hook):
    """Thinks by itself at the start: a plan, then the first call of it. Later the kernel thinks."""

    name = "plan"

    @hookimpl
    async def locus_think(self, state: AgentState, run: RunContext) -> AgentState | None:
        if state.iteration > 0:
            return None
        plan = await run.call_model(question("How?", purpose="plan"), purpose="plan")
        answer = Message(Role.ASSISTANT, ToolCall("planned", "add", {"a": int(plan.message.text)}))
        return state.with_metadata("plan", plan.message.text).with_message(answer)


async def test_a_plugin_thinks_in_place_of_the_kernel_and_leaves_the_rest_to_it() -> None:
    recorder, model = Recorder(), ScriptedModel("41", "it is 42")
    result = await Agent(model, tools=[add], hooks=[PlanFirst(), recorder]).run("x")
    assert (result.message, results(result), result.state.metadata["plan"]) == ("it is 42", ["42"], "41")
    assert result.usage.total_tokens == 30
    assert visited(recorder) == ["think", "execute", "think", "terminate"]
    assert [r.purpose for r in model.requests] == ["plan", "think"]


async def test_the_first_that_answers_thinks() -> None:
    asked: list[str] = []

    class Thinker(Hook):
        def __init__(self, name: str, answer: str | None) -> None:
            self.name, self.answer = name, answer

        @hookimpl
        def locus_think(self, state: AgentState) -> AgentState | None:
            asked.append(self.name)
            return None if self.answer is None else state.with_message(Message(Role.ASSISTANT, self.answer))

    model = ScriptedModel()
    hooks = [Thinker("a", None), Thinker("b", "from b"), Thinker("c", "from c")]
    result = await Agent(model, hooks=hooks).run("x")
    assert (result.message, asked, model.requests) == ("from b", ["a", "b"], ())


@pytest.mark.parametrize("how", WAYS)
async def test_a_thinker_that_goes_wrong_is_the_nodes_error_and_named(how: str) -> None:
    recorder, model = Recorder(), ScriptedModel()
    result = await Agent(model, hooks=[wrong(how, "locus_think"), recorder]).run("x")
    assert (result.stop_reason, result.failed) == ("NodeError", True)
    error = result.error
    assert "'bad'" in f"{error} {getattr(error, '__notes__', '')}"
    assert result.detail.startswith("think: ")
    assert [f.hook for f in failures(result)] == ["locus_think"]
    assert kinds(recorder.events)[-1] == "terminate"
    assert [e.reason for e in of(recorder.events, TerminateEvent)] == ["NodeError"]
    assert model.requests == ()
    assert result.state.errors


async def test_a_thinker_that_never_ends_ends_with_the_runs_limits() -> None:
    class Busy(Hook):
        @hookimpl
        def locus_think(self, state: AgentState) -> AgentState:
            return state.with_message(Message(Role.ASSISTANT, ToolCall(f"c{state.iteration}", "add", {"a": 1})))

    result = await Agent(ScriptedModel(), tools=[add], hooks=[Busy()], max_iterations=3).run("x")
    assert (result.stop_reason, bodies["add"]) == ("MaxIterations", 3)


# -- the kernel's Think, at a plugin's call -----------------------------------------------------------


class Gives(Hook):
    """Thinks with the answers that it has, one an iteration; when there are no more, the model is asked.

    Args:
        answers: the answers.
        note: told to the model with the first request that is made.
    """

    name = "gives"

    def __init__(self, *answers: Any, note: str = "") -> None:
        self.answers, self.note, self.reviewed = answers, note, list[str]()

    @hookimpl
    async def locus_think(self, state: AgentState, run: RunContext) -> AgentState:
        if state.iteration < len(self.answers):
            return await run.think(state, Message(Role.ASSISTANT, self.answers[state.iteration]))
        return await run.think(state.with_message(plugin_message(self.name, self.note)) if self.note else state)


class Picky(Hook):
    """Sends the first answer back."""

    @hookimpl
    def locus_review_answer(self, answer: Message, state: AgentState) -> Accept | Revise:
        return Revise("No.") if not state.revisions else Accept()


ADD = ToolCall("given", "add", {"a": 41})


async def test_calls_that_need_no_model_are_reported_and_executed_as_the_models_are() -> None:
    recorder, model = Recorder(), ScriptedModel("it is 42")
    agent = Agent(model, tools=[add], hooks=[Gives(ADD), recorder], checkpointer=MemoryStore())
    result = await agent.run("x")
    assert (result.message, results(result), len(model.requests)) == ("it is 42", ["42"], 1)
    assert [e.tool_calls for e in of(recorder.events, ThinkEvent)] == [(ADD,), ()]
    assert [s.actions for s in result.state.reasoning_steps] == [("add",), ()]
    assert result.usage.total_tokens == 15
    assert_valid_history(result.state.messages)
    (await timetravel.replay(agent, result.thread_id)).raise_for_difference()


async def test_a_given_answer_is_reviewed_as_the_models_is() -> None:
    model = ScriptedModel("better")
    result = await Agent(model, hooks=[Gives("a guess"), Picky()]).run("x")
    assert (result.message, result.state.revisions, len(model.requests)) == ("better", 1, 1)
    assert [m.text for m in model.requests[0].messages] == ["x", "a guess", "No."]


async def test_a_given_answer_follows_the_output_schema_or_goes_back() -> None:
    model = ScriptedModel("7")
    result = await Agent(model, hooks=[Gives("seven")], output_schema=int).run("x")
    assert (result.parsed, len(model.requests)) == (7, 1)
    assert "does not follow the output schema" in model.requests[0].messages[-1].text


async def test_the_model_thinks_on_the_state_that_a_plugin_hands_on() -> None:
    model = ScriptedModel("done")
    result = await Agent(model, tools=[add], hooks=[Gives(ADD, note="mind the gap")]).run("x")
    assert [m.text for m in model.requests[0].messages if m.plugin == "gives"] == ["mind the gap"]
    assert [m.role.value for m in result.state.messages] == ["user", "assistant", "tool", "user", "assistant"]


async def test_what_was_given_is_not_asked_for_again() -> None:
    class Again(Hook):
        def on_think(self, event: ThinkEvent) -> Retry | None:
            return Retry("not that") if event.text == "a guess" else None

    agent = Agent(ScriptedModel(), hooks=[Gives("a guess"), Again()], checkpointer=MemoryStore())
    result = await agent.run("x")
    assert [m.text for m in result.state.messages] == ["x", "a guess"]
    (await timetravel.replay(agent, result.thread_id)).raise_for_difference()


async def test_what_is_not_an_answer_cannot_be_given() -> None:
    class Odd(Hook):
        name = "odd"

        @hookimpl
        async def locus_think(self, state: AgentState, run: RunContext) -> AgentState:
            return await run.think(state, Message(Role.USER, "me?"))

    result = await Agent(ScriptedModel(), hooks=[Odd()]).run("x")
    assert (result.stop_reason, type(result.error)) == ("NodeError", ValueError)


async def test_budgets_are_checked_where_the_model_is_asked_and_calls_given_without_it_are_bounded() -> None:
    model = ScriptedModel()
    result = await Agent(model, tools=[add], hooks=[Gives(*[ADD] * 9)], max_iterations=3).run("x")
    assert (result.stop_reason, bodies["add"], model.requests) == ("MaxIterations", 3, ())


async def test_a_hook_sees_the_tools_of_the_run() -> None:
    seen: list[Any] = []

    class Looks(Hook):
        @hookimpl
        def locus_think(self, run: RunContext) -> None:
            seen.append((run.registry.names, type(run.registry["add"].bind({"a": "x"})).__name__))

    await Agent(ScriptedModel("done"), tools=[add], hooks=[Looks()]).run("x")
    assert seen == [(("add",), "ArgumentError")]


# -- execute and terminate ----------------------------------------------------------------------------


async def test_a_plugin_executes_some_calls_and_leaves_the_others_to_the_kernel() -> None:
    class Remote(Hook):
        @hookimpl
        async def locus_execute(self, state: AgentState, run: RunContext) -> AgentState | None:
            calls = state.unanswered
            if any(c.name != "remote" for c in calls):
                return None
            found = [ToolResult(c.id, "from afar", name=c.name) for c in calls]
            done = [ToolExecution(tool_name=c.name, arguments=c.arguments, result="from afar") for c in calls]
            return state.with_results([Message(Role.TOOL, r) for r in found], done)

    model = ScriptedModel(call("remote"), call("add", a=1), "done")
    result = await Agent(model, tools=[add], hooks=[Remote()]).run("x")
    assert results(result) == ["from afar", "2"]
    assert result.state.tool_history == ("remote", "add")
    assert_valid_history(result.state.messages)


@pytest.mark.parametrize("how", WAYS)
async def test_an_executor_that_goes_wrong_leaves_a_valid_history(how: str) -> None:
    model = ScriptedModel(call("add", a=1), "never")
    result = await Agent(model, tools=[add], hooks=[wrong(how, "locus_execute")]).run("x")
    assert result.stop_reason == "NodeError"
    assert results(result)[0].startswith("Error: not run: NodeError")
    assert_valid_history(result.state.messages)


async def test_a_plugin_has_the_last_word_over_the_state() -> None:
    class Sign(Hook):
        @hookimpl
        def locus_terminate(self, state: AgentState) -> AgentState:
            return state.with_metadata("signed", value=True)

    result = await Agent(ScriptedModel("hi"), hooks=[Sign()]).run("x")
    assert (result.message, result.state.metadata["signed"]) == ("hi", True)


@pytest.mark.parametrize("how", WAYS)
async def test_a_terminator_that_goes_wrong_still_ends_the_run_once_with_a_valid_history(how: str) -> None:
    recorder = Recorder()
    model = ScriptedModel(["Let me add.", call("add", a=1)], "never")
    agent = Agent(
        model,
        tools=[add],
        hooks=[wrong(how, "locus_terminate"), recorder],
        termination=TokenLimit(10),
        max_iterations=9,
    )
    result = await agent.run("x")  # ends after Think, so its calls are open
    assert result.stop_reason == "NodeError"
    assert [e.reason for e in of(recorder.events, TerminateEvent)] == ["NodeError"]
    assert_valid_history(result.state.messages)


async def test_a_terminator_that_forgets_open_calls_does_not_leave_them_open() -> None:
    class Forgetful(Hook):
        @hookimpl
        def locus_terminate(self, state: AgentState) -> AgentState:
            return state.with_metadata("seen", value=True)

    agent = Agent(
        ScriptedModel(call("add", a=1), "never"),
        tools=[add],
        hooks=[Forgetful()],
        termination=TokenLimit(10),
        max_iterations=9,
    )
    result = await agent.run("x")
    assert result.stop_reason == "TokenLimit"
    assert_valid_history(result.state.messages)


# -- reflect ------------------------------------------------------------------------------------------


class Judge(Hook):
    """Reflects and says so in the metadata."""

    def __init__(self, name: str, *policies: Any) -> None:
        self.name, self.policies = name, policies

    @hookimpl
    def locus_register_reflect_policies(self) -> tuple[Any, ...]:
        return self.policies

    @hookimpl
    async def locus_reflect(self, state: AgentState, run: RunContext) -> AgentState:
        await run.emit(ReflectEvent(judgment=f"{self.name} has looked", confidence=state.confidence))
        said = state.metadata.get("said", ())
        return state.with_metadata("said", (*said, f"{self.name}@{state.iteration}"))


async def test_every_reflecting_plugin_folds_the_state_of_the_one_before() -> None:
    recorder = Recorder()
    hooks = [Judge("a", EveryIterations(1)), Judge("b"), Judge("c"), recorder]
    result = await Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=hooks).run("x")
    assert result.state.metadata["said"] == ("a@0", "b@0", "c@0")
    assert [e.judgment for e in of(recorder.events, ReflectEvent)] == [f"{n} has looked" for n in "abc"]
    assert visited(recorder) == ["think", "execute", "reflect", "think", "terminate"]


async def test_plugins_reflect_in_the_order_that_their_manifests_ask_for(plugin_catalogue: Any) -> None:
    source = """
from locus.plugin import hookimpl
from locus_kit.reflect import EveryIterations

class Judge:
    @hookimpl
    def locus_register_reflect_policies(self):
        return [EveryIterations(1)]

    @hookimpl
    def locus_reflect(self, state):
        return state.with_metadata("said", (*state.metadata.get("said", ()), NAME))
"""
    for name, after in (("zeal", ()), ("alpha", ("mid",)), ("mid", ("zeal",))):
        plugin_catalogue.write(name, f"NAME = {name!r}\n{source}", hooks=["Judge"], after=after)
    agent = Agent(
        ScriptedModel(call("add", a=1), "done"),
        tools=[add],
        plugins=["alpha", "mid", "zeal"],
        catalogue=plugin_catalogue.catalogue,
    )
    result = await agent.run("x")
    assert result.state.metadata["said"] == ("zeal", "mid", "alpha")


async def test_without_a_policy_nobody_reflects() -> None:
    result = await Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[Judge("a")]).run("x")
    assert "said" not in result.state.metadata


@pytest.mark.parametrize(
    ("policy", "iterations"),
    [
        (EveryIterations(2), (1, 3)),
        (OnToolError(), (2,)),
        (OnRepetition(2), (1, 4)),
    ],
)
async def test_a_policy_says_when_to_reflect(policy: Any, iterations: tuple[int, ...]) -> None:
    same = call("add", a=1)
    model = ScriptedModel(same, same, call("fail"), same, same, "done")
    result = await Agent(model, tools=[add, fail], hooks=[Judge("a", policy)]).run("x")
    assert result.state.metadata["said"] == tuple(f"a@{i}" for i in iterations)


async def test_the_policies_of_all_plugins_are_joined_and_the_first_reason_is_reported() -> None:
    recorder = Recorder()
    hooks = [Judge("a", OnToolError()), Judge("b", EveryIterations(2)), recorder]
    model = ScriptedModel(call("fail"), call("add", a=1), call("add", a=2), "done")
    result = await Agent(model, tools=[add, fail], hooks=hooks).run("x")
    assert result.state.metadata["said"] == ("a@0", "b@0", "a@1", "b@1")
    whys = [e.why for e in of(recorder.events, CheckpointEvent) if e.next_node == "reflect"]
    assert whys == ["fail failed", "every 2 iterations"]


async def test_a_policy_of_a_plugins_own_is_any_pure_function() -> None:
    @frozen
    class WhenSlow:
        steps: int

        def __call__(self, state: AgentState) -> str | None:
            return "it takes long" if len(state.tool_executions) >= self.steps else None

    model = ScriptedModel(call("add", a=1), call("add", a=2), "done")
    result = await Agent(model, tools=[add], hooks=[Judge("a", WhenSlow(2))]).run("x")
    assert result.state.metadata["said"] == ("a@1",)


@pytest.mark.parametrize("returned", [True, 7])
async def test_a_policy_that_goes_wrong_ends_the_run_with_its_cause(returned: Any) -> None:
    def policy(state: AgentState) -> Any:
        if returned is True:
            raise LookupError("my mistake")
        return returned

    result = await Agent(ScriptedModel(call("add", a=1), "never"), tools=[add], hooks=[Judge("a", policy)]).run("x")
    assert result.stop_reason == "ConditionError"
    assert isinstance(result.error, ConditionError)
    assert_valid_history(result.state.messages)


async def test_a_reflection_may_end_the_run_by_its_confidence() -> None:
    class Sure(Hook):
        @hookimpl
        def locus_register_reflect_policies(self) -> list[Any]:
            return [EveryIterations(1)]

        @hookimpl
        def locus_reflect(self, state: AgentState) -> AgentState:
            return state.with_confidence(0.9)

    model = ScriptedModel(call("add", a=1), "never")
    agent = Agent(model, tools=[add], hooks=[Sure()], termination=ConfidenceMet(0.8), max_iterations=9)
    result = await agent.run("x")
    assert (result.stop_reason, result.state.confidence_history) == ("ConfidenceMet", (0.9,))


async def test_what_a_reflection_says_reaches_the_next_think() -> None:
    class Advise(Hook):
        @hookimpl
        def locus_register_reflect_policies(self) -> list[Any]:
            return [EveryIterations(1)]

        @hookimpl
        async def locus_reflect(self, state: AgentState, run: RunContext) -> AgentState:
            verdict = await run.call_model(question("Is that right?"), purpose="judge")
            return state.with_message(Message(Role.USER, f"Note: {verdict.message.text}"))

    model = ScriptedModel(call("add", a=1), "you forgot b", "done")
    result = await Agent(model, tools=[add], hooks=[Advise()]).run("x")
    assert model.requests[2].messages[-1].text == "Note: you forgot b"
    assert result.usage.total_tokens == 45


@pytest.mark.parametrize("how", WAYS)
async def test_a_reflection_that_goes_wrong_ends_the_run_with_its_error(how: str) -> None:
    recorder = Recorder()
    hooks = [Judge("a", EveryIterations(1)), wrong(how, "locus_reflect"), Judge("c"), recorder]
    result = await Agent(ScriptedModel(call("add", a=1), "never"), tools=[add], hooks=hooks).run("x")
    assert (result.stop_reason, result.detail.split(":")[0]) == ("NodeError", "reflect")
    assert "'bad'" in f"{result.error} {getattr(result.error, '__notes__', '')}"
    assert "said" not in result.state.metadata
    assert results(result) == ["2"]
    assert_valid_history(result.state.messages)


async def test_a_reflecting_plugin_has_nothing_to_say_about_a_question_to_a_person() -> None:
    agent = Agent(
        ScriptedModel(call("confirm", what="pay"), "done"), tools=[confirm], hooks=[Judge("a", EveryIterations(1))]
    )
    asked = await agent.run("x")
    assert "said" not in asked.state.metadata
    result = await agent.resume(asked, "yes")
    assert result.state.metadata["said"] == ("a@0",)


# -- building -----------------------------------------------------------------------------------------


async def test_invalid_policies_are_refused_when_the_agent_is_built() -> None:
    with pytest.raises(HookSpecError, match="locus_register_reflect_policies"):
        Agent(ScriptedModel(), hooks=[Judge("a", "every day")])


async def test_a_node_of_a_manifest_in_code_works_like_any_other(plugin_catalogue: Any) -> None:
    plugin: Plugin = plugin_catalogue.write(
        "parrot",
        """
from locus import Message, Role
from locus.plugin import hookimpl

class Parrot:
    @hookimpl
    def locus_think(self, state):
        return state.with_message(Message(Role.ASSISTANT, state.messages[-1].text))
""",
        hooks=["Parrot"],
    )
    assert (await Agent(ScriptedModel(), plugins=[plugin]).run("hello")).message == "hello"


async def test_an_error_of_the_kernels_node_blames_no_plugin() -> None:
    class Broken:
        async def view(self, state: AgentState, run: RunContext) -> Any:
            raise PluginError("", "a manager that fails")

    result = await Agent(ScriptedModel(), hooks=[PlanFirst.__base__()], conversation_manager=Broken()).run("x")  # type: ignore[misc]
    assert result.stop_reason == "NodeError"
    assert not hasattr(result.error, "__notes__")
