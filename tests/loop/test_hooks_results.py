"""What is kept of the result of a call, and what of the final state a caller gets as the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio.lowlevel
import pytest
from attrs import evolve, frozen
from tests.loop.hook_kit import WAYS, Crash, failures, wrong
from tests.loop.kit import Recorder, of, results

from locus import Agent, AgentState, Hook, Message, ToolCompleteEvent, ToolContext, tool
from locus.core.errors import HookSpecError
from locus.core.messages import TextBlock, ToolCall
from locus.journal import MemoryStore
from locus.plugin import RunContext, hookimpl
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio

LONG = "x" * 1_000_000


@tool(max_result_chars=1_000)
async def read() -> str:
    """Return a text that is too long."""
    return LONG


@tool(max_result_chars=1_000)
async def short() -> str:
    """Return a short text."""
    return "short"


class Keep(Hook):
    """Shortens results."""

    name = "keep"

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[int, str, int]] = []

    @hookimpl
    def locus_shorten_result(self, text: str, call: ToolCall, limit: int, run: RunContext) -> str | None:
        self.asked.append((len(text), call.name, limit))
        answer: str | None = self.answers.pop(0)
        return answer


# -- what is kept -----------------------------------------------------------------------------------


async def test_without_a_hook_the_beginning_and_the_end_are_kept() -> None:
    result = await Agent(ScriptedModel(call("read"), "done"), tools=[read]).run("x")
    [text], [done] = results(result), result.state.tool_executions
    assert len(text) == 1_000
    assert "1,000,000 characters in all" in text
    assert done.result == text


async def test_a_hook_is_asked_for_the_whole_text_and_its_answer_is_recorded_and_told() -> None:
    keep, heard = Keep("see /large/1"), Recorder()
    store = MemoryStore()
    agent = Agent(ScriptedModel(call("read"), "done"), tools=[read], hooks=[keep, heard], checkpointer=store)
    result = await agent.run("x", thread_id="t")

    assert keep.asked == [(1_000_000, "read", 1_000)]
    assert results(result) == ["see /large/1"]
    assert result.state.tool_executions[0].result == "see /large/1"
    assert [event.result for event in of(heard.events, ToolCompleteEvent)] == ["see /large/1"]
    assert LONG[:10_000] not in repr(await store.read("t"))


async def test_a_hook_is_asked_for_short_results_too_and_the_first_answer_wins() -> None:
    first, second, third = Keep(None, "a"), Keep("b"), Keep()
    calls = [call("short"), call("read")]
    model = ScriptedModel(calls, "done")
    agent = Agent(model, tools=[short, read], hooks=[first, second, third], max_concurrent_tools=1)
    assert results(await agent.run("x")) == ["b", "a"]
    assert [length for length, *_ in first.asked] == [5, 1_000_000]


async def test_an_answer_that_is_too_long_is_cut_as_well() -> None:
    [text] = results(await Agent(ScriptedModel(call("read"), "done"), tools=[read], hooks=[Keep("y" * 5_000)]).run("x"))
    assert len(text) == 1_000
    assert "5,000 characters in all" in text


async def test_each_text_among_blocks_is_asked_about() -> None:
    @tool(max_result_chars=300)
    async def pages() -> list[Any]:
        """Return blocks."""
        return [TextBlock("a" * 1_000), TextBlock("b" * 400)]

    keep = Keep("A", None)
    result = await Agent(ScriptedModel(call("pages"), "done"), tools=[pages], hooks=[keep]).run("x")
    [message] = [m for m in result.state.messages if m.tool_results]
    content = message.tool_results[0].content
    assert not isinstance(content, str)
    assert [len(b.text) for b in content if isinstance(b, TextBlock)] == [1, 300]
    assert len(str(result.state.tool_executions[0].result)) == 301


async def test_an_async_hook_may_ask_a_model_and_wait() -> None:
    class Sum(Hook):
        @hookimpl
        async def locus_shorten_result(self, text: str, run: RunContext) -> str:
            await anyio.lowlevel.checkpoint()
            return f"{len(text)} characters of {run.run_id}"

    result = await Agent(ScriptedModel(call("read"), "done"), tools=[read], hooks=[Sum()]).run("x")
    assert results(result) == [f"1000000 characters of {result.run_id}"]


class Wraps(Hook):
    """Sees what a call came to, and may change it."""

    def __init__(self, change: Callable[[str], str] = str) -> None:
        self.change = change
        self.seen: list[int] = []

    @hookimpl
    async def locus_wrap_tool_call(self, call_next: Callable[[ToolCall], Awaitable[Any]], call: ToolCall) -> Any:
        outcome = await call_next(call)
        self.seen.append(len(outcome.content))
        return evolve(outcome, content=self.change(outcome.content))


async def test_a_wrapper_sees_the_whole_result_and_the_hook_what_the_wrapper_made_of_it() -> None:
    wraps, keep = Wraps(lambda text: text + "end"), Keep("kept")
    agent = Agent(ScriptedModel(call("read"), "done"), tools=[read], hooks=[wraps, keep])
    assert results(await agent.run("x")) == ["kept"]
    assert (wraps.seen, keep.asked[0][0]) == ([1_000_000], 1_000_003)


async def test_what_a_wrapper_hides_from_the_model_is_not_kept_at_length() -> None:
    agent = Agent(ScriptedModel(call("read"), "done"), tools=[read], hooks=[Wraps(lambda text: "hidden")])
    result = await agent.run("x")
    assert results(result) == ["hidden"]
    assert len(str(result.state.tool_executions[0].result)) == 1_000


async def test_errors_are_not_asked_about() -> None:
    @tool
    async def fail() -> str:
        """Fail."""
        raise ValueError("y" * 10_000)

    keep = Keep()
    result = await Agent(ScriptedModel(call("fail"), "done"), tools=[fail], hooks=[keep]).run("x")
    assert not keep.asked
    assert len(results(result)[0]) < 5_000


@pytest.mark.parametrize("how", WAYS)
async def test_a_hook_that_goes_wrong_is_left_out(how: str) -> None:
    bad = wrong(how, "locus_shorten_result", nonsense=3)
    agent = Agent(ScriptedModel(call("read"), "done"), tools=[read], hooks=[bad, Keep("kept")])
    result = await agent.run("x")
    assert results(result) == ["kept"]
    assert [f.hook for f in failures(result, "bad")] == ["locus_shorten_result"]


async def test_a_guard_that_goes_wrong_ends_the_run_and_nothing_whole_is_kept() -> None:
    class Guard(Hook):
        guard = True
        name = "bad"

        @hookimpl
        def locus_shorten_result(self, text: str) -> str:
            raise RuntimeError

    result = await Agent(ScriptedModel(call("read"), "done"), tools=[read], hooks=[Guard()]).run("x")
    assert result.ending.is_cancelled
    assert len(results(result)[0]) <= 1_000


async def test_a_resume_asks_nobody_again() -> None:
    """Given a turn whose first call is done and whose second one asks a person; then the first is not asked about."""

    @tool
    async def confirm(ctx: ToolContext[Any]) -> str:
        """Ask."""
        return str(ctx.interrupt("ok?"))

    keep = Keep("kept", None)
    model = ScriptedModel([call("read"), call("confirm")], "done")
    agent = Agent(model, tools=[read, confirm], hooks=[keep], checkpointer=MemoryStore())
    waits = await agent.run("x", thread_id="t")
    result = await agent.resume(waits, "yes")
    assert results(result) == ["kept", "yes"]
    assert [name for _, name, _ in keep.asked] == ["read", "confirm"]


# -- what the caller gets ---------------------------------------------------------------------------


@frozen
class Report:
    title: str


@tool
async def submit(title: str) -> str:
    """Hand in."""
    return "accepted"


class Submitted(Hook):
    """The arguments of the last call of submit are the answer."""

    name = "submitted"

    @hookimpl
    def locus_parse_result(self, state: AgentState) -> Report | None:
        done = [each for each in state.tool_executions if each.tool_name == "submit"]
        return Report(done[-1].arguments["title"]) if done else None


async def test_a_plugin_says_what_the_answer_is() -> None:
    result = await Agent(ScriptedModel(call("submit", title="A"), "bye"), tools=[submit], hooks=[Submitted()]).run("x")
    assert (result.parsed, result.message) == (Report("A"), "bye")


async def test_without_an_answer_of_a_plugin_the_text_is_parsed() -> None:
    agent = Agent(ScriptedModel('{"title": "B"}'), hooks=[Submitted()], output_schema=Report)
    assert (await agent.run("x")).parsed == Report("B")


async def test_the_plugins_answer_comes_before_the_text() -> None:
    model = ScriptedModel(call("submit", title="A"), '{"title": "B"}')
    result = await Agent(model, tools=[submit], hooks=[Submitted()], output_schema=Report).run("x")
    assert result.parsed == Report("A")
    assert "output" not in result.reports


async def test_a_resumed_run_and_one_that_had_ended_have_the_same_answer() -> None:
    def die(request: Any) -> str:
        raise Crash

    store = MemoryStore()
    agent = Agent(
        ScriptedModel(call("submit", title="A"), die, "bye"), tools=[submit], hooks=[Submitted()], checkpointer=store
    )
    with pytest.raises(Crash):
        await agent.run("x", thread_id="t", request_id="r")
    assert (await agent.resume("t")).parsed == Report("A")
    assert (await agent.run("x", thread_id="t", request_id="r")).parsed == Report("A")


async def test_a_child_that_is_found_ended_has_the_same_answer() -> None:
    """Given a body that runs a child and is entered again after a question; then the child's answer is the same."""
    child = Agent(ScriptedModel(call("submit", title="A"), "bye"), tools=[submit], hooks=[Submitted()])
    seen: list[Any] = []

    @tool
    async def ask(ctx: ToolContext[Any]) -> str:
        """Run the child."""
        seen.append((await ctx.run_child(child, "y")).parsed)
        return str(ctx.interrupt("ok?"))

    agent = Agent(ScriptedModel(call("ask"), "done"), tools=[ask], checkpointer=MemoryStore())
    await agent.resume(await agent.run("x", thread_id="t"), "yes")
    assert seen == [Report("A"), Report("A")]


async def test_it_is_not_asked_while_a_question_is_open() -> None:
    @tool
    async def confirm(ctx: ToolContext[Any]) -> str:
        """Ask."""
        return str(ctx.interrupt("ok?"))

    class Always(Hook):
        @hookimpl
        def locus_parse_result(self, state: AgentState) -> str:
            return "early"

    agent = Agent(ScriptedModel(call("confirm"), "done"), tools=[confirm], hooks=[Always()])
    waits = await agent.run("x")
    assert waits.parsed is None
    assert (await agent.resume(waits, "yes")).parsed == "early"


async def test_one_that_fails_is_reported_and_the_next_is_asked() -> None:
    class Wrong(Hook):
        name = "bad"

        @hookimpl
        def locus_parse_result(self, state: AgentState) -> None:
            raise ValueError("no")

    model = ScriptedModel(call("submit", title="A"), "bye")
    result = await Agent(model, tools=[submit], hooks=[Wrong(), Submitted()]).run("x")
    assert result.parsed == Report("A")
    assert [f.hook for f in failures(result, "bad")] == ["locus_parse_result"]


def test_it_must_be_sync() -> None:
    class Late(Hook):
        @hookimpl
        async def locus_parse_result(self, state: AgentState) -> Message | None:
            return state.last_assistant

    with pytest.raises(HookSpecError, match="after a run and must be sync"):
        Agent(ScriptedModel("done"), hooks=[Late()])
