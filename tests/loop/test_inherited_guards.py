"""The guards of a run hold in its children: for their tools, their texts and what is recorded of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from attrs import evolve
from tests.loop.kit import Recorder, bodies, of, results

from locus import Agent, Hook, Interrupt, Option, Reject, Revise, ToolContext, ToolStartEvent, tool
from locus.core.messages import Message, ToolCall
from locus.journal import MemoryStore
from locus.models import ModelRequest
from locus.plugin import RunContext, hookimpl
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _count_anew() -> None:
    bodies.clear()


@tool
async def pay(usd: float) -> str:
    """Pay."""
    bodies["pay"] += 1
    return f"paid {usd:g}"


class Limit(Hook):
    """Refuses large payments."""

    guard = True
    name = "limit"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def on_tool_call(self, call: ToolCall, run: RunContext) -> Reject | None:
        self.asked.append(call.name)
        return Reject("too much") if call.arguments.get("usd", 0) > 500 else None


class Observer(Limit):
    """Hears of calls, and is not a guard."""

    guard = False

    def on_tool_call(self, call: ToolCall, run: RunContext) -> None:
        """Decides nothing: a decider would hold in children."""

    def on_tool_start(self, event: ToolStartEvent) -> None:
        self.asked.append(event.tool_name)


class Decider(Limit):
    """Decides about calls, and is not a guard."""

    guard = False


def delegate(child: Agent[Any, Any], *without: str) -> Any:
    @tool
    async def ask(prompt: str, ctx: ToolContext[Any]) -> str:
        """Ask another agent."""
        result = await ctx.run_child(child, prompt, without_guards=without)
        return f"{result.stop_reason}: {result.text}: {results(result)}"

    return ask


def payer(*hooks: Any, **options: Any) -> Agent[Any, str]:
    return Agent[Any, str](ScriptedModel(call("pay", usd=1000), "tried"), tools=[pay], hooks=hooks, **options)


def boss(child: Agent[Any, Any], *hooks: Any, without: tuple[str, ...] = (), **options: Any) -> Agent[Any, str]:
    model = ScriptedModel(call("ask", prompt="pay"), "done")
    return Agent[Any, str](model, tools=[delegate(child, *without)], hooks=hooks, **options)


async def test_a_decider_that_guards_a_run_decides_about_the_calls_of_its_children() -> None:
    limit = Limit()
    result = await boss(payer(), limit).run("x")
    assert bodies["pay"] == 0
    assert results(result) == ["NoToolCalls: tried: ['Error: Rejected: too much']"]
    assert limit.asked == ["ask", "pay"]


class WithSession(Limit):
    """Decides with what its session holds open for the run, and brings a tool."""

    def __init__(self) -> None:
        super().__init__()
        self.open: dict[str, str] = {}

    @hookimpl
    @asynccontextmanager
    async def locus_run_session(self, run: RunContext) -> AsyncIterator[list[Any]]:
        @tool
        async def look_up(word: str) -> str:
            """Look a word up."""
            return word

        self.open[run.run_id] = "open"
        yield [look_up]
        del self.open[run.run_id]

    def on_tool_call(self, call: ToolCall, run: RunContext) -> Reject | None:
        assert self.open[run.run_id] == "open"
        return super().on_tool_call(call, run)


async def test_a_guard_has_its_session_in_the_children_too_where_it_brings_no_tools() -> None:
    limit, model = WithSession(), ScriptedModel(call("pay", usd=100), call("look_up", word="x"), "tried")
    child = Agent[Any, str](model, tools=[pay])
    result = await boss(child, limit).run("x")
    [told] = results(result)
    assert told.startswith("NoToolCalls: tried: ['paid 100', \"Error: UnknownTool")
    assert (limit.asked, limit.open) == (["ask", "pay"], {})


async def test_a_guard_that_both_have_opens_one_session_a_run() -> None:
    limit = WithSession()
    child = Agent[Any, str](ScriptedModel(call("look_up", word="x"), "done"), hooks=[limit])
    result = await boss(child, limit).run("x")
    assert results(result) == ["NoToolCalls: done: ['x']"]


async def test_a_hook_that_is_not_a_guard_concerns_its_own_run_only() -> None:
    hook = Observer()
    await boss(payer(), hook).run("x")
    assert (bodies["pay"], hook.asked) == (1, ["ask"])


async def test_a_decider_holds_in_children_even_where_it_is_not_a_guard() -> None:
    decider = Decider()
    await boss(payer(), decider).run("x")
    assert (bodies["pay"], decider.asked) == (0, ["ask", "pay"])


async def test_a_child_may_do_without_a_guard_by_name() -> None:
    limit = Limit()
    result = await boss(payer(), limit, without=("limit",)).run("x")
    assert (bodies["pay"], limit.asked) == (1, ["ask"])
    assert results(result) == ["NoToolCalls: tried: ['paid 1000']"]


async def test_a_name_that_no_guard_has_leaves_the_others_where_they_are() -> None:
    await boss(payer(), Limit(), without=("limits", "")).run("x")
    assert bodies["pay"] == 0


@pytest.mark.parametrize(("without", "paid"), [((), 0), (("limit",), 1)])
async def test_a_guard_holds_in_the_children_of_children(without: tuple[str, ...], paid: int) -> None:
    await boss(boss(payer()), Limit(), without=without).run("x")
    assert bodies["pay"] == paid


async def test_a_guard_of_the_child_holds_as_well_and_one_that_both_have_is_asked_once() -> None:
    class Second(Limit):
        name = "second"

    shared, own = Limit(), Second()
    await boss(payer(shared, own), shared).run("x")
    assert (shared.asked, own.asked) == (["ask", "pay"], ["pay"])


async def test_the_texts_of_a_child_pass_the_guards_of_its_parent_before_they_are_recorded() -> None:
    class Redacts(Hook):
        guard = True
        buffers = True

        @hookimpl
        def locus_filter_input(self, prompt: Message) -> str:
            return prompt.text.replace("secret", "[cut]")

        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> Any:
            response = await call_next(request)
            if response.tool_calls:
                return response
            return evolve(response, message=evolve(response.message, content=response.message.text.upper()))

        @hookimpl
        async def locus_wrap_tool_call(self, call_next: Any, call: ToolCall) -> Any:
            outcome = await call_next(call)
            return evolve(outcome, content="[result]", execution=evolve(outcome.execution, result="[result]"))

    store = MemoryStore()
    child = Agent(ScriptedModel(call("pay", usd=1), "a secret answer"), tools=[pay], checkpointer=store)
    model = ScriptedModel(call("ask", prompt="a secret prompt"), "done")
    await Agent(model, tools=[delegate(child)], hooks=[Redacts()], checkpointer=store).run("x", thread_id="t")
    [thread] = [info.thread_id for info in await child.threads.list() if info.thread_id != "t"]
    found = await store.peek(thread)
    assert found is not None
    recorded = str(found.entries)
    assert "a [cut] prompt" in recorded
    assert "A SECRET ANSWER" in recorded
    assert "[result]" in recorded
    assert "paid" not in recorded
    assert "secret" not in recorded


async def test_a_guard_reviews_the_answers_of_children_and_its_failure_ends_them() -> None:
    class Reviews(Hook):
        guard = True
        name = "reviewer"

        @hookimpl
        def locus_review_answer(self, answer: Message) -> Revise | None:
            if answer.text == "broken":
                raise ValueError("no")
            return Revise("better, please") if answer.text == "bad" else None

    child = Agent(ScriptedModel("bad", "good"))
    assert results(await boss(child, Reviews()).run("x")) == ["NoToolCalls: good: []"]
    broken = Agent(ScriptedModel("broken"))
    assert results(await boss(broken, Reviews()).run("x")) == ["Cancelled: guard reviewer failed: broken: []"]


async def test_a_guard_that_observes_can_refuse_a_call_of_a_child() -> None:
    class Starts(Hook):
        guard = True

        def on_tool_start(self, event: ToolStartEvent) -> Reject | None:
            return Reject("not now") if event.tool_name == "pay" else None

    result = await boss(payer(), Starts()).run("x")
    assert bodies["pay"] == 0
    assert results(result) == ["NoToolCalls: tried: ['Error: Rejected: not now']"]


async def test_a_question_of_an_inherited_guard_surfaces_in_the_parent_and_is_answered_there() -> None:
    class Asks(Hook):
        guard = True

        def on_tool_call(self, call: ToolCall) -> Interrupt | None:
            return Interrupt("Pay?", (Option("run", allow=True), Option("skip"))) if call.name == "pay" else None

    agent = boss(payer(), Asks(), checkpointer=MemoryStore())
    asked = await agent.run("x", thread_id="t")
    assert [q.question for q in asked.interrupts] == ["Pay?"]
    assert bodies["pay"] == 0
    assert results(await agent.resume("t", "run")) == ["NoToolCalls: tried: ['paid 1000']"]
    assert bodies["pay"] == 1


async def test_a_guard_wraps_the_nodes_of_a_child_and_is_in_its_report() -> None:
    class Wraps(Hook):
        guard = True
        name = "wraps"

        @hookimpl
        async def locus_wrap_node(self, call_next: Any, node: str, state: Any, run: RunContext) -> Any:
            seen.append((run.thread_id, node))
            return await call_next(state)

    seen: list[tuple[str, str]] = []
    reports: list[Any] = []

    @tool
    async def ask(ctx: ToolContext[Any]) -> str:
        """Ask another agent."""
        result = await ctx.run_child(Agent(ScriptedModel("hi")), "x")
        reports.append(result.reports["plugins"])
        return str(result.text)

    await Agent(ScriptedModel(call("ask"), "done"), tools=[ask], hooks=[Wraps()]).run("x", thread_id="t")
    assert [node for thread, node in seen if thread != "t"] == ["think", "terminate"]
    assert "wraps" in str(reports[0])


async def test_without_guards_above_a_child_runs_on_what_its_agent_was_built_with() -> None:
    child, recorder = payer(), Recorder()
    assert child.runtime.with_guards_of(Agent(ScriptedModel("x"), hooks=[recorder]).runtime, ()) is child.runtime
    assert of(recorder.events, ToolStartEvent) == []


async def test_the_answer_to_an_earlier_question_of_a_child_is_not_taken_for_that_to_a_later_one() -> None:
    ran: list[str] = []

    @tool
    async def send(to: str) -> str:
        """Send a mail."""
        ran.append(to)
        return "sent"

    class Asks(Hook):
        guard = True

        def on_tool_call(self, asked: ToolCall) -> Interrupt | None:
            return Interrupt(f"To {asked.arguments['to']}?") if asked.name == "send" else None

    child = Agent(ScriptedModel(call("send", to="ann"), call("send", to="eve"), "sent"), tools=[send])

    @tool
    async def delegate(ctx: ToolContext[None]) -> str:
        """Let a child send."""
        return str((await ctx.run_child(child, "send")).text)

    agent = Agent(ScriptedModel(call("delegate"), "done"), tools=[delegate], hooks=[Asks()])
    first = await agent.run("x")
    assert [q.question for q in first.interrupts] == ["To ann?"]
    second = await agent.resume(first, "allow")
    assert [q.question for q in second.interrupts] == ["To eve?"]
    result = await agent.resume(second, "refuse")
    assert result.stop_reason == "NoToolCalls"
    assert ran == ["ann"]
