"""Evaluations: what becomes of agents that work, ask, run into limits, raise, and are cut off in the middle."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import anyio
import pytest

from locus import Agent, MaxIterations, Message, ModelError, ModelRequest, ModelResponse, Role, ToolContext, Usage, tool
from locus.core.errors import ConfigError, InputError
from locus.core.messages import TextBlock
from locus.journal import JournalHost, MemoryStore
from locus.journal.listing import parent_thread
from locus.models import Price
from locus_plugin_eval import Case, EvaluationStopped, Suite, Trial, evaluate, evaluation
from locus_plugin_eval.checks import Called, Contains, Ends, Exact, Judge, NotCalled
from locus_plugin_eval.report import Report
from locus_plugin_eval.text import describe_report
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


def suite(*cases: Case, **more: Any) -> Suite:
    return Suite(name="desk", cases=cases, **more)


def case(name: str = "a", prompt: str = "Hi.", *checks: Any, **more: Any) -> Case:
    return Case(id=name, prompt=(prompt,), checks=checks, **more)


def the_user_said(request: ModelRequest) -> str:
    return [message for message in request.messages if message.role is Role.USER][-1].text


@tool
def price(item: str) -> str:
    """Look up a price."""
    return f"{item} costs 12 EUR"


def echo(request: ModelRequest) -> list[Any]:
    """A script for any order: look up what is asked, then say it."""
    said = the_user_said(request)
    return [call("price", item=said), f"{said} costs 12 EUR."]


async def test_trials_are_counted_and_kept_in_the_order_of_the_file() -> None:
    model = ScriptedModel(script=echo, after="cycle", price=Price(prompt=1.0, completion=2.0))
    store = MemoryStore()
    heard: list[tuple[str, int, int]] = []

    report = await evaluate(
        Agent(model, tools=[price], name="shop"),
        suite(
            case("lamp", "lamp", Contains(("12 EUR",)), Called("price", {"item": "lamp"}, 1)),
            case("chair", "chair", Exact("7 EUR")),
            repeats=3,
            concurrency=2,
        ),
        store=store,
        on_trial=lambda trial, total: heard.append((trial.case, trial.repeat, total)),
    )

    assert [(each.case, each.repeat, each.status) for each in report.trials] == [
        *(("lamp", n, "passed") for n in (1, 2, 3)),
        *(("chair", n, "failed") for n in (1, 2, 3)),
    ]
    assert sorted(heard) == sorted((each.case, each.repeat, 6) for each in report.trials)
    trial = report.trials[0]
    assert (trial.text, trial.iterations, trial.stop_reason) == ("lamp costs 12 EUR.", 2, "NoToolCalls")
    assert trial.tokens == 30
    assert trial.cost == pytest.approx(20 * 1e-6 + 10 * 2e-6)
    assert trial.seconds is not None
    assert trial.calls[0].result == "lamp costs 12 EUR"
    assert (report.tally.passed, report.tally.size) == (3, 6)
    assert {kind: (tally.passed, tally.size) for kind, tally in report.kinds.items()} == {
        "ended": (6, 6),
        "contains": (3, 3),
        "called": (3, 3),
        "exact": (0, 3),
    }
    assert parent_thread(trial.thread) == report.thread
    host = await JournalHost.peek(store, trial.thread)
    assert host is not None
    assert host.state.messages[-1].text == "lamp costs 12 EUR."


async def test_a_check_of_a_tool_with_a_typo_in_its_name_is_noted() -> None:
    """With a typo in it, `not_called` passes whatever the agent does."""
    model = ScriptedModel(script=echo, after="cycle")
    cases = suite(
        case("lamp", "lamp", NotCalled("prise"), Called("price")), case("chair", "chair", NotCalled("delete_all"))
    )

    report = await evaluate(Agent(model, tools=[price]), cases)

    assert [trial.status for trial in report.trials] == ["passed", "passed"]
    assert report.notes == ("case 'lamp' checks calls of 'prise', which is not a tool; did you mean 'price'?",)
    assert list(describe_report(report))[-1] == f"note: {report.notes[0]}"
    assert Report.from_json(json.loads(json.dumps(report.to_json()))) == report


async def test_no_more_trials_run_at_once_than_the_file_says() -> None:
    at_once: list[int] = [0, 0]

    async def answer(request: ModelRequest) -> str:
        at_once[0] += 1
        at_once[1] = max(at_once)
        await anyio.sleep(0.001)
        at_once[0] -= 1
        return "Yes."

    agent = Agent(ScriptedModel(answer, after="repeat"))
    await evaluate(agent, suite(*(case(f"c{n}") for n in range(12)), concurrency=3))
    assert at_once == [0, 3]


# -- what may go wrong ----------------------------------------------------------------------------


async def one(agent: Agent[Any, Any], given: Case, **more: Any) -> Trial:
    (trial,) = (await evaluate(agent, suite(given), **more)).trials
    return trial


async def test_an_agent_whose_model_fails_is_an_error_and_the_others_go_on() -> None:
    def script(request: ModelRequest) -> list[Any]:
        return [ModelError("the provider is down")] if the_user_said(request) == "bad" else ["Good."]

    report = await evaluate(Agent(ScriptedModel(script=script)), suite(case("x", "bad"), case("y", "good")))

    assert [each.status for each in report.trials] == ["error", "passed"]
    assert "the provider is down" in report.trials[0].checks[0].detail
    assert report.tally.size == 2


async def test_an_agent_that_raises_is_an_error() -> None:
    agent = Agent(ScriptedModel("Hi."))
    trial = await one(agent.with_effects(Broken(), clock=agent.runtime.clock, model=agent.runtime.model), case())
    assert trial.status == "error"
    assert "RuntimeError: the effects are broken" in trial.checks[0].detail


class Broken:
    """Effects that raise where an agent begins."""

    def now(self) -> Any:
        raise RuntimeError("the effects are broken")

    def new_id(self) -> str:
        raise RuntimeError("the effects are broken")

    def run(self, *args: Any) -> Any:
        raise RuntimeError("the effects are broken")


async def test_a_limit_is_a_failure_unless_it_is_expected() -> None:
    def make() -> Agent[Any, Any]:
        model = ScriptedModel(lambda request: call("price", item=str(len(request.messages))), after="repeat")
        return Agent(model, tools=[price], termination=MaxIterations(2))

    trial = await one(make(), case())
    assert (trial.status, trial.stop_reason) == ("failed", "MaxIterations")
    assert trial.checks[0].detail.startswith("MaxIterations")
    assert (await one(make(), case("a", "Hi.", Ends(("MaxIterations",))))).status == "passed"


async def test_an_answer_that_is_cut_is_an_error() -> None:
    cut = ModelResponse(
        message=Message(Role.ASSISTANT, (TextBlock("It costs 12"),)), stop_reason="length", usage=Usage()
    )
    trial = await one(Agent(ScriptedModel(cut)), case("a", "Hi.", Contains(("12",))))
    assert trial.status == "error"
    assert "cut at the length limit" in trial.checks[0].detail


@tool
def refund(order: int, ctx: ToolContext[Any]) -> str:
    """Pay back."""
    return f"order {order}: {ctx.interrupt(f'Refund {order}?', options=['yes', 'no'])}"


def asking() -> Agent[Any, Any]:
    return Agent(
        ScriptedModel(script=lambda request: [[call("refund", order=1), call("refund", order=2)], "Done."]),
        tools=[refund],
    )


async def test_a_case_answers_what_a_run_asks() -> None:
    trial = await one(asking(), case(answers=("yes", "no")))
    assert trial.status == "passed"
    assert [each.result for each in trial.calls] == ["order 1: yes", "order 2: no"]


@pytest.mark.parametrize("answers", [(), ("yes",)])
async def test_a_question_without_an_answer_is_a_failure(answers: tuple[str, ...]) -> None:
    trial = await one(asking(), case(answers=answers))
    assert (trial.status, trial.stop_reason) == ("failed", "Interrupted")
    assert 'it asks "Refund 1?", and the case has no answer left' in trial.checks[0].detail


async def test_the_turns_of_a_case_are_one_conversation() -> None:
    model = ScriptedModel(call("price", item="lamp"), "12 EUR.", call("price", item="chair"), "As much.")
    given = Case(id="a", prompt=("The lamp?", "And the chair?"), checks=(Exact("As much."), Called("price", times=2)))
    trial = await one(Agent(model, tools=[price]), given)
    assert trial.faults == ()
    assert [each.arguments["item"] for each in trial.calls] == ["lamp", "chair"]
    assert (trial.iterations, trial.tokens) == (4, 60)
    assert [message.text for message in model.requests[-1].messages if message.role is Role.USER] == [
        "The lamp?",
        "And the chair?",
    ]


async def test_tools_get_the_deps() -> None:
    @tool
    def who(ctx: ToolContext[str]) -> str:
        """Say who it is."""
        return ctx.deps

    agent = Agent(ScriptedModel(call("who"), "It is Ann."), tools=[who])
    assert (await one(agent, case(), deps="Ann")).calls[0].result == "Ann"


async def test_the_store_of_the_agent_is_left_alone() -> None:
    own = MemoryStore()
    await evaluate(Agent(ScriptedModel("Hi."), checkpointer=own), suite(case()))
    assert await own.threads() == ()


# -- judges ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdict", "status", "detail"),
    [
        ('{"reason": "It is.", "pass": true}', "passed", ""),
        ('{"reason": "It is rude.", "pass": false}', "failed", "It is rude."),
        ("Yes!", "error", "the judge gave no valid verdict"),
        (ModelError("down"), "error", "the judge failed: "),
    ],
)
async def test_a_judge_decides(verdict: Any, status: str, detail: str) -> None:
    judge = ScriptedModel(verdict, name="toy:judge")
    trial = await one(Agent(ScriptedModel("Hello.")), case("a", "Hi.", Judge("It is polite.")), judge=judge)
    found = trial.checks[-1]
    assert (trial.status, found.status, found.check) == (status, status, "It is polite.")
    assert found.detail.startswith(detail)
    assert bool(detail) == bool(found.detail)
    assert "Hello." in judge.requests[0].messages[-1].text
    assert trial.judge_tokens == (15 if isinstance(verdict, str) else 0)


async def test_an_answer_that_is_not_there_is_not_judged() -> None:
    judge = ScriptedModel()
    trial = await one(Agent(ScriptedModel(ModelError("down"))), case("a", "Hi.", Judge("It is polite.")), judge=judge)
    assert trial.checks[-1].detail == "there is no answer to judge"


async def test_a_case_that_asks_a_judge_needs_one() -> None:
    with pytest.raises(ConfigError, match="case 'a' asks a judge"):
        await evaluate(Agent(ScriptedModel()), suite(case("a", "Hi.", Judge("It is polite."))))


async def test_the_model_of_a_judge_is_made_once_and_before_the_first_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    agent = Agent(ScriptedModel("Hello.", after="repeat"))
    asked: ScriptedModel = agent.runtime.model  # type: ignore[assignment]

    def make(name: str) -> ScriptedModel:
        made.append(len(asked.requests))
        return ScriptedModel('{"reason": "It is.", "pass": true}', after="repeat", name=name)

    monkeypatch.setattr(evaluation, "get_model", make)
    store, judged = MemoryStore(), suite(case("a", "Hi.", Judge("Polite."), Judge("Short.")), repeats=2)
    first = await evaluate(agent, judged, store=store, thread_id="nightly", judge="toy:judge")
    assert [each.status for each in first.trials] == ["passed"] * 2
    assert made == [0]
    # One that has ended is shown again, also where the judge is not installed.
    assert await evaluate(agent, judged, store=store, thread_id="nightly", judge="toy:judge") == first
    assert made == [0]


# -- going on -------------------------------------------------------------------------------------


async def test_an_evaluation_that_was_cancelled_goes_on_and_repeats_no_trial_that_ended() -> None:
    store, asked = MemoryStore(), Counter[str]()
    hang = True

    async def answer(request: ModelRequest) -> str:
        said = the_user_said(request)
        asked[said] += 1
        if said == "third" and hang:
            await anyio.sleep_forever()
        return "Yes."

    agent = Agent(ScriptedModel(answer, after="repeat"), name="shop")
    cases = suite(*(case(name, name) for name in ("first", "second", "third", "fourth")), concurrency=1)
    heard: list[str] = []
    with anyio.CancelScope() as scope:

        def hear(trial: Trial, total: int) -> None:
            heard.append(trial.case)
            if len(heard) == 2:
                scope.cancel()

        await evaluate(agent, cases, store=store, on_trial=hear)
    assert heard == ["first", "second"]

    hang = False
    report = await evaluate(agent, cases, store=store)

    assert [each.status for each in report.trials] == ["passed"] * 4
    assert (asked["first"], asked["second"], asked["fourth"]) == (1, 1, 1)
    assert report.thread.endswith("/1")
    again = await evaluate(agent, cases, store=store)
    assert again.thread == f"{report.thread[:-1]}2"
    assert asked["first"] == 2


async def test_a_named_evaluation_that_has_ended_is_not_run_again() -> None:
    store, model = MemoryStore(), ScriptedModel("Yes.")
    agent = Agent(model)
    first = await evaluate(agent, suite(case()), store=store, thread_id="nightly")
    second = await evaluate(agent, suite(case()), store=store, thread_id="nightly")
    assert first == second
    assert len(model.requests) == 1
    with pytest.raises(InputError, match="'nightly' is one of other cases"):
        await evaluate(agent, suite(case("b")), store=store, thread_id="nightly")
    with pytest.raises(InputError, match="is not an evaluation"):
        await evaluate(agent, suite(case()), store=store, thread_id=first.trials[0].thread)


async def test_an_agent_that_has_changed_begins_a_new_evaluation() -> None:
    store = MemoryStore()
    one = await evaluate(Agent(ScriptedModel("Yes."), system_prompt="Be brief."), suite(case()), store=store)
    other = await evaluate(Agent(ScriptedModel("Yes."), system_prompt="Be long."), suite(case()), store=store)
    assert one.thread != other.thread
    assert one.thread.endswith("/1")
    assert other.thread.endswith("/1")


async def test_a_journal_that_fails_ends_the_evaluation_and_counts_against_nobody() -> None:
    class Full(MemoryStore):
        async def append(self, claim: Any, bodies: Any) -> Any:
            if "/trial/" in claim.thread_id:
                raise OSError(28, "No space left on device")
            return await super().append(claim, bodies)

    with pytest.raises(EvaluationStopped, match=r"No space left on device.*the same call goes on with it"):
        await evaluate(Agent(ScriptedModel("Yes.")), suite(case()), store=Full())


async def test_checks_see_the_whole_of_a_long_answer_and_reports_hold_its_ends() -> None:
    text = f"{'x' * 50_000} lamp {'y' * 50_000}"
    trial = await one(Agent(ScriptedModel(text)), case("a", "Hi.", Contains(("lamp",))))
    assert trial.status == "passed"
    assert len(trial.text) < 21_000
    assert trial.text.startswith("xxx")
    assert trial.text.endswith("yyy")
