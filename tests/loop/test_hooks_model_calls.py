"""`run.call_model`: how plugins ask a model. Recorded, charged, within the run's budgets, and never of themselves."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import anyio
import pytest
from attrs import evolve
from tests.loop.hook_kit import Crash, failures, question
from tests.loop.kit import Recorder, add, confirm, kinds, of, results

from locus import (
    Accept,
    Agent,
    AgentState,
    Allow,
    Decision,
    Event,
    Hook,
    IterationEvent,
    Message,
    ModelChunkEvent,
    ModelCompleteEvent,
    ModelError,
    ModelErrorEvent,
    ModelRequest,
    ModelRestartEvent,
    Reject,
    Retry,
    Revise,
    Role,
    TerminateEvent,
    ThinkEvent,
    ToolStartEvent,
    Usage,
)
from locus.core.errors import BudgetExceeded
from locus.core.journal import Outcome
from locus.core.messages import ToolCall
from locus.core.termination import CostLimit, MaxIterations, TimeLimit, TokenLimit
from locus.journal import MemoryStore
from locus.models.protocol import Price
from locus.plugin import RunContext, View, hookimpl
from locus_kit.reflect import EveryIterations
from locus_testkit import ScriptedModel, call
from locus_testkit.clock import FakeClock

pytestmark = pytest.mark.anyio


def by_purpose(answer: Any = "yes", think: Any = "done") -> ScriptedModel:
    """A model that answers plugins one thing and the loop another."""
    return ScriptedModel(lambda request: think if request.purpose == "think" else answer, after="repeat")


class Judge(Hook):
    """Asks a model at one point of the run."""

    name = "judge"

    def __init__(self, at: str, **options: Any) -> None:
        self.at, self.options = at, options
        self.heard: list[str] = []
        self.errors: list[Exception] = []

    async def ask(self, run: RunContext, about: str = "Is that right?") -> str:
        try:
            answer = await run.call_model(question(about), purpose="judge", **self.options)
        except (BudgetExceeded, ModelError) as e:
            self.errors.append(e)
            return ""
        self.heard.append(answer.message.text)
        return answer.message.text

    async def on_event(self, event: Event, run: RunContext) -> None:
        if event.type == self.at and getattr(event, "purpose", "think") == "think":
            await self.ask(run)

    async def on_tool_call(self, call: ToolCall, run: RunContext) -> Decision:
        said = await self.ask(run, f"May I {call.name}{dict(call.arguments)}?") if self.at == "decide" else "yes"
        return Allow() if said == "yes" else Reject(said)

    @hookimpl
    async def locus_filter_input(self, prompt: Message, run: RunContext) -> str | None:
        return await self.ask(run, prompt.text) if self.at == "filter" else None

    @hookimpl
    async def locus_review_answer(self, answer: Message, run: RunContext) -> Accept | Revise:
        said = await self.ask(run, answer.text) if self.at == "review" else "yes"
        return Accept() if said in ("yes", "") else Revise(said)

    @hookimpl
    def locus_register_reflect_policies(self) -> list[EveryIterations]:
        return [EveryIterations(1)] if self.at == "reflect" else []

    @hookimpl
    async def locus_reflect(self, state: AgentState, run: RunContext) -> AgentState:
        return state.with_metadata("judged", await self.ask(run))

    @hookimpl
    async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest, run: RunContext) -> Any:
        response = await call_next(request)
        if self.at == "wrap":
            await self.ask(run)
        return response


# -- from everywhere ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "times"),
    [
        ("run_start", 1),
        ("iteration", 2),
        ("model_complete", 2),
        ("think", 2),
        ("tool_start", 1),
        ("tool_complete", 1),
        ("checkpoint", 3),
        ("filter", 1),
        ("decide", 1),
        ("review", 1),
        ("reflect", 1),
        ("wrap", 2),
    ],
)
async def test_a_plugin_may_ask_a_model_anywhere_and_the_run_pays_for_it(at: str, times: int) -> None:
    thoughts: Iterator[Any] = iter([call("add", a=1), "done"])
    model = ScriptedModel(lambda r: next(thoughts) if r.purpose == "think" else "yes", after="repeat")
    judge, recorder = Judge(at), Recorder()
    with anyio.fail_after(5):
        result = await Agent(model, tools=[add], hooks=[judge, recorder]).run("x")
    assert (result.stop_reason, result.message, results(result)) == ("NoToolCalls", "done", ["2"])
    assert judge.heard == ["yes"] * times
    assert result.usage.total_tokens == 15 * (2 + times)
    told = [e.purpose for e in of(recorder.events, ModelCompleteEvent)]
    assert sorted(told) == ["judge"] * times + ["think"] * 2
    [end] = of(recorder.events, TerminateEvent)
    assert end.usage == result.usage
    assert failures(result, "judge") == ()


async def test_asking_when_the_run_is_over_is_refused() -> None:
    judge = Judge("terminate")
    model = by_purpose()
    result = await Agent(model, hooks=[judge]).run("x")
    assert len(model.requests) == 1
    [error] = judge.errors
    assert isinstance(error, BudgetExceeded)
    assert error.reason == "NoToolCalls"
    assert result.usage.total_tokens == 15


async def test_the_verdict_of_a_model_decides_a_call_a_prompt_and_an_answer() -> None:
    model = by_purpose(answer="no, thanks", think=call("add", a=1))
    result = await Agent(model, tools=[add], hooks=[Judge("decide")], max_iterations=1).run("x")
    assert results(result) == ["Error: Rejected: no, thanks"]

    result = await Agent(by_purpose(answer="cleaned"), hooks=[Judge("filter")]).run("dirty")
    assert result.state.messages[0].text == "cleaned"

    answers = iter(["shorter", "yes"])
    model = ScriptedModel(lambda r: "done" if r.purpose == "think" else next(answers), after="repeat")
    result = await Agent(model, hooks=[Judge("review")]).run("x")
    assert [m.text for m in result.state.messages] == ["x", "done", "shorter", "done"]


async def test_a_plugin_may_bring_its_own_model_and_its_price() -> None:
    own = ScriptedModel(
        "yes", name="own:judge", price=Price(prompt=1_000_000, completion=0), usage=Usage(prompt_tokens=3)
    )
    recorder = Recorder()
    result = await Agent(ScriptedModel("done"), hooks=[Judge("think", model=own), recorder]).run("x")
    assert len(own.requests) == 1
    assert (result.cost, result.usage.total_tokens) == (3.0, 18)
    assert [(e.model, e.purpose) for e in of(recorder.events, ModelCompleteEvent)] == [
        ("scripted:model", "think"),
        ("own:judge", "judge"),
    ]


async def test_a_plugin_may_name_the_model_of_another_plugin(plugin_catalogue: Any) -> None:
    plugin_catalogue.write(
        "toy",
        "from locus_testkit import ScriptedModel\ndef make(rest, settings):\n    return ScriptedModel(rest)\n",
        provides={"model": "make"},
    )
    judge = Judge("think", model="toy:indeed")
    await Agent(ScriptedModel("done"), hooks=[judge], catalogue=plugin_catalogue.catalogue).run("x")
    assert judge.heard == ["indeed"]


async def test_a_model_that_nobody_provides_is_the_plugins_failure(plugin_catalogue: Any) -> None:
    judge = Judge("think", model="nobody:x")
    result = await Agent(ScriptedModel("done"), hooks=[judge], catalogue=plugin_catalogue.catalogue).run("x")
    assert result.message == "done"
    assert "nobody" in failures(result, "judge")[0].error


async def test_the_loops_own_purpose_is_not_for_plugins() -> None:
    class Pretend(Hook):
        async def on_think(self, event: ThinkEvent, run: RunContext) -> None:
            await run.call_model(question("x"), purpose="think")

    model = ScriptedModel("done")
    result = await Agent(model, hooks=[Pretend()]).run("x")
    assert len(model.requests) == 1
    assert "loop's own" in failures(result, "Pretend")[0].error


async def test_what_a_plugin_asks_is_streamed_under_its_purpose() -> None:
    recorder = Recorder()
    model = ScriptedModel("all done", "quite right", chunks=True)
    await Agent(model, hooks=[Judge("think"), recorder]).run("x")
    assert [(c.purpose, c.text, c.attempt) for c in of(recorder.events, ModelChunkEvent)] == [
        ("think", "all", 0),
        ("think", " done", 0),
        ("judge", "quite", 0),
        ("judge", " right", 0),
    ]


async def test_the_wrappers_of_the_loops_calls_are_not_around_those_of_plugins() -> None:
    wrapped: list[str] = []

    class Wrap(Hook):
        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> Any:
            wrapped.append(request.purpose)
            response = await call_next(request)
            return evolve(response, message=Message(Role.ASSISTANT, "wrapped"))

    judge = Judge("think")
    result = await Agent(ScriptedModel("done", "yes"), hooks=[Wrap(), judge]).run("x")
    assert (wrapped, result.message, judge.heard) == (["think"], "wrapped", ["yes"])


# -- no re-entry --------------------------------------------------------------------------------------


class Curious(Hook):
    """Asks a model about every model call that it hears of."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.heard: list[str] = []

    async def on_model_complete(self, event: ModelCompleteEvent, run: RunContext) -> None:
        self.heard.append(event.purpose)
        await run.call_model(question(f"{self.name} asks about {event.purpose}"), purpose=self.name)


async def test_a_plugin_does_not_hear_of_its_own_model_call() -> None:
    curious, recorder = Curious("curious"), Recorder()
    model = by_purpose()
    with anyio.fail_after(5):
        result = await Agent(model, hooks=[curious, recorder], max_iterations=3).run("x")
    assert curious.heard == ["think"]
    assert len(model.requests) == 2
    assert [e.purpose for e in of(recorder.events, ModelCompleteEvent)] == ["curious", "think"]
    assert failures(result, "curious") == ()


async def test_two_plugins_that_ask_about_each_others_calls_come_to_an_end() -> None:
    a, b = Curious("a"), Curious("b")
    model = by_purpose()
    with anyio.fail_after(5):
        result = await Agent(model, hooks=[a, b], max_iterations=3).run("x")
    assert (a.heard, b.heard) == (["think", "b"], ["a", "think"])
    assert len(model.requests) == 5
    assert failures(result, "a") == failures(result, "b") == ()


async def test_a_plugin_hears_of_its_own_other_events_as_ever() -> None:
    heard: list[str] = []

    class Both(Hook):
        async def on_iteration(self, event: IterationEvent, run: RunContext) -> None:
            await run.call_model(question("x"), purpose="both")

        def on_model_complete(self, event: ModelCompleteEvent) -> None:
            heard.append(event.purpose)

    await Agent(by_purpose(), hooks=[Both()]).run("x")
    assert heard == ["think"]


async def test_a_plugin_hears_of_calls_that_are_made_inside_what_it_wraps() -> None:
    heard: list[str] = []

    class Telemetry(Hook):
        @hookimpl
        async def locus_wrap_node(self, call_next: Any, node: str, state: AgentState) -> Any:
            return await call_next(state)

        def on_model_complete(self, event: ModelCompleteEvent) -> None:
            heard.append(event.purpose)

    class Summarise:
        """A conversation manager that asks at every turn."""

        async def view(self, state: AgentState, run: RunContext) -> View:
            await run.call_model(question("sum up"), purpose="summarize")
            return View(state.messages)

    await Agent(by_purpose(), hooks=[Telemetry()], conversation_manager=Summarise()).run("x")
    assert heard == ["summarize", "think"]


async def test_concurrent_calls_of_one_plugin_do_not_hide_the_loops_events_from_it() -> None:
    heard: list[str] = []

    class Steering(Hook):
        async def on_tool_call(self, call: ToolCall, run: RunContext) -> None:
            await run.call_model(question(f"May I {dict(call.arguments)}?"), purpose="steer")

        def on_tool_start(self, event: ToolStartEvent) -> None:
            heard.append(event.type)

        def on_event(self, event: Event) -> None:
            if getattr(event, "purpose", "think") != "think":
                heard.append(event.type)

    thoughts: Iterator[Any] = iter([[call("add", a=1), call("add", a=2)], "done"])
    model = ScriptedModel(lambda r: next(thoughts) if r.purpose == "think" else "yes", after="repeat")
    await Agent(model, tools=[add], hooks=[Steering()]).run("x")
    assert heard == ["tool_start", "tool_start"]


# -- budgets ------------------------------------------------------------------------------------------


async def test_plugins_calls_count_against_the_tokens_of_the_run() -> None:
    judge = Judge("tool_complete")
    thoughts: Iterator[Any] = iter([call("add", a=1), "never"])
    model = ScriptedModel(lambda r: next(thoughts) if r.purpose == "think" else "yes", after="repeat")
    agent = Agent(model, tools=[add], hooks=[judge], termination=TokenLimit(29), max_iterations=9)
    result = await agent.run("x")
    assert (result.stop_reason, len(model.requests), result.usage.total_tokens) == ("TokenLimit", 2, 30)


async def test_a_call_beyond_the_tokens_is_not_made_and_says_why() -> None:
    judge = Judge("think")
    model = ScriptedModel("done", "never")
    agent = Agent(model, hooks=[judge], termination=TokenLimit(10), max_iterations=9)
    result = await agent.run("x")
    assert len(model.requests) == 1
    [error] = judge.errors
    assert isinstance(error, BudgetExceeded)
    assert error.reason == "TokenLimit"
    assert result.usage.total_tokens == 15


async def test_what_one_plugin_spends_in_a_node_is_known_to_the_next() -> None:
    first, second = Judge("tool_complete"), Judge("tool_complete")
    second.name = "second"
    thoughts: Iterator[Any] = iter([call("add", a=1), "never"])
    model = ScriptedModel(lambda r: next(thoughts) if r.purpose == "think" else "yes", after="repeat")
    agent = Agent(model, tools=[add], hooks=[first, second], termination=TokenLimit(20), max_iterations=9)
    await agent.run("x")
    assert first.heard == ["yes"]
    assert [type(e) for e in second.errors] == [BudgetExceeded]


async def test_the_time_of_the_run_bounds_plugins_calls() -> None:
    clock = FakeClock()

    class Slow(Hook):
        def on_tool_start(self, event: ToolStartEvent) -> None:
            clock.advance(60)

    judge = Judge("tool_complete")
    model = ScriptedModel(call("add", a=1), "never")
    agent = Agent(
        model,
        tools=[add],
        hooks=[Slow(), judge],
        clock=clock,
        termination=TimeLimit(timedelta(seconds=30)),
        max_iterations=9,
    )
    result = await agent.run("x")
    assert result.stop_reason == "TimeLimit"
    assert [e.reason for e in judge.errors if isinstance(e, BudgetExceeded)] == ["TimeLimit"]


async def test_the_dollars_of_the_run_bound_plugins_calls() -> None:
    judge = Judge("tool_complete")
    model = ScriptedModel(call("add", a=1), "never", price=Price(prompt=1_000_000, completion=0))
    agent = Agent(model, tools=[add], hooks=[judge], termination=CostLimit(10), max_iterations=9)
    result = await agent.run("x")
    assert (result.stop_reason, result.cost) == ("CostLimit", 10.0)
    assert len(model.requests) == 1


async def test_the_number_of_iterations_is_the_loops_own_and_no_matter_of_plugins() -> None:
    judge = Judge("tool_complete")
    thoughts: Iterator[Any] = iter([call("add", a=1), call("add", a=2), call("add", a=3)])
    model = ScriptedModel(lambda r: next(thoughts) if r.purpose == "think" else "yes", after="repeat")
    agent = Agent(model, tools=[add], hooks=[judge], termination=MaxIterations(2))
    result = await agent.run("x")
    assert result.stop_reason == "MaxIterations"
    assert judge.heard == ["yes", "yes"]


async def test_a_plugin_that_does_not_expect_a_refusal_has_failed_and_no_more() -> None:
    class Naive(Hook):
        async def on_think(self, event: ThinkEvent, run: RunContext) -> None:
            await run.call_model(question("x"), purpose="naive")

    model = ScriptedModel(call("add", a=1), "never")
    agent = Agent(model, tools=[add], hooks=[Naive()], termination=TokenLimit(10), max_iterations=9)
    result = await agent.run("x")
    assert result.stop_reason == "TokenLimit"
    assert failures(result, "Naive")[0].error.startswith("BudgetExceeded")


# -- failing ------------------------------------------------------------------------------------------


async def test_a_failing_call_of_a_plugin_is_reported_under_its_purpose_and_harms_nobody() -> None:
    judge, recorder = Judge("think"), Recorder()
    model = ScriptedModel("done", ModelError("busy", retryable=True))
    result = await Agent(model, hooks=[judge, recorder]).run("x")
    assert (result.stop_reason, result.message) == ("NoToolCalls", "done")
    assert [str(e) for e in judge.errors] == ["busy"]
    [told] = of(recorder.events, ModelErrorEvent)
    assert (told.purpose, told.error, told.retryable, told.attempt) == ("judge", "busy", True, 0)


async def test_a_retry_that_is_asked_for_after_a_plugins_call_does_not_throw_the_loops_answer_away() -> None:
    class RetryAll(Hook):
        def on_model_error(self, event: ModelErrorEvent) -> Retry:
            return Retry("busy")

    class Summarise:
        """A conversation manager whose call fails before the loop asks."""

        async def view(self, state: AgentState, run: RunContext) -> View:
            if state.iteration == 0 and len(state.messages) == 1:
                with pytest.raises(ModelError):
                    await run.call_model(question("sum up"), purpose="summarize")
            return View(state.messages)

    recorder = Recorder()
    model = ScriptedModel(ModelError("busy"), "done")
    result = await Agent(model, hooks=[RetryAll(), recorder], conversation_manager=Summarise()).run("x")
    assert (result.message, len(model.requests)) == ("done", 2)
    assert of(recorder.events, ModelRestartEvent) == []


async def test_a_plugin_may_ask_again_by_itself() -> None:
    class Persistent(Hook):
        heard = ""

        async def on_think(self, event: ThinkEvent, run: RunContext) -> None:
            for _ in range(2):
                try:
                    self.heard = (await run.call_model(question("x"), purpose="p")).message.text
                except ModelError:
                    continue

    hook = Persistent()
    model = ScriptedModel("done", ModelError("busy"), "here")
    result = await Agent(model, hooks=[hook]).run("x")
    assert (hook.heard, result.usage.total_tokens) == ("here", 30)


# -- on record ----------------------------------------------------------------------------------------


class Passes(Hook):
    """A reviewer whose verdict is on record before the process dies, and with it all that came before."""

    @hookimpl
    async def locus_review_answer(self) -> Accept:
        return Accept()


class Dies(Hook):
    """The process dies when the answer is reviewed, after all other reviewers."""

    alive = False

    @hookimpl
    async def locus_review_answer(self) -> None:
        if not self.alive:
            raise Crash


@pytest.mark.parametrize("at", ["think", "wrap", "model_complete", "review"])
async def test_after_a_crash_what_was_asked_is_not_asked_again_and_paid_once(at: str) -> None:
    store, dies, judge = MemoryStore(), Dies(), Judge(at)
    thoughts: Iterator[Any] = iter(["done"])
    model = ScriptedModel(lambda r: next(thoughts) if r.purpose == "think" else "yes", after="repeat")
    agent = Agent(model, hooks=[judge, dies], checkpointer=store)
    with pytest.raises(Crash):
        await agent.run("x", thread_id="t")
    assert len(model.requests) == 2
    dies.alive = True
    result = await agent.resume("t")
    assert (result.message, len(model.requests)) == ("done", 2)
    assert result.usage.total_tokens == 30


async def test_the_same_question_twice_in_one_node_is_two_calls_on_record() -> None:
    heard: list[str] = []

    class Twice(Hook):
        async def on_think(self, event: ThinkEvent, run: RunContext) -> None:
            for _ in range(2):
                heard.append((await run.call_model(question("again?"), purpose="p")).message.text)

    store, dies = MemoryStore(), Dies()
    model = ScriptedModel("done", "one", "two")
    agent = Agent(model, hooks=[Twice(), Passes(), dies], checkpointer=store)
    with pytest.raises(Crash):
        await agent.run("x", thread_id="t")
    dies.alive = True
    await agent.resume("t")
    assert heard == ["one", "two", "one", "two"]
    asked = [e.body for e in await store.read("t") if isinstance(e.body, Outcome) and e.body.step_id.purpose == "p"]
    assert len(asked) == len({o.step_id for o in asked}) == 2


async def test_the_same_question_to_another_model_is_another_question() -> None:
    heard: list[str] = []
    small, large = ScriptedModel("small says", name="toy:small"), ScriptedModel("large says", name="toy:large")

    class Escalate(Hook):
        async def on_think(self, event: ThinkEvent, run: RunContext) -> None:
            for model in (small, large):
                heard.append((await run.call_model(question("hard?"), model=model, purpose="p")).message.text)

    dies = Dies()
    agent = Agent(ScriptedModel("done"), hooks=[Escalate(), Passes(), dies], checkpointer=MemoryStore())
    with pytest.raises(Crash):
        await agent.run("x", thread_id="t")
    dies.alive = True
    result = await agent.resume("t")
    assert heard == ["small says", "large says"] * 2
    assert failures(result, "Escalate") == ()


async def test_each_decision_keeps_its_own_answer_when_a_sibling_asks_a_person() -> None:
    class Steering(Hook):
        async def on_tool_call(self, call: ToolCall, run: RunContext) -> Decision:
            said = await run.call_model(question(f"May I {call.name}?"), purpose="steer")
            return Allow() if said.message.text == "yes" else Reject(said.message.text)

    def answer(request: ModelRequest) -> Any:
        if request.purpose == "think":
            return next(thoughts)
        return "no" if "add" in request.messages[-1].text else "yes"

    thoughts: Iterator[Any] = iter([[call("add", a=1), call("confirm", what="pay")], "done"])
    agent = Agent(ScriptedModel(answer, after="repeat"), tools=[add, confirm], hooks=[Steering()])
    result = await agent.resume(await agent.run("x"), "go on")
    assert results(result) == ["Error: Rejected: no", "pay: go on"]


async def test_what_a_filter_asked_in_an_earlier_turn_is_not_taken_for_this_one() -> None:
    # The earlier turn was left open in the middle of a node, with a call of the same plugin on record.
    class Guarded(Hook):
        """Asks the same question about whatever it sees, as a careless plugin does."""

        def __init__(self) -> None:
            self.heard: list[str] = []

        async def ask(self, run: RunContext) -> str:
            self.heard.append((await run.call_model(question("Is this fine?"), purpose="guard")).message.text)
            return self.heard[-1]

        async def on_tool_call(self, call: ToolCall, run: RunContext) -> None:
            await self.ask(run)

        @hookimpl
        async def locus_filter_input(self, prompt: Message, run: RunContext) -> None:
            await self.ask(run)

    verdicts: Iterator[Any] = iter(["first prompt", "call", "second prompt"])
    thoughts: Iterator[Any] = iter([call("confirm", what="pay"), "hello"])
    model = ScriptedModel(lambda r: next(thoughts if r.purpose == "think" else verdicts), after="repeat")
    hook = Guarded()
    agent = Agent(model, tools=[confirm], hooks=[hook], checkpointer=MemoryStore())
    await agent.run("x", thread_id="t")
    result = await agent.run("never mind", thread_id="t")
    assert result.message == "hello"
    assert hook.heard == ["first prompt", "call", "second prompt"]
    assert result.usage.total_tokens == 30


async def test_what_a_turn_asked_that_never_began_is_not_taken_for_the_run_that_is_open() -> None:
    class Guarded(Hook):
        """Asks the same question about calls and prompts, and dies in the second prompt."""

        prompts = 0

        def __init__(self) -> None:
            self.heard: list[str] = []

        async def ask(self, run: RunContext) -> str:
            return (await run.call_model(question("Is this fine?"), purpose="guard")).message.text

        async def on_tool_call(self, call: ToolCall, run: RunContext) -> None:
            self.heard.append(await self.ask(run))

        @hookimpl
        async def locus_filter_input(self, prompt: Message, run: RunContext) -> None:
            async def nothing() -> None:
                return None

            await self.ask(run)
            await run.step("nothing", nothing)  # puts what came before it on record
            self.prompts += 1
            if self.prompts == 2:
                raise Crash

    verdicts: Iterator[Any] = iter(["first prompt", "call", "second prompt"])
    thoughts: Iterator[Any] = iter([call("confirm", what="pay"), "done"])
    model = ScriptedModel(lambda r: next(thoughts if r.purpose == "think" else verdicts), after="repeat")
    hook = Guarded()
    agent = Agent(model, tools=[confirm], hooks=[hook], checkpointer=MemoryStore())
    await agent.run("x", thread_id="t")
    with pytest.raises(Crash):
        await agent.run("never mind", thread_id="t")
    result = await agent.resume("t", "yes")
    assert (result.message, results(result)) == ("done", ["pay: yes"])
    assert hook.heard == ["call", "call"]


async def test_a_call_in_a_run_that_somebody_cancelled_is_not_made() -> None:
    class Stop(Hook):
        def on_think(self, event: ThinkEvent, run: RunContext) -> None:
            run.cancel("enough")

    judge, recorder = Judge("checkpoint"), Recorder()
    model = ScriptedModel(call("add", a=1), "yes", "yes")
    result = await Agent(model, tools=[add], hooks=[Stop(), judge, recorder]).run("x")
    assert result.stop_reason == "Cancelled: enough"
    assert {e.reason for e in judge.errors if isinstance(e, BudgetExceeded)} == {"Cancelled: enough"}
    assert kinds(recorder.events)[-1] == "terminate"


# --- attempts of a wrapper --------------------------------------------------------------------------------------------


class Again(Hook):
    """Asks as often as it takes to get an answer with a word in it, or until it is told that it may not."""

    name = "again"

    def __init__(self) -> None:
        self.refused: list[BudgetExceeded] = []

    @hookimpl
    async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest, run: RunContext) -> Any:
        for _ in range(9):
            try:
                response = await call_next(request)
            except BudgetExceeded as e:
                self.refused.append(e)
                raise
            except ModelError:
                continue
            if response.message.text:
                break
        return response


@pytest.mark.parametrize("turn", ["", ModelError("busy", status=503, usage=Usage(prompt_tokens=10))])
@pytest.mark.parametrize(
    ("limit", "reason"),
    [(TokenLimit(25), "TokenLimit"), (CostLimit(25.0), "CostLimit"), (CostLimit(1e9) | TokenLimit(25), "TokenLimit")],
)
async def test_a_limit_holds_between_the_attempts_of_a_wrapper(turn: Any, limit: Any, reason: str) -> None:
    again = Again()
    dollar = Price(prompt=1_000_000, completion=1_000_000)
    model = ScriptedModel(turn, after="repeat", usage=Usage(prompt_tokens=10), price=dollar)
    run = Agent(model, hooks=[again], termination=limit | MaxIterations(3)).run("Hi.")
    events = [event async for event in run]
    assert len(model.requests) == 3, "30 are more than 25: the fourth attempt is not made"
    assert [e.reason for e in again.refused] == [reason]
    assert (run.result.stop_reason, run.result.usage.prompt_tokens) == (reason, 30)
    assert not failures(run.result, "again"), "a limit is nobody's fault"
    assert {event.error for event in of(events, ModelErrorEvent) if "busy" not in event.error} <= {
        str(again.refused[0])
    }


async def test_a_run_that_is_cancelled_makes_no_further_attempt() -> None:
    class Stops(Again):
        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest, run: RunContext) -> Any:
            await call_next(request)
            run.cancel("enough")
            return await call_next(request)

    model = ScriptedModel("one", "two")
    result = await Agent(model, hooks=[Stops()]).run("Hi.")
    assert (result.stop_reason, len(model.requests), result.usage.total_tokens) == ("Cancelled: enough", 1, 15)
