"""An answer says what it is: one that is cut, filtered, refused, empty or invalid is not "the model has answered"."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from tests.loop.kit import Recorder, add, of

from locus import Agent, AgentResult, Hook, Message, ModelSettings, Role, TerminateEvent, tool
from locus.core.directives import Accept, Cancel, Revise
from locus.core.errors import AnswerFailed, ConfigError, RunFailed
from locus.core.journal import END, Transition
from locus.core.messages import ANSWER_FAULTS, Block, MediaBlock, RawBlock, TextBlock, ThinkingBlock
from locus.core.state import AgentState
from locus.core.termination import MaxIterations, NoToolCalls, TextMention, ToolCalled
from locus.journal import MemoryStore
from locus.loop.router import Node, Router
from locus.models import ModelResponse, StopReason
from locus.plugin import RunContext, hookimpl
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


@attrs.frozen
class Flight:
    number: str


def answer(text: str | tuple[Block, ...], stop_reason: StopReason = "stop") -> ModelResponse:
    return ModelResponse(message=Message(Role.ASSISTANT, text), stop_reason=stop_reason)


FAULTY: dict[str, tuple[ModelResponse, dict[str, Any]]] = {
    "Truncated": (answer("The answer is", "length"), {}),
    "ContentFiltered": (answer("The", "filter"), {}),
    "Refused": (answer("I cannot help with that.", "refusal"), {}),
    "EmptyAnswer": (answer(" \n"), {}),
    "OutputInvalid": (answer("by plane"), {"output_schema": Flight, "max_revisions": 0}),
}
faults = pytest.mark.parametrize("fault", FAULTY)


@faults
async def test_a_faulty_answer_ends_the_run_under_the_name_of_its_fault(fault: str) -> None:
    said, options = FAULTY[fault]
    recorder = Recorder()
    result = await Agent(ScriptedModel(said), hooks=[recorder], **options).run("x")
    assert (result.stop_reason, result.satisfied, result.detail) == (fault, (fault,), ANSWER_FAULTS[fault])
    assert result.failed
    assert result.text == said.message.text  # what there is of it is kept
    (end,) = of(recorder.events, TerminateEvent)
    assert (end.reason, end.detail, end.ending.is_failure) == (fault, result.detail, True)


@faults
async def test_a_faulty_answer_raises_for_those_who_ask(fault: str) -> None:
    said, options = FAULTY[fault]
    result = await Agent(ScriptedModel(said), **options).run("x")
    with pytest.raises(AnswerFailed, match=f"the run ended with {fault}: ") as caught:
        result.raise_for_failure()
    assert caught.value.reason == fault
    assert isinstance(caught.value, RunFailed)


async def test_what_does_not_fit_the_schema_is_in_the_error_and_in_the_state() -> None:
    result = await Agent(ScriptedModel("by plane", after="repeat"), output_schema=Flight).run("x")
    with pytest.raises(AnswerFailed, match="expected JSON"):
        result.raise_for_failure()
    assert result.state.errors[-1].startswith("OutputInvalid: ")
    assert result.state.revisions == 2


async def test_an_error_of_the_model_raises_the_general_error() -> None:
    result = await Agent(ScriptedModel(RuntimeError("broken"))).run("x")
    with pytest.raises(RunFailed, match=r"the run ended with ModelError: .*broken") as caught:
        result.raise_for_failure()
    assert caught.value.reason == "ModelError"
    assert not isinstance(caught.value, AnswerFailed)
    assert caught.value.__cause__ is result.error


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ((), "EmptyAnswer"),
        ((ThinkingBlock("hm"),), "EmptyAnswer"),
        ((ThinkingBlock("hm"), TextBlock("")), "EmptyAnswer"),
        ((TextBlock("0"),), "NoToolCalls"),
        ((MediaBlock("image", url="https://example.org/a.png"),), "NoToolCalls"),
        ((RawBlock("vendor", {"type": "image_generation_call"}),), "NoToolCalls"),
    ],
)
async def test_an_answer_is_empty_when_there_is_nothing_in_it_for_the_caller(
    content: tuple[Block, ...], fault: str
) -> None:
    assert (await Agent(ScriptedModel(answer(content))).run("x")).stop_reason == fault


# -- where it is recorded ------------------------------------------------------------------------------


@faults
async def test_the_journal_and_a_later_reader_say_the_same(fault: str) -> None:
    said, options = FAULTY[fault]
    store = MemoryStore()
    agent = Agent(ScriptedModel(said), checkpointer=store, **options)
    first = await agent.run("x", thread_id="t", request_id="r")
    again = await agent.run("x", thread_id="t", request_id="r")  # the journal alone answers
    assert (again.stop_reason, again.satisfied, again.detail) == (fault, (fault,), first.detail)
    assert again.failed
    (listed,) = await agent.threads.list()
    assert listed.status == "failed"
    page = await store.read("t")
    last = [entry.body for entry in page if isinstance(entry.body, Transition)][-1]
    assert (last.next_node, last.why) == (END, fault)


@faults
async def test_the_reason_is_a_function_of_the_state(fault: str) -> None:
    said, options = FAULTY[fault]
    agent = Agent(ScriptedModel(said), **options)
    result = await agent.run("x")
    state = AgentState.from_checkpoint(result.state.to_checkpoint())
    assert state.answer_fault == fault
    route = Router(agent.condition)(Node.THINK, state)
    assert (route.next, route.satisfied) == (Node.TERMINATE, agent.condition.evaluate(state))
    assert route.satisfied is not None
    assert route.satisfied.reason == fault
    (leaf,) = [leaf for leaf in agent.condition.explain(state).children if leaf.name == "NoToolCalls"]
    assert (leaf.satisfied, leaf.text) == (True, ANSWER_FAULTS[fault])


def test_a_checkpoint_from_before_there_were_faults_is_read() -> None:
    form = AgentState().to_checkpoint()
    del form["answer_fault"]
    assert AgentState.from_checkpoint(form).answer_fault == ""


async def test_the_next_turn_and_the_next_answer_are_judged_by_themselves() -> None:
    model = ScriptedModel(answer("half", "length"), call("add", a=1), "whole", answer("ha", "length"))
    agent = Agent(model, tools=[add], checkpointer=MemoryStore())
    reasons = [(await agent.run("x", thread_id="t")).stop_reason for _ in range(3)]
    assert reasons == ["Truncated", "NoToolCalls", "Truncated"]


# -- beside other conditions ---------------------------------------------------------------------------


async def test_a_condition_of_the_user_comes_first_as_always() -> None:
    condition = TextMention("done") | MaxIterations(5)
    result = await Agent(ScriptedModel(answer("done, so", "length")), termination=condition).run("x")
    assert (result.stop_reason, result.failed) == ("TextMention", False)


async def test_a_conjunction_names_the_fault_in_place_of_the_condition() -> None:
    model = ScriptedModel(call("add", a=1), answer("half", "length"))
    condition = (NoToolCalls() & ToolCalled("add")) | MaxIterations(5)
    result = await Agent(model, tools=[add], termination=condition, stop_on_text=False).run("x")
    assert (result.stop_reason, result.satisfied) == ("Truncated AND ToolCalled", ("Truncated", "ToolCalled"))
    assert result.failed


async def test_an_agent_that_goes_on_after_answers_goes_on_after_faulty_ones() -> None:
    model = ScriptedModel(answer("half", "length"), "whole")
    result = await Agent(model, stop_on_text=False, max_iterations=2).run("x")
    assert (result.stop_reason, result.text, result.failed) == ("MaxIterations", "whole", False)


async def test_a_limit_on_the_length_that_was_asked_for_is_a_limit_that_cut() -> None:
    model = ScriptedModel(answer("one two", "length"))
    assert (await Agent(model, model_settings=ModelSettings(max_tokens=2)).run("x")).stop_reason == "Truncated"


# -- reviewers -----------------------------------------------------------------------------------------


class Reviewer(Hook):
    """A reviewer that says one thing to each answer."""

    def __init__(self, *verdicts: Accept | Revise | Cancel) -> None:
        self.verdicts = list(verdicts)
        self.seen: list[str] = []

    @hookimpl
    def locus_review_answer(self, answer: Message, state: AgentState, run: RunContext) -> Any:
        self.seen.append(answer.text)
        return self.verdicts.pop(0)


async def test_reviewers_see_a_faulty_answer_and_accepting_it_does_not_mend_it() -> None:
    reviewer = Reviewer(Accept())
    result = await Agent(ScriptedModel(answer("half", "length")), hooks=[reviewer]).run("x")
    assert (reviewer.seen, result.stop_reason) == (["half"], "Truncated")


async def test_a_guard_may_still_cancel_what_does_not_fit_the_schema() -> None:
    reviewer = Reviewer(Cancel("secret"))
    result = await Agent(ScriptedModel("secret"), hooks=[reviewer], output_schema=Flight, max_revisions=0).run("x")
    assert result.stop_reason == "Cancelled: secret"


async def test_a_reviewer_may_send_a_faulty_answer_back() -> None:
    model = ScriptedModel(answer("half", "length"), "whole")
    result = await Agent(model, hooks=[Reviewer(Revise("Shorter."), Accept())]).run("x")
    assert (result.stop_reason, result.text) == ("NoToolCalls", "whole")


# -- another try ---------------------------------------------------------------------------------------


@faults
async def test_a_fault_named_in_retry_on_goes_back_to_the_model_once(fault: str) -> None:
    said, options = FAULTY[fault]
    good = '{"number": "A1"}'
    model = ScriptedModel(said, good)
    result = await Agent(model, retry_on=[fault], **options).run("x")
    assert (result.stop_reason, result.text, len(model.requests)) == ("NoToolCalls", good, 2)
    assert model.requests[1].messages[-1].role is Role.USER
    assert model.requests[1].messages[-1].plugin == "retry_on"

    twice = ScriptedModel(said, after="repeat")
    again = await Agent(twice, retry_on=[fault], **options).run("x")
    assert (again.stop_reason, len(twice.requests)) == (fault, 2)


async def test_each_turn_of_the_user_has_its_own_retry() -> None:
    model = ScriptedModel(answer(""), "one", answer(""), "two")
    agent = Agent(model, retry_on={"EmptyAnswer"}, checkpointer=MemoryStore())
    assert [(await agent.run("x", thread_id="t")).text for _ in range(2)] == ["one", "two"]


async def test_only_the_faults_that_are_named_go_back() -> None:
    model = ScriptedModel(answer("half", "length"))
    result = await Agent(model, retry_on=["EmptyAnswer", "Refused"]).run("x")
    assert (result.stop_reason, len(model.requests)) == ("Truncated", 1)


@pytest.mark.parametrize(
    ("given", "message"), [("Truncated", "collection"), (["Trunkated"], "did you mean 'Truncated'")]
)
def test_a_wrong_retry_on_is_refused_when_the_agent_is_built(given: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Agent(ScriptedModel("x"), retry_on=given)


# -- calls in a faulty answer --------------------------------------------------------------------------


class Ledger:
    """Counts what was paid."""

    def __init__(self) -> None:
        self.paid: list[str] = []

    @tool
    def pay(self, to: str, amount: int = 100) -> str:
        """Pay somebody.

        Args:
            to: whom.
            amount: how much.
        """
        self.paid.append(f"{to} {amount}")
        return "paid"


def results(result: AgentResult[Any]) -> list[str]:
    return [str(r.content) for m in result.state.messages for r in m.tool_results]


async def test_the_call_that_an_answer_was_cut_in_is_not_run() -> None:
    ledger = Ledger()
    cut = answer((TextBlock("I pay."), call("pay", to="ann", amount=1), call("pay", to="bob")), "length")
    model = ScriptedModel(cut, "done")
    result = await Agent(model, tools=[ledger]).run("Pay ann 1 and bob 5.")
    assert ledger.paid == ["ann 1"]
    assert [text.partition(":")[0] for text in results(result)] == ["paid", "Error"]
    assert "cut at the length limit in this call" in results(result)[1]
    assert (result.stop_reason, result.text) == ("NoToolCalls", "done")  # the model has heard of it and went on


async def test_a_call_before_the_text_that_was_cut_is_complete() -> None:
    ledger = Ledger()
    model = ScriptedModel(answer((call("pay", to="ann"), TextBlock("and now")), "length"), "done")
    await Agent(model, tools=[ledger]).run("x")
    assert ledger.paid == ["ann 100"]


@pytest.mark.parametrize(("reason", "fault"), [("filter", "ContentFiltered"), ("refusal", "Refused")])
@pytest.mark.parametrize("stop_on_text", [True, False])
async def test_no_call_of_an_answer_that_was_stopped_for_what_it_says_is_run(
    reason: StopReason, fault: str, *, stop_on_text: bool
) -> None:
    ledger = Ledger()
    model = ScriptedModel(answer((call("pay", to="ann"), call("pay", to="bob")), reason), "done")
    result = await Agent(model, tools=[ledger], stop_on_text=stop_on_text, max_iterations=2).run("x")
    assert ledger.paid == []
    assert len(results(result)) == 2  # each call has its result, so the thread can go on
    assert result.stop_reason == (fault if stop_on_text else "MaxIterations")


async def test_a_cut_call_is_not_run_by_a_resume_either() -> None:
    ledger = Ledger()
    seed = await Agent(ScriptedModel(answer((call("pay", to="ann"),), "length")), max_iterations=1).run("x")
    state = attrs.evolve(seed.state, messages=seed.state.messages[:2])
    assert state.unanswered
    result = await Agent(ScriptedModel("done"), tools=[ledger]).run(state)
    assert (ledger.paid, result.text) == ([], "done")


async def test_a_reason_that_is_a_provider_s_own_word_is_an_error_and_not_an_answer() -> None:
    def cut(_: Any) -> ModelResponse:
        own_word: Any = "max_tokens"
        return answer("The answer is", own_word)

    result = await Agent(ScriptedModel(cut)).run("x")
    assert result.stop_reason == "ModelError"
    assert (
        "stop_reason must be one of cancelled, filter, length, other, refusal, stop, tool_calls, got 'max_tokens'"
        in (str(result.error))
    )
