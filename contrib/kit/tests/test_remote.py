"""Effects that another process makes happen: a run whose every effect travels as JSON is the same run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from locus import Agent, AgentResult, tool
from locus.core.errors import ContextOverflow, ModelError, OutcomeUnknown
from locus.core.journal import Policy, StepId
from locus.core.messages import Message, Role
from locus.core.termination import TokenLimit
from locus.journal import InProcess
from locus.models import ModelRequest
from locus.plugin import Interrupt, hookimpl
from locus.tools import ToolContext
from locus_kit.remote import RemoteEffect, describe_effect, perform_effect, take_effect
from locus_testkit import ScriptedModel, Turn, call

pytestmark = pytest.mark.anyio


class Far(InProcess):
    """Sends each effect through JSON to another agent of the same name."""

    def __init__(self, other: Callable[[], Agent[Any, Any]], *, is_again: bool = False) -> None:
        super().__init__()
        self.other, self.is_again = other, is_again
        self.sent: list[dict[str, Any]] = []

    async def run(self, step_id: StepId, fn: Callable[[], Awaitable[Any]], policy: Policy, digest: str) -> Any:
        effect = describe_effect(step_id, fn)
        if effect is None:
            return await fn()
        form = json.loads(json.dumps(effect.to_json()))
        self.sent.append(form)
        there = RemoteEffect.from_json(form)
        assert there == effect
        came = await perform_effect(there, self.other().runtime, deps="deps there", is_again=self.is_again)
        return await take_effect(fn, json.loads(json.dumps(came)))


done: Counter[str] = Counter()


@tool(effect="once")
async def pay(total: int, ctx: ToolContext[Any]) -> str:
    """Pay."""
    done["pay"] += 1

    async def label() -> str:
        done["label"] += 1
        return "L1"

    stuck = await ctx.step("label", label)
    name = ctx.interrupt("Who signs?", options=["Ann", "Bob"])
    asked = ModelRequest(messages=(Message(Role.USER, "Is it much?"),))
    answer = await ctx.call_model(asked, purpose="judge")
    return f"paid {total} {stuck} {name} {ctx.idempotency_key[-3:]} {answer.message.text} {len(ctx.state.messages)}"


@tool(effect="pure")
def look(what: str) -> str:
    """Look."""
    done["look"] += 1
    if what == "nothing":
        raise ValueError("nothing is there")
    return f"seen {what}"


@tool(effect="keyed")
async def delegate(ctx: ToolContext[Any]) -> str:
    """Have another agent do it."""
    helper = Agent(ScriptedModel(call("look", what="z"), "Helped."), tools=[look], name="helper")
    result = await ctx.run_child(helper, "Help.")
    return f"{result.text} {result.usage.total_tokens}"


class Shout:
    """Wrappers of both kinds, and a decider that asks."""

    @hookimpl
    async def locus_wrap_tool_call(self, call_next: Any, call: Any, run: Any) -> Any:
        done["wrapped"] += 1
        return await call_next(call)

    @hookimpl
    async def locus_wrap_model_call(self, call_next: Any, request: Any, run: Any) -> Any:
        done["asked"] += 1
        return await call_next(request)

    @hookimpl
    def locus_decide_tool_call(self, call: Any, run: Any) -> Any:
        return Interrupt("May it?") if call.name == "delegate" else None


def _script(request: ModelRequest) -> list[Turn]:
    if request.messages[-1].text == "Is it much?":
        return ["No."]
    turns: list[Turn] = [
        [call("pay", total=3), call("look", what="x"), call("look", what="nothing")],
        [call("delegate"), call("nope")],
        "Done.",
    ]
    return turns


def _agent(**options: Any) -> Agent[Any, Any]:
    model = ScriptedModel(script=_script, ids="per_turn")
    return Agent(model, tools=[pay, look, delegate], hooks=[Shout()], name="shop", **options)


async def _work(agent: Agent[Any, Any]) -> AgentResult[Any]:
    done.clear()
    result = await agent.run("Sell.", deps="deps here")
    answers = iter(["Bob", "allow"])
    while result.interrupts:
        result = await agent.resume(result, next(answers))
    return result


def _ending(result: AgentResult[Any]) -> Any:
    state = result.state
    calls = [(e.tool_name, e.result, e.error, e.label) for e in state.tool_executions]
    return result.stop_reason, result.text, state.messages, calls, result.usage, state.iteration, state.label


@pytest.mark.parametrize(
    "options", [{}, {"termination": TokenLimit(10_000), "max_iterations": 20}], ids=["plain", "limited"]
)
async def test_a_run_whose_effects_happen_elsewhere_is_the_same_run(options: dict[str, Any]) -> None:
    expected = _ending(await _work(_agent(**options)))
    assert expected[1] == "Done."
    assert "paid 3 L1 Bob 0/0 No. 2" in str(expected[3])
    assert "nothing is there" in str(expected[3])
    counted = dict(done)
    effects = Far(lambda: _agent(**options))
    assert _ending(await _work(_agent(effects=effects, **options))) == expected
    assert dict(done) == counted, "and nothing happened more often"
    assert counted["label"] == 1
    assert {form["tool"] for form in effects.sent} == {"", "pay", "look", "delegate"}


async def test_what_failed_elsewhere_fails_here() -> None:
    for raised, text in (
        (ModelError("busy", retryable=True), "busy"),
        (ContextOverflow("too long"), "too long"),
        (ValueError("odd"), "failed: ValueError: odd"),
    ):

        def other(raised: Exception = raised) -> Agent[Any, Any]:
            return Agent(ScriptedModel(raised), name="shop")

        result = await Agent(ScriptedModel(), name="shop", effects=Far(other)).run("Go.")
        assert result.stop_reason == "ModelError"
        assert text in str(result.error)
        wanted = ModelError if isinstance(raised, ValueError) else type(raised)
        assert type(result.error) is wanted
        if isinstance(raised, ModelError):
            assert isinstance(result.error, ModelError)
            assert result.error.retryable is raised.retryable


async def test_a_body_that_may_have_begun_begins_neither_steps_nor_children_again() -> None:
    done.clear()
    effects = Far(_agent, is_again=True)
    result = await _agent(effects=effects).run("Sell.")
    assert done["pay"] == 1, "its body is entered: whether it may be is for the engine to know"
    assert done["label"] == 0
    (lost,) = [e for e in result.state.tool_executions if e.tool_name == "pay"]
    assert lost.outcome_unknown
    result = await _agent(effects=effects).resume(result, "allow")
    (lost,) = [e for e in result.state.tool_executions if e.tool_name == "delegate"]
    assert lost.outcome_unknown


async def test_a_child_that_asks_cannot_be_kept_and_says_so() -> None:
    @tool(effect="once")
    async def ask(ctx: ToolContext[Any]) -> str:
        """Ask."""
        return str(ctx.interrupt("Really?"))

    @tool(effect="once")
    async def delegate(ctx: ToolContext[Any]) -> str:
        """Have another agent do it."""
        return str(await ctx.run_child(Agent(ScriptedModel(call("ask"), "Yes."), tools=[ask]), "Help."))

    def agent(**options: Any) -> Agent[Any, Any]:
        turns: list[Turn] = [call("delegate"), "Done."]
        return Agent(ScriptedModel(script=lambda _: turns), tools=[delegate], name="shop", **options)

    result = await agent(effects=Far(agent)).run("Go.")
    assert "nothing keeps it until there is an answer" in str(result.state.tool_executions[0].error)


async def test_a_step_that_is_a_closure_has_no_description() -> None:
    async def here() -> str:
        return "here"

    assert describe_effect(StepId(0, "step", name="x"), here) is None
    with pytest.raises(TypeError, match="is not an effect that describe_effect can describe"):
        await take_effect(here, {})


async def test_an_agent_without_the_tool_says_so() -> None:
    def other() -> Agent[Any, Any]:
        return Agent(ScriptedModel(script=_script), name="shop")

    result = await _agent(effects=Far(other)).run("Sell.")
    failures = getattr(result.error, "exceptions", (result.error,))
    assert any("the agent of this process cannot make the call of step 0/execute/0" in str(e) for e in failures)


def test_unknown_outcomes_name_their_step() -> None:
    assert OutcomeUnknown("0/execute/0").step_id == "0/execute/0"
