"""What a hook's answer does: Retry, Reject, Cancel, and which of them wins."""

from __future__ import annotations

from typing import Any

import pytest
from tests.loop.kit import Recorder, add, assert_valid_history, bodies, collect, confirm, kinds, of, results

from locus import (
    Agent,
    AgentState,
    Allow,
    Cancel,
    Continue,
    Directive,
    Event,
    Hook,
    ModelRequest,
    ReflectEvent,
    Reject,
    Retry,
    RetryableToolError,
    TerminateEvent,
    ThinkEvent,
    ToolCompleteEvent,
    ToolStartEvent,
    tool,
)
from locus.core.directives import Decision
from locus.core.errors import ModelError
from locus.core.messages import Message, Role, ToolCall
from locus.core.termination import TokenLimit, ToolCalled
from locus.plugin import RunContext, hookimpl
from locus_kit.reflect import EveryIterations
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


class Ask(Hook):
    """Answers each event of one kind, a number of times."""

    def __init__(self, kind: type[Event], *answers: Directive | None) -> None:
        self.kind, self.answers = kind, list(answers)

    def on_event(self, event: Event) -> Directive | None:
        return self.answers.pop(0) if isinstance(event, self.kind) and self.answers else None


class Flaky:
    """A tool whose first calls fail."""

    def __init__(self, error: Exception, failures: int = 1) -> None:
        self.entered, self.error, self.failures = 0, error, failures

    def make(self, **options: Any) -> Any:
        @tool(name="fetch", **options)
        async def fetch() -> str:
            """Fetch."""
            self.entered += 1
            if self.entered <= self.failures:
                raise self.error
            return f"fetched at try {self.entered}"

        return fetch


# -- Retry --------------------------------------------------------------------------------------------


async def test_retry_in_execute_runs_a_call_again_that_says_nothing_happened() -> None:
    flaky, recorder = Flaky(RetryableToolError("busy")), Recorder()
    agent = Agent(
        ScriptedModel([call("fetch"), call("add", a=1)], "done"),
        tools=[flaky.make(), add],
        hooks=[Ask(ToolCompleteEvent, Retry("again")), recorder],
    )
    bodies.clear()
    result = await agent.run("x")
    assert results(result) == ["fetched at try 2", "2"]
    assert bodies["add"] == 1  # what succeeded is not run again
    assert len(result.state.tool_executions) == 2
    assert_valid_history(result.state.messages)


async def test_retry_in_execute_runs_a_pure_call_again() -> None:
    flaky = Flaky(ConnectionError("lost"))
    result = await Agent(
        ScriptedModel(call("fetch"), "done"),
        tools=[flaky.make(effect="pure")],
        hooks=[Ask(ToolCompleteEvent, Retry())],
    ).run("x")
    assert results(result) == ["fetched at try 2"]


@pytest.mark.parametrize("effect", ["once", "keyed"])
async def test_retry_in_execute_repeats_nothing_that_may_have_had_its_effect(effect: Any) -> None:
    flaky = Flaky(ConnectionError("lost"))
    result = await Agent(
        ScriptedModel(call("fetch"), "done"),
        tools=[flaky.make(effect=effect)],
        hooks=[Ask(ToolCompleteEvent, *[Retry()] * 9)],
    ).run("x")
    assert results(result) == ["Error: ConnectionError: lost"]
    assert flaky.entered == 1


@pytest.mark.parametrize("effect", ["once", "keyed", "pure"])
async def test_retry_in_execute_never_repeats_a_success(effect: Any) -> None:
    fine = Flaky(ValueError("never"), failures=0)
    agent = Agent(
        ScriptedModel(call("fetch"), "done"),
        tools=[fine.make(effect=effect)],
        hooks=[Ask(ToolCompleteEvent, *[Retry()] * 9)],
    )
    assert results(await agent.run("x")) == ["fetched at try 1"]
    assert fine.entered == 1


async def test_retry_in_execute_is_bounded() -> None:
    flaky = Flaky(RetryableToolError("busy"), failures=1000)

    class Always(Hook):
        def on_tool_complete(self, event: ToolCompleteEvent) -> Retry:
            return Retry()

    result = await Agent(ScriptedModel(call("fetch"), "done"), tools=[flaky.make()], hooks=[Always()]).run("x")
    assert flaky.entered == 4  # the call and three tries more
    assert results(result) == ["Error: RetryableToolError: busy"]


async def test_retry_of_think_is_bounded_and_every_attempt_is_paid() -> None:
    class Always(Hook):
        def on_think(self, event: ThinkEvent) -> Retry:
            return Retry()

    model = ScriptedModel("hi", after="repeat")
    result = await Agent(model, hooks=[Always()]).run("x")
    assert result.message == "hi"
    assert len(model.requests) == 4
    assert result.usage.total_tokens == 15 * len(model.requests)
    assert [m.text for m in result.state.messages] == ["x", "hi"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_final_answer_that_was_to_be_given_again_counts_where_a_limit_lets_no_other_come(stream: bool) -> None:
    model, recorder = ScriptedModel("the answer", "another", chunks=stream), Recorder()
    hooks = [Ask(ThinkEvent, Retry("again")), recorder]
    agent = Agent(model, hooks=hooks, token_budget=10)
    result = (await collect(run := agent.run("x")), run.result)[1] if stream else await agent.run("x")
    assert len(model.requests) == 1
    assert (result.text, result.stop_reason) == ("the answer", "TokenLimit")
    assert result.usage.total_tokens == 15  # once
    assert [m.text for m in result.state.messages] == ["x", "the answer"]
    assert [step.thought for step in result.state.reasoning_steps] == ["the answer"]
    assert of(recorder.events, TerminateEvent)[0].final_message == "the answer"


async def test_a_final_answer_that_was_to_be_given_again_counts_where_the_model_fails() -> None:
    model = ScriptedModel("the answer", ModelError("down", retryable=False))
    result = await Agent(model, hooks=[Ask(ThinkEvent, Retry("again"))]).run("x")
    assert (result.text, result.stop_reason, result.failed) == ("the answer", "ModelError", True)


async def test_calls_of_an_answer_that_was_to_be_given_again_are_not_kept() -> None:
    model = ScriptedModel(call("add", a=1), "another")
    agent = Agent(model, tools=[add], hooks=[Ask(ThinkEvent, Retry("again"))], token_budget=10)
    result = await agent.run("x")
    assert (result.text, result.stop_reason) == ("", "TokenLimit")
    assert [m.role for m in result.state.messages] == ["user"]


async def test_a_retried_think_asks_the_same_question_again() -> None:
    model = ScriptedModel("one", "two")
    await Agent(model, hooks=[Ask(ThinkEvent, Retry())]).run("x")
    first, second = model.requests
    assert first.messages == second.messages


async def test_a_retry_that_nothing_can_be_done_with_does_not_leak_into_the_next_node() -> None:
    class Judge(Hook):
        @hookimpl
        def locus_register_reflect_policies(self) -> list[EveryIterations]:
            return [EveryIterations(1)]

        @hookimpl
        async def locus_reflect(self, state: AgentState, run: RunContext) -> None:
            await run.emit(ReflectEvent(judgment="hm"))

        def on_reflect(self, event: ReflectEvent) -> Retry:
            return Retry()

    model = ScriptedModel(call("add", a=1), "done")
    result = await Agent(model, tools=[add], hooks=[Judge()]).run("x")
    assert len(model.requests) == 2
    assert result.message == "done"


# -- Reject -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", ["decision", "start"])
async def test_reject_refuses_one_call_and_the_run_continues(at: str) -> None:
    class Policy(Hook):
        def on_tool_call(self, call: ToolCall) -> Decision | None:
            return Reject("not two") if at == "decision" and call.arguments["a"] == 2 else None

        def on_tool_start(self, event: ToolStartEvent) -> Reject | None:
            return Reject("not two") if at == "start" and event.arguments["a"] == 2 else None

    bodies.clear()
    recorder = Recorder()
    model = ScriptedModel([call("add", a=1), call("add", a=2), call("add", a=3)], "done")
    result = await Agent(model, tools=[add], hooks=[Policy(), recorder]).run("x")
    assert results(result) == ["2", "Error: Rejected: not two", "4"]
    assert bodies["add"] == 2
    rejected = result.state.tool_executions[1]
    assert (rejected.started, rejected.error) == (False, "Rejected: not two")
    assert len(of(recorder.events, ToolCompleteEvent)) == 3
    assert len(of(recorder.events, ToolStartEvent)) == (2 if at == "decision" else 3)


@pytest.mark.parametrize("effect", ["pure", "once"])
@pytest.mark.parametrize("first", ["guard", "eager"])
async def test_no_retry_undoes_a_reject_at_the_start(first: str, effect: Any) -> None:
    entered: list[int] = []

    @tool(effect=effect)
    async def risky(a: int) -> str:
        """Would fail, and be tried again."""
        entered.append(a)
        raise RetryableToolError("busy")

    class Guard(Hook):
        guard = True
        asked = 0

        def on_tool_start(self, event: ToolStartEvent) -> Reject | None:
            self.asked += event.arguments["a"] == 2
            return Reject("never two") if event.arguments["a"] == 2 else None

    class Eager(Hook):
        def on_event(self, event: Event) -> Retry | None:
            return Retry("again") if isinstance(event, ToolStartEvent | ToolCompleteEvent) else None

    guard = Guard()
    hooks = [guard, Eager()] if first == "guard" else [Eager(), guard]
    model = ScriptedModel([call("risky", a=1), call("risky", a=2)], "done")
    result = await Agent(model, tools=[risky], hooks=hooks).run("x")
    assert results(result)[1] == "Error: Rejected: never two"
    assert 2 not in entered
    assert entered.count(1) > 1
    assert guard.asked == 1


async def test_a_rejected_call_does_not_count_as_called() -> None:
    class Policy(Hook):
        def on_tool_call(self, call: ToolCall) -> Reject:
            return Reject()

    agent = Agent(
        ScriptedModel(call("add", a=1), "done"),
        tools=[add],
        hooks=[Policy()],
        termination=ToolCalled("add", require_success=False),
        max_iterations=9,
    )
    result = await agent.run("x")
    assert result.stop_reason == "NoToolCalls"
    assert results(result) == ["Error: Rejected: a policy refuses this call"]


async def test_reject_elsewhere_is_nonsense_and_reported() -> None:
    recorder = Recorder()
    result = await Agent(ScriptedModel("hi"), hooks=[Ask(ThinkEvent, Reject("no")), recorder]).run("x")
    assert result.message == "hi"
    assert "hook_failed" in kinds(recorder.events)


# -- who wins --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, -1])
async def test_cancel_beats_reject_beats_retry(order: int) -> None:
    hooks = [Ask(ThinkEvent, Retry()), Ask(ThinkEvent, Cancel("stop")), Ask(ThinkEvent, Continue())][::order]
    model = ScriptedModel("hi")
    result = await Agent(model, hooks=hooks).run("x")
    assert result.stop_reason == "Cancelled: stop"
    assert len(model.requests) == 1

    flaky = Flaky(RetryableToolError("busy"))
    both = [Ask(ToolStartEvent, Reject("no")), Ask(ToolStartEvent, Retry())][::order]
    result = await Agent(ScriptedModel(call("fetch"), "done"), tools=[flaky.make()], hooks=both).run("x")
    assert (flaky.entered, results(result)) == (0, ["Error: Rejected: no"])


async def test_the_strictest_decision_wins_and_everybody_is_asked() -> None:
    asked: list[str] = []

    class Decider(Hook):
        def __init__(self, name: str, decision: Decision | None) -> None:
            self.name, self.decision = name, decision

        def on_tool_call(self, call: ToolCall) -> Decision | None:
            asked.append(self.name)
            return self.decision

    hooks = [Decider("a", Allow()), Decider("b", Reject("no")), Decider("c", None)]
    result = await Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=hooks).run("x")
    assert asked == ["a", "b", "c"]
    assert results(result) == ["Error: Rejected: no"]


async def test_a_decider_that_fails_rejects_the_call() -> None:
    class Broken(Hook):
        def on_tool_call(self, call: ToolCall) -> Decision:
            raise RuntimeError("no idea")

    bodies.clear()
    result = await Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[Broken()]).run("x")
    assert bodies["add"] == 0
    assert results(result)[0].startswith("Error: Rejected: plugin_error")


async def test_an_observer_that_fails_changes_nothing() -> None:
    class Broken(Hook):
        def on_event(self, event: Event) -> None:
            raise RuntimeError("no idea")

    result = await Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[Broken()]).run("x")
    assert (result.stop_reason, results(result)) == ("NoToolCalls", ["2"])
    report = result.reports["plugins"].of("Broken")
    assert report.failures[0].quarantined


# -- nodes and calls of plugins ---------------------------------------------------------------------------------


async def test_a_plugin_can_replace_a_node_and_leave_a_case_to_the_kernel() -> None:
    class FirstAnswerMyself(Hook):
        @hookimpl
        async def locus_think(self, state: AgentState, run: RunContext) -> AgentState | None:
            if state.iteration == 0:
                return state.with_message(Message(Role.ASSISTANT, ToolCall("mine", "add", {"a": 41})))
            return None

    model = ScriptedModel("42, I hear")
    result = await Agent(model, tools=[add], hooks=[FirstAnswerMyself()]).run("x")
    assert results(result) == ["42"]
    assert result.message == "42, I hear"
    assert len(model.requests) == 1


async def test_a_node_that_raises_ends_the_run_with_its_error() -> None:
    class Broken(Hook):
        name = "broken"

        @hookimpl
        async def locus_think(self, state: AgentState, run: RunContext) -> AgentState:
            raise LookupError("my mistake")

    recorder = Recorder()
    result = await Agent(ScriptedModel("hi"), hooks=[Broken(), recorder]).run("x")
    assert result.stop_reason == "NodeError"
    assert isinstance(result.error, LookupError)
    assert result.failed
    assert kinds(recorder.events).count("terminate") == 1


async def test_a_plugins_model_call_is_charged_and_bounded() -> None:
    class Judge(Hook):
        @hookimpl
        def locus_register_reflect_policies(self) -> list[EveryIterations]:
            return [EveryIterations(1)]

        @hookimpl
        async def locus_reflect(self, state: AgentState, run: RunContext) -> AgentState:
            asked = ModelRequest(messages=(Message(Role.USER, "was that right?"),))
            verdict = await run.call_model(asked, purpose="judge")
            return state.with_metadata("verdict", verdict.message.text)

    model = ScriptedModel(call("add", a=1), "yes", "two")
    recorder = Recorder()
    result = await Agent(model, tools=[add], hooks=[Judge(), recorder]).run("x")
    assert result.state.metadata["verdict"] == "yes"
    assert result.usage.total_tokens == 45
    purposes = [getattr(e, "purpose", None) for e in recorder.events if e.type == "model_complete"]
    assert purposes == ["think", "judge", "think"]

    spent = ScriptedModel(call("add", a=1), "yes", "never")
    limited = Agent(spent, tools=[add], hooks=[Judge()], termination=TokenLimit(29), max_iterations=9)
    result = await limited.run("x")
    assert (result.stop_reason, len(spent.requests)) == ("TokenLimit", 2)


async def test_what_a_decider_asked_a_model_is_its_own_question_after_a_resume() -> None:
    heard: list[str] = []

    class Steering(Hook):
        @hookimpl
        async def locus_decide_tool_call(self, call: ToolCall, run: RunContext) -> Decision:
            question = ModelRequest(messages=(Message(Role.USER, f"may I {call.name}?"),))
            verdict = await run.call_model(question, purpose="steer")
            heard.append(f"{call.name}: {verdict.message.text}")
            return Allow()

    def model(request: ModelRequest) -> Any:
        said = request.messages[-1].text
        if said.startswith("may I"):
            return f"yes to {said}"
        return [call("add", a=1), call("confirm", what="pay")] if said == "x" else "done"

    agent = Agent(
        ScriptedModel(model, after="repeat"), tools=[add, confirm], hooks=[Steering()], tool_execution="sequential"
    )
    result = await agent.resume(await agent.run("x"), "yes")
    assert results(result) == ["2", "pay: yes"]
    assert heard == [
        "add: yes to may I add?",
        "confirm: yes to may I confirm?",
        "confirm: yes to may I confirm?",
    ]
