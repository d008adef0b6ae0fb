"""A thread: one conversation, many runs. What goes on and what starts afresh."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tests.loop.kit import Recorder, add, assert_valid_history, confirm, of, results

from locus import Agent, AgentState, Hook, Message, Role, RunStartEvent, TerminateEvent, ThinkEvent, tool
from locus.core.errors import ConfigError, NothingToResume, NotSerialisable, ThreadBusy
from locus.core.journal import Paused
from locus.core.termination import TimeLimit, TokenLimit, ToolCalled
from locus.journal import MemoryStore
from locus.journal.store import Claim
from locus.plugin import RunContext, hookimpl
from locus_kit.reflect import EveryIterations
from locus_kit.snapshots import SnapshotAdapter
from locus_testkit import ScriptedModel, call
from locus_testkit.clock import FakeClock

pytestmark = pytest.mark.anyio


async def test_threads_are_listed_by_their_last_change_also_while_they_are_held() -> None:
    async def listed() -> list[str]:
        return [info.thread_id for info in await store.threads()]

    store = MemoryStore()
    claims = {name: await store.claim(name, "w") for name in ("a", "b", "c")}
    assert await listed() == ["c", "b", "a"]
    for name in ("a", "b", "a", "a"):
        await store.append(claims[name], [Paused(run_id="r", segment=0, kind="yielded")])
    assert await listed() == ["a", "b", "c"]
    await store.release(claims["c"])
    await store.append(claims["b"], [Paused(run_id="r", segment=0, kind="yielded")])
    assert await listed() == ["b", "c", "a"]
    await store.release(claims["b"])
    await store.delete("b")
    assert await listed() == ["c", "a"]


async def test_a_second_turn_is_a_new_run_on_the_same_conversation() -> None:
    store = MemoryStore()
    model = ScriptedModel(call("add", a=1), "two", "still two")
    agent = Agent(model, tools=[add], system_prompt="You add.", name="adder", checkpointer=store)

    one = await agent.run("1 + 1?", thread_id="t", metadata={"user": "ann"})
    two = await agent.run("and again?", thread_id="t")

    assert two.run_id != one.run_id
    assert two.state.messages[: len(one.state.messages)] == one.state.messages
    assert [m.role for m in two.state.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
    ]
    assert two.state.metadata == {"user": "ann"}
    assert two.state.agent_id == "adder"
    assert two.state.iteration == 0
    assert two.usage.total_tokens == 15
    assert two.state.tool_executions == ()
    assert two.state.tool_history == ()
    assert [s.iteration for s in two.state.reasoning_steps] == [0]
    assert two.state.errors == ()
    assert_valid_history(two.state.messages)
    assert model.requests[-1].messages == two.state.messages[:-1]


async def test_budgets_start_afresh_with_each_turn() -> None:
    model = ScriptedModel(call("add", a=1), "two", after="cycle")  # 30 tokens a turn
    agent = Agent(model, tools=[add], termination=TokenLimit(30), max_iterations=2, checkpointer=MemoryStore())
    for _ in range(3):
        assert (await agent.run("x", thread_id="t")).stop_reason == "NoToolCalls"


async def test_time_starts_afresh_with_each_turn() -> None:
    clock = FakeClock()

    @tool
    async def work() -> str:
        """Take 20 seconds."""
        clock.advance(20)
        return "worked"

    model = ScriptedModel(call("work"), "done", after="cycle")
    agent = Agent(model, tools=[work], termination=TimeLimit(30), clock=clock, checkpointer=MemoryStore())
    for _ in range(2):
        began = clock.now()
        result = await agent.run("x", thread_id="t")
        assert result.stop_reason == "NoToolCalls"
        assert result.state.active_seconds == 20.0
        assert result.state.started_at == began
        clock.advance(1000)


async def test_tool_called_asks_about_this_run_only() -> None:
    model = ScriptedModel(call("add", a=1), "hello", "never")
    agent = Agent(model, tools=[add], termination=ToolCalled("add"), max_iterations=5, checkpointer=MemoryStore())
    first = await agent.run("add", thread_id="t")
    second = await agent.run("hi", thread_id="t")
    assert (first.stop_reason, second.stop_reason) == ("ToolCalled", "NoToolCalls")
    assert second.message == "hello"


async def test_confidence_and_errors_start_afresh() -> None:
    @tool
    async def fail() -> str:
        """Fails."""
        raise ValueError("broken")

    class Sure(Hook):
        @hookimpl
        def locus_register_reflect_policies(self) -> list[EveryIterations]:
            return [EveryIterations(1)]

        @hookimpl
        async def locus_reflect(self, state: AgentState) -> AgentState:
            return state.with_confidence(0.7)

    model = ScriptedModel(call("fail"), "sorry", "hello")
    agent = Agent(model, tools=[fail], hooks=[Sure()], checkpointer=MemoryStore())
    first = await agent.run("x", thread_id="t")
    second = await agent.run("y", thread_id="t")
    assert first.state.errors == ("fail: ValueError: broken",)
    assert second.state.errors == ()
    assert (first.state.confidence, first.state.confidence_history) == (0.7, (0.7,))
    assert (second.state.confidence, second.state.confidence_history) == (0.0, ())


async def test_threads_do_not_hear_of_each_other() -> None:
    model = ScriptedModel("one", "two")
    agent = Agent(model, checkpointer=MemoryStore())
    await agent.run("first", thread_id="a")
    result = await agent.run("second", thread_id="b")
    assert [m.text for m in result.state.messages] == ["second", "two"]


async def test_without_a_thread_id_each_run_has_a_thread_of_its_own() -> None:
    agent = Agent(ScriptedModel("one", "two"), checkpointer=MemoryStore())
    first, second = await agent.run("x"), await agent.run("y")
    assert first.thread_id != second.thread_id
    assert len(second.state.messages) == 2


async def test_without_a_checkpointer_nothing_is_kept_under_a_name() -> None:
    agent = Agent(ScriptedModel("one", "two"))
    await agent.run("x", thread_id="t")
    result = await agent.run("y", thread_id="t")
    assert [m.text for m in result.state.messages] == ["y", "two"]
    with pytest.raises(ConfigError, match="no checkpointer"):
        agent.resume("t")


async def test_two_runs_on_one_thread_are_refused_and_the_first_is_unharmed() -> None:
    inside, go = anyio.Event(), anyio.Event()

    @tool
    async def wait() -> str:
        """Wait until the other was refused."""
        inside.set()
        await go.wait()
        return "waited"

    agent = Agent(ScriptedModel(call("wait"), "done", "next"), tools=[wait], checkpointer=MemoryStore())
    finished: list[str] = []

    async def first() -> None:
        finished.append((await agent.run("x", thread_id="t")).message)

    async with anyio.create_task_group() as group:
        group.start_soon(first)
        await inside.wait()
        with pytest.raises(ThreadBusy, match="'t' is busy") as refused:
            await agent.run("y", thread_id="t")
        assert refused.value.thread_id == "t"
        with pytest.raises(ThreadBusy):
            async for _ in agent.run("y", thread_id="t"):
                pass
        go.set()
    assert finished == ["done"]
    assert (await agent.run("y", thread_id="t")).message == "next"


async def test_a_run_that_failed_leaves_its_thread_free() -> None:
    agent = Agent(ScriptedModel("one"), checkpointer=MemoryStore())
    with pytest.raises(Exception, match="no JSON form"):
        await agent.run("x", thread_id="t", metadata={"bad": object()})
    assert (await agent.run("x", thread_id="t")).message == "one"


async def test_a_model_error_leaves_a_conversation_that_continues() -> None:
    agent = Agent(ScriptedModel(RuntimeError("down"), "back again"), checkpointer=MemoryStore())
    failed = await agent.run("hello?", thread_id="t")
    assert (failed.stop_reason, failed.message) == ("ModelError", "")
    again = await agent.run("hello??", thread_id="t")
    assert again.message == "back again"
    assert [m.text for m in again.state.messages] == ["hello?", "hello??", "back again"]


async def test_an_answer_of_an_earlier_turn_is_not_the_answer_of_this_one() -> None:
    recorder = Recorder()
    agent = Agent(ScriptedModel("old", RuntimeError("down")), checkpointer=MemoryStore(), hooks=[recorder])
    await agent.run("x", thread_id="t")
    failed = await agent.run("y", thread_id="t")
    assert failed.message == ""
    assert of(recorder.events, TerminateEvent)[-1].final_message == ""


async def test_a_changed_system_prompt_takes_the_place_of_the_old_one() -> None:
    store, model = MemoryStore(), ScriptedModel("one", "two", "three")
    await Agent(model, system_prompt="Be brief.", checkpointer=store).run("x", thread_id="t")
    second = await Agent(model, system_prompt="Be kind.", checkpointer=store).run("y", thread_id="t")
    assert [m.text for m in second.state.messages] == ["Be kind.", "x", "one", "y", "two"]
    third = await Agent(model, checkpointer=store).run("z", thread_id="t")
    assert third.state.messages[0].text == "Be kind."


async def test_a_thread_without_an_open_run_has_nothing_to_resume() -> None:
    agent = Agent(ScriptedModel("one"), checkpointer=MemoryStore())
    with pytest.raises(NothingToResume, match="is empty"):
        await agent.resume("nowhere")
    await agent.run("x", thread_id="t")
    with pytest.raises(NothingToResume, match="ended with NoToolCalls"):
        await agent.resume("t")


def snapshots() -> SnapshotAdapter:
    kept: dict[str, Any] = {}
    return SnapshotAdapter(kept.__setitem__, kept.get)


@pytest.mark.parametrize("make", [MemoryStore, snapshots])
async def test_what_writes_nothing_leaves_no_thread_behind(make: Callable[[], Any]) -> None:
    store = make()
    agent = Agent(ScriptedModel("one", "two"), checkpointer=store)
    await agent.run("x", thread_id="t")
    with pytest.raises(NothingToResume, match="is empty"):
        await agent.resume("typo")
    with pytest.raises(NothingToResume, match="is empty"):
        async for _ in agent.resume("typo"):
            pass
    with pytest.raises(NothingToResume):
        await agent.resume("t")
    assert [info.thread_id for info in await store.threads()] == ["t"]
    assert (await agent.run("y", thread_id="typo")).text == "two"


async def test_a_thread_that_another_run_takes_at_that_moment_is_left_to_it() -> None:
    store = MemoryStore()
    agent = Agent(ScriptedModel("one"), checkpointer=store)
    release = store.release

    async def overtaken(claim: Claim, not_before: datetime | None = None) -> None:
        await release(claim, not_before)
        taken.append(await store.claim("typo", "another"))

    taken: list[Claim] = []
    store.release = overtaken  # type: ignore[method-assign]
    with pytest.raises(NothingToResume):
        await agent.resume("typo")
    assert await store.renew(taken[0])


async def test_metadata_that_no_journal_could_keep_is_refused_before_anything_is_written() -> None:
    store = MemoryStore()
    agent = Agent(ScriptedModel("one"), checkpointer=store)
    for value in (math.nan, object()):
        with pytest.raises(NotSerialisable, match="score"):
            await agent.run("x", thread_id="t", metadata={"score": value})
    assert await store.threads() == ()


async def test_nan_that_a_plugin_puts_into_metadata_is_its_error_and_not_in_the_state() -> None:
    class Scores(Hook):
        @hookimpl
        async def locus_reflect(self, state: AgentState, run: RunContext) -> AgentState:
            return state.with_metadata("score", math.nan)

        @hookimpl
        def locus_register_reflect_policies(self) -> list[EveryIterations]:
            return [EveryIterations(1)]

    result = await Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], hooks=[Scores()]).run("x")
    assert (result.stop_reason, result.state.metadata) == ("NodeError", {})
    assert "metadata['score']: NaN is not equal to itself" in result.detail


async def test_many_threads_run_at_the_same_time_on_one_agent() -> None:
    agent = Agent(
        ScriptedModel(script=lambda request: [call("add", a=len(request.messages[0].text)), "done"]),
        tools=[add],
        checkpointer=MemoryStore(),
    )
    got: dict[int, list[str]] = {}

    async def one(n: int) -> None:
        got[n] = results(await agent.run("x" * n, thread_id=f"t{n}"))

    async with anyio.create_task_group() as group:
        for n in range(1, 30):
            group.start_soon(one, n)
    assert got == {n: [str(n + 1)] for n in range(1, 30)}


# -- where a run starts from --------------------------------------------------------------------------------


async def test_a_run_can_start_from_a_state() -> None:
    seed = AgentState(
        messages=(
            Message(Role.USER, "1 + 1?"),
            Message(Role.ASSISTANT, "two"),
            Message(Role.USER, "and one more?"),
        )
    ).with_metadata("from", "transcript")
    model = ScriptedModel("three")
    result = await Agent(model, system_prompt="You add.").run(seed)
    assert [m.text for m in result.state.messages] == ["You add.", "1 + 1?", "two", "and one more?", "three"]
    assert result.run_id == seed.run_id
    assert result.state.metadata == {"from": "transcript"}


async def test_a_state_that_ends_with_open_calls_has_them_run_first() -> None:
    seed = AgentState(
        messages=(Message(Role.USER, "1 + 1?"), Message(Role.ASSISTANT, [call("add", a=1), call("add", a=2)]))
    )
    model = ScriptedModel("two and three")
    result = await Agent(model, tools=[add]).run(seed)
    assert results(result) == ["2", "3"]
    assert len(model.requests) == 1
    assert_valid_history(result.state.messages)


async def test_a_run_can_start_from_messages() -> None:
    result = await Agent(ScriptedModel("three")).run(
        [Message(Role.USER, "1 + 1?"), Message(Role.ASSISTANT, "two"), Message(Role.USER, "one more?")]
    )
    assert [m.text for m in result.state.messages] == ["1 + 1?", "two", "one more?", "three"]


async def test_the_state_of_one_run_can_be_carried_through_json_into_another() -> None:
    first = await Agent(ScriptedModel(call("add", a=1), "two"), tools=[add]).run("1 + 1?")
    again = AgentState.from_checkpoint(first.state.to_checkpoint())
    second = await Agent(ScriptedModel("still two"), tools=[add]).run(again.with_message(Message(Role.USER, "sure?")))
    assert second.message == "still two"
    assert second.state.messages[:4] == first.state.messages


# -- other stores ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_backend_that_only_saves_and_loads_is_enough(kind: str) -> None:
    kept: dict[str, Any] = {}

    async def save(thread_id: str, checkpoint: dict[str, Any]) -> None:
        await anyio.lowlevel.checkpoint()
        kept[thread_id] = checkpoint

    async def load(thread_id: str) -> Any:
        await anyio.lowlevel.checkpoint()
        return kept.get(thread_id)

    def store() -> SnapshotAdapter:
        return SnapshotAdapter(save, load) if kind == "async" else SnapshotAdapter(kept.__setitem__, kept.get)

    model = ScriptedModel([call("add", a=1), call("confirm", what="pay")], "paid", "again")
    await Agent(model, tools=[add, confirm], checkpointer=store()).run("x", thread_id="t")
    # As after a restart: nothing but what was saved.
    result = await Agent(model, tools=[add, confirm], checkpointer=store()).resume("t", "yes")
    assert results(result) == ["2", "pay: yes"]
    next_turn = await Agent(model, tools=[add, confirm], checkpointer=store()).run("y", thread_id="t")
    assert next_turn.message == "again"
    assert AgentState.from_checkpoint(kept["t"]).messages == next_turn.state.messages


async def test_events_say_which_run_and_which_segment_they_belong_to() -> None:
    recorder = Recorder()
    agent = Agent(
        ScriptedModel(call("confirm", what="pay"), "paid", "next"),
        tools=[confirm],
        hooks=[recorder],
        checkpointer=MemoryStore(),
    )
    first = await agent.run("x", thread_id="t")
    await agent.resume("t", "yes")
    third = await agent.run("y", thread_id="t")

    starts = of(recorder.events, RunStartEvent)
    assert [(s.run_id, s.segment, s.resumed, s.prompt) for s in starts] == [
        (first.run_id, 0, False, "x"),
        (first.run_id, 1, True, ""),
        (third.run_id, 0, False, "y"),
    ]
    assert len({e.event_id for e in recorder.events}) == len(recorder.events)
    assert {e.thread_id for e in recorder.events} == {"t"}
    assert [t.text for t in of(recorder.events, ThinkEvent)] == ["", "paid", "next"]
