"""One execution a key: twice in a row, twice in a turn, after a resume, however the arguments are written."""

from __future__ import annotations

import base64
import json
from typing import Any

import anyio
import pytest
from attrs import evolve
from tests.loop.kit import Recorder, add, answers, assert_valid_history, collect, confirm, kinds, of, results

from locus import (
    Agent,
    AgentState,
    Hook,
    Reject,
    RetryableToolError,
    ToolCacheHitEvent,
    ToolCompleteEvent,
    ToolContext,
    ToolStartEvent,
    tool,
)
from locus.core.directives import Allow, Decision
from locus.core.messages import MediaBlock, TextBlock, ToolCall
from locus.core.termination import ToolCalled
from locus.journal import MemoryStore
from locus.plugin import hookimpl
from locus.tools.definition import Tool
from locus_kit.snapshots import SnapshotAdapter
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio

TOOL_EVENTS = (ToolStartEvent, ToolCompleteEvent, ToolCacheHitEvent)
RUN = ["tool_start", "tool_complete"]
HIT = ["tool_cache_hit"]


class Bookings:
    """A body with an effect that must not happen twice."""

    def __init__(self, *failures: BaseException) -> None:
        self.made: list[tuple[Any, ...]] = []
        self.keys: list[str] = []
        self._failures = list(failures)

    def tool(self, **options: Any) -> Tool[..., Any]:
        @tool(name="book", **options)
        async def book(flight: str, seats: int = 1, *, ctx: ToolContext[Any]) -> str:
            """Book a flight."""
            self.made.append((flight, seats))
            self.keys.append(ctx.idempotency_key)
            if self._failures:
                raise self._failures.pop(0)
            return f"BK-{len(self.made)}"

        return book


def events_of(recorder: Recorder) -> list[str]:
    return kinds(recorder.events, *TOOL_EVENTS)


# -- one run ------------------------------------------------------------------------------------------


async def test_a_repeated_call_gets_the_first_result_and_its_own_event() -> None:
    bookings, recorder = Bookings(), Recorder()
    book = call("book", flight="AA-181")
    agent = Agent(ScriptedModel(book, book, book, "done"), tools=[bookings.tool(idempotent=True)], hooks=[recorder])

    result = await agent.run("book it")

    assert bookings.made == [("AA-181", 1)]
    assert results(result) == ["BK-1"] * 3
    assert events_of(recorder) == RUN + HIT + HIT
    hit = of(recorder.events, ToolCacheHitEvent)[0]
    assert (hit.tool_name, hit.call_id, hit.result, hit.error) == ("book", "call_2_1", "BK-1", None)
    assert hit.arguments == {"flight": "AA-181", "seats": 1}
    assert [e.cache_hit for e in result.state.tool_executions] == [False, True, True]
    assert [e.call_id for e in result.state.tool_executions] == ["call_1_1", "call_2_1", "call_3_1"]


@pytest.mark.parametrize("mode", ["concurrent", "sequential"])
async def test_duplicates_in_one_turn_share_one_execution(mode: Any) -> None:
    bookings, recorder = Bookings(), Recorder()
    turn = [call("book", flight="A"), call("book", flight="B"), call("book", flight="A"), call("book", flight="A")]
    agent = Agent(
        ScriptedModel(turn, "done"), tools=[bookings.tool(idempotent=True)], hooks=[recorder], tool_execution=mode
    )

    result = await agent.run("book")

    assert sorted(bookings.made) == [("A", 1), ("B", 1)]
    got = results(result)
    assert got[0] == got[2] == got[3] != got[1]
    assert sorted(events_of(recorder)) == sorted(RUN * 2 + HIT * 2)
    assert_valid_history(result.state.messages)


@pytest.mark.parametrize(
    "again",
    [
        {"seats": 2, "flight": "A"},  # in another order
        {"flight": "A", "seats": 2.0},  # the same number, written otherwise
        {"flight": "A", "seats": "2"},  # what weak models write
    ],
)
async def test_a_call_is_the_same_however_its_arguments_are_written(again: dict[str, Any]) -> None:
    bookings, recorder = Bookings(), Recorder()
    model = ScriptedModel(call("book", flight="A", seats=2), call("book", **again), "done")
    result = await Agent(model, tools=[bookings.tool(idempotent=True)], hooks=[recorder]).run("x")
    assert bookings.made == [("A", 2)], results(result)
    assert events_of(recorder) == RUN + HIT


@pytest.mark.parametrize("first", [{"flight": "A"}, {"flight": "A", "seats": 1}])
async def test_a_default_spelled_out_is_the_same_call(first: dict[str, Any]) -> None:
    bookings, recorder = Bookings(), Recorder()
    turn = [call("book", flight="A", seats=1), call("book", flight="A")]
    model = ScriptedModel(call("book", **first), turn, "done")
    result = await Agent(model, tools=[bookings.tool(idempotent=True)], hooks=[recorder]).run("x")
    assert bookings.made == [("A", 1)]
    assert results(result) == ["BK-1"] * 3
    assert events_of(recorder) == RUN + HIT + HIT


async def test_other_arguments_are_another_call() -> None:
    bookings = Bookings()
    turn = [call("book", flight="A"), call("book", flight="a"), call("book", flight="A", seats=2)]
    await Agent(ScriptedModel(turn, "done"), tools=[bookings.tool(idempotent=True)]).run("x")
    assert len(bookings.made) == 3


async def test_a_tool_that_does_not_say_so_runs_each_time() -> None:
    bookings, recorder = Bookings(), Recorder()
    book = call("book", flight="A")
    await Agent(ScriptedModel([book, book], book, "done"), tools=[bookings.tool()], hooks=[recorder]).run("x")
    assert len(bookings.made) == 3
    assert HIT[0] not in events_of(recorder)


async def test_the_cached_result_counts_as_a_call() -> None:
    bookings = Bookings()
    book = call("book", flight="A")

    def spelled_out(arguments: Any) -> bool:
        return bool(arguments.get("seats") == 1)

    model = ScriptedModel(book, call("book", flight="A", seats=1), "done")
    agent = Agent(
        model,
        tools=[bookings.tool(idempotent=True)],
        termination=ToolCalled("book", spelled_out),
        max_iterations=9,
    )
    result = await agent.run("x")
    assert result.stop_reason == "ToolCalled"
    assert bookings.made == [("A", 1)]


async def test_an_empty_result_and_none_are_remembered_as_they_were() -> None:
    entered: list[str] = []

    @tool(idempotent=True)
    async def quiet() -> str:
        """Says nothing."""
        entered.append("quiet")
        return ""

    @tool(idempotent=True)
    async def nothing() -> None:
        """Returns nothing."""
        entered.append("nothing")

    turn = [call("quiet"), call("nothing")]
    result = await Agent(ScriptedModel(turn, turn, "done"), tools=[quiet, nothing]).run("x")
    assert sorted(entered) == ["nothing", "quiet"]
    assert results(result)[:2] == results(result)[2:]


@tool(idempotent=True)
async def look() -> Any:
    """Take a picture."""
    return MediaBlock("image", "image/png", data=b"png")


async def test_a_picture_is_shared_by_duplicates_in_one_turn() -> None:
    result = await Agent(ScriptedModel([call("look"), call("look")], "done"), tools=[look]).run("x")
    first, second = (a.content for a in answers(result.state))
    assert first == second == (MediaBlock("image", "image/png", data=b"png"),)


PICTURE = (MediaBlock("image", "image/png", data=b"png"),)


@pytest.mark.parametrize("prompt", [None, "Be brief."])
async def test_a_picture_is_given_again_in_every_later_turn(prompt: str | None) -> None:
    turns: list[Any] = [[call("add", a=1), call("look")], call("add", a=1), [call("look"), call("look")], call("look")]
    agent = Agent(ScriptedModel(*turns, "done"), tools=[look, add], system_prompt=prompt)
    result = await agent.run("x")
    pictures = [a.content for a in answers(result.state) if a.name == "look"]
    assert pictures == [PICTURE] * 4
    assert pictures[3] is pictures[0], "it is the one in the conversation and no copy"
    assert [e.cache_hit for e in result.state.tool_executions if e.tool_name == "look"] == [False, True, True, True]


async def test_a_picture_is_given_again_after_a_resume_from_bytes() -> None:
    saved: dict[str, str] = {}

    def agent() -> Agent[Any, Any]:
        def save(thread_id: str, data: Any) -> None:
            saved[thread_id] = json.dumps(data)

        store = SnapshotAdapter(save, lambda thread_id: json.loads(saved.get(thread_id, "null")))
        script: list[Any] = [call("look"), call("confirm", what="go on"), call("look"), "done"]
        return Agent(ScriptedModel(script=lambda request: script), tools=[look, confirm], checkpointer=store)

    await agent().run("x", thread_id="t")
    result = await agent().resume("t", "yes")
    first, _, second = (a.content for a in answers(result.state))
    assert first == second == PICTURE
    # The bytes are saved once a result, and not once more beside it.
    assert saved["t"].count(base64.b64encode(b"png").decode()) == 2


async def test_a_picture_is_given_again_in_later_turns_of_a_thread() -> None:
    @tool(idempotent="thread")
    async def see() -> Any:
        """Take a picture."""
        return ["Here:", MediaBlock("image", "image/png", data=b"png")]

    store = MemoryStore()
    for prompt in (None, "Be brief.", None):
        agent = Agent(ScriptedModel(call("see"), "done"), tools=[see], system_prompt=prompt, checkpointer=store)
        result = await agent.run("x", thread_id="t")
    assert [e.cache_hit for e in result.state.tool_executions] == [True]
    assert {a.content for a in answers(result.state)} == {(TextBlock("Here:"), *PICTURE)}


async def test_a_picture_that_a_wrapper_put_in_place_of_text_is_given_again_and_one_it_took_away_is_not() -> None:
    class Wrap(Hook):
        @hookimpl
        async def locus_wrap_tool_call(self, call_next: Any, call: ToolCall) -> Any:
            outcome = await call_next(call)
            return evolve(outcome, content=PICTURE if call.name == "draw" else "(no pictures, please)")

    @tool(idempotent=True)
    async def draw() -> str:
        """Draws in words."""
        return "a house"

    turn = [call("draw"), call("look")]
    result = await Agent(ScriptedModel(turn, turn, "done"), tools=[draw, look], hooks=[Wrap()]).run("x")
    assert [a.content for a in answers(result.state)] == [PICTURE, "(no pictures, please)"] * 2


async def test_a_picture_that_was_taken_out_of_the_conversation_is_given_again_as_its_text() -> None:
    class Forgetful(Hook):
        @hookimpl
        async def locus_wrap_node(self, call_next: Any, node: str, state: AgentState) -> Any:
            state = await call_next(state)
            if node != "execute" or state.iteration:
                return state
            return evolve(state, messages=state.messages[:1] + state.messages[-2:])

    @tool(idempotent=True)
    async def see() -> Any:
        """Take a picture."""
        return ["Here:", MediaBlock("image", "image/png", data=b"png")]

    model = ScriptedModel([call("see"), call("add", a=1), call("add", a=2)], call("see"), "done")
    result = await Agent(model, tools=[see, add], hooks=[Forgetful()]).run("x")
    assert answers(result.state)[-1].content == "Here:"


# -- failures ---------------------------------------------------------------------------------------------


async def test_a_body_that_failed_is_not_entered_again_for_the_same_call() -> None:
    bookings, recorder = Bookings(ConnectionError("lost")), Recorder()
    book = call("book", flight="A")
    agent = Agent(ScriptedModel(book, book, "done"), tools=[bookings.tool(idempotent=True)], hooks=[recorder])
    result = await agent.run("x")
    assert len(bookings.made) == 1
    assert results(result) == ["Error: ConnectionError: lost"] * 2
    assert events_of(recorder) == RUN + HIT
    assert of(recorder.events, ToolCacheHitEvent)[0].error == "ConnectionError: lost"


@pytest.mark.parametrize("together", [False, True])
async def test_a_body_that_says_that_nothing_happened_may_be_entered_again(together: bool) -> None:
    bookings = Bookings(RetryableToolError("busy"))
    book = call("book", flight="A")
    model = ScriptedModel([book, book], "done") if together else ScriptedModel(book, book, "done")
    result = await Agent(model, tools=[bookings.tool(idempotent=True)]).run("x")
    assert results(result) == ["Error: RetryableToolError: busy", "BK-2"]
    assert len(bookings.made) == 2


async def test_refused_arguments_were_not_an_execution() -> None:
    bookings = Bookings()
    wrong = call("book", flight=None)
    model = ScriptedModel([wrong, wrong], call("book", flight="A"), "done")
    recorder = Recorder()
    result = await Agent(model, tools=[bookings.tool(idempotent=True)], hooks=[recorder]).run("x")
    assert bookings.made == [("A", 1)]
    assert results(result)[2] == "BK-1"
    assert HIT[0] not in events_of(recorder)


async def test_a_rejected_call_was_not_an_execution() -> None:
    class Once(Hook):
        asked = 0

        def on_tool_call(self, call: ToolCall) -> Decision:
            self.asked += 1
            return Reject("not yet") if self.asked == 1 else Allow()

    bookings = Bookings()
    book = call("book", flight="A")
    hook = Once()
    agent = Agent(ScriptedModel(book, book, book, "done"), tools=[bookings.tool(idempotent=True)], hooks=[hook])
    result = await agent.run("x")
    assert results(result) == ["Error: Rejected: not yet", "BK-1", "BK-1"]
    assert len(bookings.made) == 1
    assert hook.asked == 2  # nobody is asked about a call that does not run


async def test_a_leader_that_is_rejected_does_not_answer_for_its_duplicates() -> None:
    class First(Hook):
        asked = 0

        def on_tool_call(self, call: ToolCall) -> Decision:
            self.asked += 1
            return Reject("not this one") if self.asked == 1 else Allow()

    bookings = Bookings()
    book = call("book", flight="A")
    agent = Agent(ScriptedModel([book, book, book], "done"), tools=[bookings.tool(idempotent=True)], hooks=[First()])
    result = await agent.run("x")
    assert results(result) == ["Error: Rejected: not this one", "BK-1", "BK-1"]


# -- runs and threads ---------------------------------------------------------------------------------------


async def test_the_next_turn_of_a_thread_starts_afresh() -> None:
    bookings = Bookings()
    book = call("book", flight="A")
    agent = Agent(
        ScriptedModel(book, "done", book, "done"),
        tools=[bookings.tool(idempotent=True)],
        checkpointer=MemoryStore(),
    )
    await agent.run("book", thread_id="t")
    result = await agent.run("book again", thread_id="t")
    assert len(bookings.made) == 2
    assert results(result) == ["BK-1", "BK-2"]


async def test_idempotent_over_the_thread_covers_later_turns_and_no_other_thread() -> None:
    bookings, recorder = Bookings(), Recorder()
    book = call("book", flight="A")
    agent = Agent(
        ScriptedModel(book, "done", after="cycle"),
        tools=[bookings.tool(idempotent="thread")],
        checkpointer=MemoryStore(),
        hooks=[recorder],
    )
    await agent.run("book", thread_id="t")
    again = await agent.run("book again", thread_id="t")
    assert results(again) == ["BK-1", "BK-1"]
    assert events_of(recorder) == RUN + HIT

    other = await agent.run("book", thread_id="other")
    assert results(other) == ["BK-2"]


async def test_a_failure_counts_for_the_whole_thread_as_well() -> None:
    bookings = Bookings(ConnectionError("lost"))
    book = call("book", flight="A")
    agent = Agent(
        ScriptedModel(book, "done", after="cycle"),
        tools=[bookings.tool(idempotent="thread")],
        checkpointer=MemoryStore(),
    )
    await agent.run("book", thread_id="t")
    again = await agent.run("book again", thread_id="t")
    assert len(bookings.made) == 1
    assert results(again)[-1] == "Error: ConnectionError: lost"


async def test_a_body_that_says_that_nothing_happened_may_be_entered_again_in_a_later_turn() -> None:
    bookings = Bookings(RetryableToolError("busy"))
    book = call("book", flight="A")
    agent = Agent(
        ScriptedModel(book, "done", after="cycle"),
        tools=[bookings.tool(idempotent="thread")],
        checkpointer=MemoryStore(),
    )
    await agent.run("book", thread_id="t")
    again = await agent.run("book again", thread_id="t")
    assert results(again) == ["Error: RetryableToolError: busy", "BK-2"]
    assert bookings.keys[0] == bookings.keys[1]


async def test_the_key_given_to_services_is_that_of_the_thread_where_the_execution_is() -> None:
    bookings = Bookings()
    agent = Agent(
        ScriptedModel(call("book", flight="A"), "done", after="cycle"),
        tools=[bookings.tool(idempotent="thread")],
        checkpointer=MemoryStore(),
    )
    result = await agent.run("book", thread_id="t")
    await agent.run("book", thread_id="u")
    key = result.state.tool_executions[0].key
    assert bookings.keys == [f"t/{key}", f"u/{key}"]


async def test_parallel_runs_do_not_share_executions() -> None:
    bookings = Bookings()
    agent = Agent(
        ScriptedModel(script=lambda request: [call("book", flight="A"), "done"]),
        tools=[bookings.tool(idempotent=True)],
    )
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(lambda: _finish(agent))
    assert len(bookings.made) == 3


async def _finish(agent: Agent[Any, Any]) -> None:
    await agent.run("book")


# -- resumed --------------------------------------------------------------------------------------------------


async def test_a_resumed_run_knows_what_it_did_before() -> None:
    bookings, recorder = Bookings(), Recorder()
    book = call("book", flight="A")
    agent = Agent(
        ScriptedModel([book, call("confirm", what="pay")], book, "done"),
        tools=[bookings.tool(idempotent=True), confirm],
        hooks=[recorder],
    )
    asked = await agent.run("book and pay")
    result = await agent.resume(asked, "yes")
    assert len(bookings.made) == 1
    assert results(result) == ["BK-1", "pay: yes", "BK-1"]
    assert events_of(recorder)[-1:] == HIT


async def test_duplicates_beside_an_open_question_follow_when_it_is_answered() -> None:
    entered: list[str] = []

    @tool(idempotent=True)
    async def pay(amount: int, ctx: ToolContext[Any]) -> str:
        """Pay after asking."""
        entered.append("top")
        said = ctx.interrupt(f"Pay {amount}?")
        entered.append("paid")
        return f"paid: {said}"

    recorder = Recorder()
    agent = Agent(ScriptedModel([call("pay", amount=3), call("pay", amount=3)], "done"), tools=[pay], hooks=[recorder])
    asked = await agent.run("pay")
    assert len(asked.interrupts) == 1  # one execution, so one question
    result = await agent.resume(asked, "yes")
    assert entered == ["top", "top", "paid"]
    assert results(result) == ["paid: yes"] * 2


# -- keys for services ----------------------------------------------------------------------------------------


async def test_the_key_given_to_services_is_stable_for_a_call_and_distinct_between_calls() -> None:
    plain, shared = Bookings(), Bookings()
    turn = [call("book", flight="A"), call("book", flight="A")]
    first = await Agent(ScriptedModel(turn, "done"), tools=[plain.tool()]).run("x")
    assert sorted(plain.keys) == [f"{first.run_id}/0/0", f"{first.run_id}/0/1"]

    second = await Agent(ScriptedModel(turn, "done"), tools=[shared.tool(idempotent=True)]).run("x")
    [key] = shared.keys
    assert key == f"{second.run_id}/{second.state.tool_executions[0].key}"


async def test_a_hit_streams_in_place_of_start_and_complete() -> None:
    bookings = Bookings()
    book = call("book", flight="A")
    agent = Agent(ScriptedModel(book, book, "done"), tools=[bookings.tool(idempotent=True)])
    events = await collect(agent.run("x"))
    assert kinds(events, *TOOL_EVENTS) == RUN + HIT
    assert kinds([e for e in events if e.iteration == 2], *TOOL_EVENTS) == HIT
