"""What a run leaves behind: the answer, typed where a schema says so, the reason, the state, what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import attrs
import pytest
from tests.loop.kit import Recorder, add, confirm, of

from locus import (
    Agent,
    AgentResult,
    ConfigError,
    Hook,
    Message,
    ModelSettings,
    Revise,
    Role,
    TerminateEvent,
    Usage,
)
from locus.core.errors import RunFailed
from locus.core.messages import plugin_message
from locus.core.state import AgentState
from locus.models.protocol import Price
from locus.plugin import RunContext, hookimpl
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


@attrs.frozen
class Flight:
    number: str
    seats: int = 1


@dataclass
class Hotel:
    name: str


class Car(TypedDict):
    doors: int


# -- the answer ----------------------------------------------------------------------------------------


async def test_a_result_tells_everything_about_its_run() -> None:
    model = ScriptedModel(call("add", a=1), "two", price=Price(prompt=100_000, completion=200_000))
    result = await Agent(model, tools=[add], name="adder").run("1 + 1?", thread_id="t", metadata={"who": "ann"})

    assert (result.message, result.text) == ("two", "two")
    assert (result.stop_reason, result.satisfied) == ("NoToolCalls", ("NoToolCalls",))
    assert result.detail
    assert (result.run_id, result.thread_id) == (result.state.run_id, "t")
    assert result.parsed is None
    assert (result.usage.prompt_tokens, result.usage.completion_tokens, result.usage.total_tokens) == (20, 10, 30)
    assert result.cost == pytest.approx(4.0)
    assert result.interrupts == ()
    assert (result.failed, result.error) == (False, None)
    assert result.raise_for_failure() is result
    assert result.state.metadata == {"who": "ann"}
    assert result.state.agent_id == "adder"


async def test_what_a_model_without_a_price_costs_is_not_known() -> None:
    result = await Agent(ScriptedModel("hi")).run("x")
    assert result.cost is None


async def test_dollars_that_the_provider_counts_itself_go_first() -> None:
    model = ScriptedModel("hi", price=Price(prompt=1e6, completion=1e6), usage=Usage(prompt_tokens=1, cost=0.25))
    assert (await Agent(model).run("x")).cost == 0.25


async def test_cached_tokens_are_counted_and_cheaper() -> None:
    usage = Usage(prompt_tokens=100, cached_tokens=90, completion_tokens=0)
    model = ScriptedModel("hi", usage=usage, price=Price(prompt=1e6, completion=0, cached=1e5))
    result = await Agent(model).run("x")
    assert result.usage.cached_tokens == 90
    assert result.cost == pytest.approx(10 + 9)


async def test_a_run_that_was_stopped_keeps_what_it_had() -> None:
    turn: list[Any] = ["let me add", call("add", a=1)]
    result = await Agent(ScriptedModel(turn, after="repeat"), tools=[add], max_iterations=2).run("x")
    assert result.stop_reason == "MaxIterations"
    assert not result.failed
    assert len(result.state.tool_executions) == 2
    assert result.raise_for_failure() is result


@pytest.mark.parametrize(
    ("agent", "reason"),
    [
        (lambda: Agent(ScriptedModel(RuntimeError("down"))), "ModelError"),
        (lambda: Agent(ScriptedModel("hi"), hooks=[_BrokenThink()]), "NodeError"),
    ],
    ids=["model", "node"],
)
async def test_failures_can_be_raised_by_those_who_like_exceptions(agent: Any, reason: str) -> None:
    result = await agent().run("x")
    assert result.failed
    with pytest.raises(RunFailed, match=reason) as raised:
        result.raise_for_failure()
    assert raised.value.__cause__ is result.error


class _BrokenThink(Hook):
    @hookimpl
    async def locus_think(self, state: AgentState, run: RunContext) -> AgentState:
        raise LookupError("no such thought")


async def test_a_waiting_run_has_questions_and_no_answer() -> None:
    result = await Agent(ScriptedModel(["asking", call("confirm", what="pay")]), tools=[confirm]).run("x")
    assert (result.message, result.parsed) == ("", None)
    assert [q.question for q in result.interrupts] == ["Shall I pay?"]


async def test_the_state_is_what_the_model_said_and_the_tools_did() -> None:
    result = await Agent(ScriptedModel(call("add", a=1), "two"), tools=[add], system_prompt="Add.").run("1 + 1?")
    assert [(m.role, m.text) for m in result.state.messages] == [
        (Role.SYSTEM, "Add."),
        (Role.USER, "1 + 1?"),
        (Role.ASSISTANT, ""),
        (Role.TOOL, ""),
        (Role.ASSISTANT, "two"),
    ]
    assert [(s.iteration, s.thought, s.actions) for s in result.state.reasoning_steps] == [
        (0, "", ("add",)),
        (1, "two", ()),
    ]
    [execution] = result.state.tool_executions
    assert (execution.tool_name, execution.arguments, execution.iteration) == ("add", {"a": 1, "b": 1}, 0)
    assert execution.duration_ms >= 0
    assert result.state.updated_at >= result.state.started_at


# -- schemas ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "answer", "wanted"),
    [
        (Flight, '{"number": "AA-181", "seats": 2}', Flight("AA-181", 2)),
        (Flight, 'Sure:\n```json\n{"number": "AA-181"}\n```', Flight("AA-181", 1)),
        (Hotel, '{"name": "Ritz"}', Hotel("Ritz")),
        (Car, '{"doors": 4}', {"doors": 4}),
        (list[Flight], '[{"number": "A"}, {"number": "B"}]', [Flight("A"), Flight("B")]),
        ({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}, '{"n": 3}', {"n": 3}),
    ],
    ids=["attrs", "fenced", "dataclass", "typeddict", "list", "json-schema"],
)
async def test_an_answer_is_given_as_the_type_that_was_asked_for(schema: Any, answer: str, wanted: Any) -> None:
    model = ScriptedModel(answer)
    result: AgentResult[Any] = await Agent[Any, Any](model, output_schema=schema).run("x")
    assert result.parsed == wanted
    assert result.message == answer
    assert model.requests[0].output is not None


async def test_an_answer_that_does_not_fit_goes_back_and_is_repaired() -> None:
    model = ScriptedModel('{"number": 181, "seats": "many"}', '{"number": "AA-181", "seats": 2}')
    result = await Agent(model, output_schema=Flight).run("x")
    assert result.parsed == Flight("AA-181", 2)
    feedback = model.requests[1].messages[-1]
    assert feedback.role is Role.USER
    assert "$.seats" in feedback.text
    assert result.state.revisions == 1


async def test_repair_is_bounded_and_the_last_answer_is_reported() -> None:
    model = ScriptedModel("no json", after="repeat")
    result = await Agent(model, output_schema=Flight, max_revisions=2).run("x")
    assert len(model.requests) == 3
    assert (result.stop_reason, result.parsed, result.message) == ("OutputInvalid", None, "no json")
    assert "2 revisions" in result.reports["review"]
    assert "output" in result.reports


async def test_a_run_can_ask_for_a_type_of_its_own() -> None:
    agent = Agent(ScriptedModel('{"number": "A"}', '{"name": "Ritz"}', "plain"), output_schema=Flight)
    assert (await agent.run("x")).parsed == Flight("A")
    assert (await agent.run("x", output_schema=Hotel)).parsed == Hotel("Ritz")
    with pytest.raises(ConfigError, match="output_schema"):
        agent.run("x", output_schema=3)  # type: ignore[call-overload]


async def test_a_reviewer_can_send_an_answer_back() -> None:
    class Polite(Hook):
        @hookimpl
        async def locus_review_answer(self, answer: Message, state: AgentState, run: RunContext) -> Revise | None:
            return None if "please" in answer.text else Revise("Say please.")

    recorder = Recorder()
    model = ScriptedModel("give me", "please give me")
    result = await Agent(model, hooks=[Polite(), recorder]).run("x")
    assert result.message == "please give me"
    assert model.requests[1].messages[-1] == plugin_message("review", "Say please.")
    assert [m.text for m in result.state.messages if m.role is Role.USER and m.plugin is None] == ["x"]
    assert of(recorder.events, TerminateEvent)[0].reason == "NoToolCalls"


async def test_without_revisions_an_answer_is_kept_as_it_is() -> None:
    class Never(Hook):
        @hookimpl
        async def locus_review_answer(self, answer: Message, state: AgentState, run: RunContext) -> Revise:
            return Revise("never good enough")

    model = ScriptedModel("mine")
    result = await Agent(model, hooks=[Never()], max_revisions=0).run("x")
    assert (len(model.requests), result.message) == (1, "mine")
    assert "never good enough" in result.reports["review"]


# -- settings ------------------------------------------------------------------------------------------------


async def test_settings_of_a_run_go_over_those_of_the_agent() -> None:
    model = ScriptedModel("a", "b")
    agent = Agent(model, model_settings=ModelSettings(temperature=0.0, max_tokens=100, extras={"x": 1, "y": 1}))
    await agent.run("x", model_settings=ModelSettings(temperature=1.0, extras={"y": 2}))
    await agent.run("x")
    first, second = (r.settings for r in model.requests)
    assert (first.temperature, first.max_tokens, first.extras) == (1.0, 100, {"x": 1, "y": 2})
    assert (second.temperature, second.max_tokens, second.extras) == (0.0, 100, {"x": 1, "y": 1})


async def test_reports_of_plugins_are_in_the_result() -> None:
    class Reporter(Hook):
        name = "reporter"

        def on_terminate(self, event: TerminateEvent, run: RunContext) -> None:
            run.report("reporter", {"seen": event.total_tool_calls})

    result = await Agent(ScriptedModel(call("add", a=1), "two"), tools=[add], hooks=[Reporter()]).run("x")
    assert result.reports["reporter"] == {"seen": 1}
    assert result.reports["plugins"].of("reporter").status == "active"
