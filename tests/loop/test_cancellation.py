"""Three ways to stop a run: a hook, the caller's task, the agent; with their reasons, and nothing left behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
import pytest
from tests.loop.kit import Recorder, add, assert_valid_history, collect, confirm, interrupting, kinds, of, results

from locus import (
    Agent,
    AgentResult,
    Cancel,
    Continue,
    Directive,
    Event,
    Hook,
    IterationEvent,
    ModelCompleteEvent,
    TerminateEvent,
    ThinkEvent,
    ToolCompleteEvent,
    ToolContext,
    ToolStartEvent,
    tool,
)
from locus.core.errors import NothingToResume, ThreadBusy
from locus.core.journal import END, Paused, Transition
from locus.core.messages import ToolCall
from locus.journal import MemoryStore
from locus.plugin import RunContext, hookimpl
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


class On(Hook):
    """Answers events of one kind with a directive."""

    def __init__(self, kind: type[Event], directive: Directive) -> None:
        self.kind, self.directive = kind, directive

    def on_event(self, event: Event) -> Directive | None:
        return self.directive if isinstance(event, self.kind) else None


class CostGuardHook(Hook):
    """As the architecture of the loop shows it."""

    async def on_iteration(self, ev: IterationEvent) -> Directive:
        if ev.token_total > 20:
            return Cancel(reason=f"token budget exhausted at {ev.token_total}")
        return Continue()


# -- from a hook -------------------------------------------------------------------------------------


async def test_a_hook_ends_the_run_with_its_reason() -> None:
    model = ScriptedModel(call("add", a=1), after="repeat")
    result = await Agent(model, tools=[add], hooks=[CostGuardHook()]).run("x")
    assert result.stop_reason == "Cancelled: token budget exhausted at 30"
    assert result.satisfied == ("Cancelled",)
    assert len(model.requests) == 2  # the iteration that the hook heard of did not ask
    assert not result.failed


async def test_a_cancel_without_a_reason_is_just_cancelled() -> None:
    result = await Agent(ScriptedModel("hi"), hooks=[On(ThinkEvent, Cancel())]).run("x")
    assert result.stop_reason == "Cancelled"


async def test_a_cancel_in_think_lets_think_finish_and_starts_no_tool() -> None:
    recorder = Recorder()
    model = ScriptedModel([call("add", a=1), call("add", a=2)])
    result = await Agent(model, tools=[add], hooks=[On(ThinkEvent, Cancel("enough")), recorder]).run("x")
    assert of(recorder.events, ToolStartEvent) == []
    # The node finished: its answer is in the state, and each call got a result that says why it has none.
    assert results(result) == ["Error: not run: Cancelled: enough"] * 2
    assert result.usage.total_tokens == 15
    assert_valid_history(result.state.messages)


async def test_a_cancel_lets_tools_under_way_finish() -> None:
    started = anyio.Event()

    @tool
    async def slow() -> str:
        """Still running when the cancel comes."""
        started.set()
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        return "finished"

    @tool
    async def quick() -> str:
        """Finishes first."""
        await started.wait()
        return "quick"

    hook = On(ToolCompleteEvent, Cancel("seen enough"))
    result = await Agent(ScriptedModel([call("slow"), call("quick")]), tools=[slow, quick], hooks=[hook]).run("x")
    assert results(result) == ["finished", "quick"]
    assert result.stop_reason == "Cancelled: seen enough"


async def test_a_cancel_in_a_sequential_turn_starts_no_further_call() -> None:
    model = ScriptedModel([call("add", a=1), call("add", a=2), call("add", a=3)])
    hook, recorder = On(ToolCompleteEvent, Cancel("one is enough")), Recorder()
    agent = Agent(model, tools=[add], hooks=[hook, recorder], tool_execution="sequential")
    result = await agent.run("x")
    assert results(result) == ["2", *["Error: not run: Cancelled: one is enough"] * 2]
    assert len(of(recorder.events, ToolStartEvent)) == 1
    assert len(result.state.tool_executions) == 1


async def test_a_cancel_at_a_start_event_keeps_that_body_shut() -> None:
    entered: list[str] = []

    @tool
    async def touch() -> str:
        """Logs."""
        entered.append("touch")
        return "touched"

    result = await Agent(ScriptedModel(call("touch")), tools=[touch], hooks=[On(ToolStartEvent, Cancel("no"))]).run("x")
    assert entered == []
    assert results(result) == ["Error: not run: Cancelled: no"]


async def test_a_decider_can_end_the_whole_run() -> None:
    class Steering(Hook):
        def on_tool_call(self, call: ToolCall) -> Cancel | None:
            return Cancel("out of policy") if call.arguments["a"] == 2 else None

    model = ScriptedModel([call("add", a=1), call("add", a=2), call("add", a=3)])
    result = await Agent(model, tools=[add], hooks=[Steering()], tool_execution="sequential").run("x")
    assert result.stop_reason == "Cancelled: out of policy"
    assert results(result) == ["2", *["Error: not run: Cancelled: out of policy"] * 2]


# -- from the caller -------------------------------------------------------------------------------------


class Guarded:
    """A tool that holds something and gives it back when it is cancelled."""

    def __init__(self) -> None:
        self.entered = anyio.Event()
        self.log: list[str] = []

    @tool
    async def hold(self) -> str:
        """Hold for ever."""
        self.log.append("taken")
        self.entered.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            self.log.append("released")
            raise
        return "never"


@pytest.mark.parametrize("how", ["awaited", "iterated", "entered"])
@pytest.mark.parametrize("calls", [1, 2])
async def test_cancelling_the_caller_reaches_the_tools_and_the_hooks(how: str, calls: int) -> None:
    guarded, recorder, store = Guarded(), Recorder(), MemoryStore()
    model = ScriptedModel([call("hold")] * calls)
    agent = Agent(model, tools=[guarded.hold], hooks=[recorder], checkpointer=store)

    async def main() -> None:
        run = agent.run("x", thread_id="t")
        if how == "awaited":
            await run
        elif how == "iterated":
            await collect(run)
        else:
            async with run:
                await collect(run)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(main)
            await guarded.entered.wait()
            await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()

    assert guarded.log == ["taken"] * calls + ["released"] * calls
    [end] = of(recorder.events, TerminateEvent)
    assert (end.reason, end.satisfied) == ("Cancelled", ("Cancelled",))
    last = (await store.read("t"))[-1].body
    assert isinstance(last, Paused)
    assert (last.kind, last.reason) == ("cancelled", "")


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_task_made_of_a_run_can_be_cancelled() -> None:
    guarded, recorder = Guarded(), Recorder()
    agent = Agent(ScriptedModel(call("hold")), tools=[guarded.hold], hooks=[recorder])
    run = asyncio.create_task(agent.run("x"))
    await guarded.entered.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert run.cancelled()
    assert guarded.log == ["taken", "released"]
    assert [e.reason for e in of(recorder.events, TerminateEvent)] == ["Cancelled"]


async def test_the_caller_may_cancel_with_a_timeout_of_its_own() -> None:
    recorder = Recorder()
    with anyio.CancelScope() as scope:
        await Agent(ScriptedModel(interrupting(scope)), hooks=[recorder]).run("x")
    assert scope.cancelled_caught
    assert kinds(recorder.events)[-1] == "terminate"


async def test_a_run_that_its_caller_cancelled_is_open_and_continues_where_it_was() -> None:
    guarded, store = Guarded(), MemoryStore()
    model = ScriptedModel(call("add", a=1), call("hold"), "done")
    agent = Agent(model, tools=[add, guarded.hold], checkpointer=store)
    async with anyio.create_task_group() as group:
        group.start_soon(collect, agent.run("x", thread_id="t"))
        await guarded.entered.wait()
        group.cancel_scope.cancel()

    with anyio.fail_after(5):
        result = await agent.resume("t")

    assert result.stop_reason == "NoToolCalls"
    # It was in the middle of an effect that may happen once only, so it is not entered again.
    assert guarded.log == ["taken", "released"]
    first, second = results(result)
    assert first == "2"
    assert second.startswith("Error: outcome unknown")
    assert len(model.requests) == 3


class Spoiler:
    """Tools that do not let a cancellation pass as they should."""

    def __init__(self) -> None:
        self.entered = anyio.Event()

    async def _hang(self) -> None:
        self.entered.set()
        await anyio.sleep_forever()

    @tool
    async def fails(self) -> str:
        """Fails while it cleans up."""
        try:
            await self._hang()
        finally:
            raise ValueError("cleanup failed")

    @tool
    async def swallows(self) -> str:
        """Catches everything."""
        try:
            await self._hang()
        except BaseException:  # noqa: BLE001  what careless code does
            return "swallowed"
        return "never"

    @tool
    async def fails_in_a_group(self) -> str:
        """Has helpers, one of which fails while it cleans up."""
        async with anyio.create_task_group() as group:
            group.start_soon(self.fails.fn)
            group.start_soon(anyio.sleep_forever)
        return "never"


@pytest.mark.parametrize("how", ["fails", "swallows", "fails_in_a_group"])
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside"])
@pytest.mark.parametrize(
    ("anyio_backend", "by"), [("asyncio", "task"), ("asyncio", "scope"), ("trio", "scope")], ids=str
)
async def test_a_tool_that_spoils_its_cancellation_does_not_keep_the_run_alive(how: str, beside: bool, by: str) -> None:
    spoiler, recorder = Spoiler(), Recorder()
    script: list[Any] = [[call(how), call("add", a=1)] if beside else [call(how)], "done"]
    model = ScriptedModel(script=lambda request: script)
    tools = [spoiler.fails, spoiler.swallows, spoiler.fails_in_a_group, add]
    agent = Agent(model, tools=tools, hooks=[recorder], checkpointer=MemoryStore())

    async def main() -> None:
        await agent.run("x", thread_id="t")

    with anyio.fail_after(5):
        if by == "task":
            task = asyncio.create_task(agent.run("x", thread_id="t"))
            await spoiler.entered.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            async with anyio.create_task_group() as group:
                group.start_soon(main)
                await spoiler.entered.wait()
                group.cancel_scope.cancel()
        assert len(of(recorder.events, ModelCompleteEvent)) == 1
        assert [e.reason for e in of(recorder.events, TerminateEvent)] == ["Cancelled"]
        result = await agent.resume("t")
    # What the body came to is known, so it is what the model hears.
    told = results(result)[0]
    assert told == "swallowed" if how == "swallows" else "cleanup failed" in told
    assert result.message == "done"


@pytest.mark.parametrize(("effect", "entries"), [("pure", 2), ("keyed", 2), ("once", 1)])
async def test_the_effect_of_a_tool_decides_whether_it_is_entered_again(effect: Any, entries: int) -> None:
    keys: list[str] = []
    entered = anyio.Event()

    @tool(effect=effect)
    async def work(ctx: ToolContext[Any]) -> str:
        """The first time it does not come back."""
        keys.append(ctx.idempotency_key)
        entered.set()
        if len(keys) == 1:
            await anyio.sleep_forever()
        return "worked"

    agent = Agent(
        ScriptedModel([call("work"), call("add", a=1)], "done"), tools=[work, add], checkpointer=MemoryStore()
    )
    async with anyio.create_task_group() as group:
        group.start_soon(collect, agent.run("x", thread_id="t"))
        await entered.wait()
        group.cancel_scope.cancel()
    result = await agent.resume("t")

    assert len(keys) == entries
    assert len(set(keys)) == 1  # the service behind it can deduplicate
    assert (results(result)[0] == "worked") is (entries == 2)


async def test_a_person_can_be_asked_what_came_of_an_unknown_outcome() -> None:
    entered = anyio.Event()

    @tool(ask_on_unknown=True)
    async def transfer(amount: int) -> str:
        """Does not come back."""
        entered.set()
        await anyio.sleep_forever()
        return "never"

    agent = Agent(ScriptedModel(call("transfer", amount=3), "done"), tools=[transfer], checkpointer=MemoryStore())
    async with anyio.create_task_group() as group:
        group.start_soon(collect, agent.run("x", thread_id="t"))
        await entered.wait()
        group.cancel_scope.cancel()

    with anyio.fail_after(5):
        asked = await agent.resume("t")
        assert "What came of it?" in asked.interrupts[0].question
        result = await agent.resume("t", "it went through")
    assert results(result) == ["a person says: it went through"]


class CancelAt(Hook):
    """Cancels the caller's task in the middle of its n-th event."""

    def __init__(self, n: int, scope: anyio.CancelScope) -> None:
        self.n, self.scope = n, scope
        self.events: list[Event] = []

    async def on_event(self, event: Event) -> None:
        self.events.append(event)
        if len(self.events) == self.n:
            self.scope.cancel()
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("checkpointer", [True, False])
async def test_wherever_the_caller_is_cancelled_there_is_one_end_and_the_thread_is_free(checkpointer: bool) -> None:
    def agent(*hooks: Hook, store: MemoryStore | None) -> Agent[Any, str]:
        model = ScriptedModel(script=lambda request: [[call("add", a=1), call("add", a=2)], "done"])
        return Agent[Any, str](model, tools=[add], hooks=hooks, checkpointer=store)

    recorder = Recorder()
    whole = await agent(recorder, store=None).run("x")
    for n in range(1, len(recorder.events) + 1):
        store = MemoryStore() if checkpointer else None
        with anyio.CancelScope() as scope:
            hook = CancelAt(n, scope)
            await agent(hook, store=store).run("x", thread_id="t")
        assert scope.cancelled_caught, n
        ends = of(hook.events, TerminateEvent)
        assert len(ends) == 1, (n, kinds(hook.events))
        assert hook.events[-1] is ends[0]
        if store is None:
            continue
        again = agent(store=store)
        try:
            resumed: AgentResult[Any] = await again.resume("t")
        except NothingToResume:
            # Before the first transition there is no run yet; after the last one it has ended.
            entries = [e.body for e in await store.read("t") if isinstance(e.body, Transition)]
            assert not entries or entries[-1].next_node == END
            continue
        assert results(resumed) == results(whole)
        assert resumed.message == "done"


# -- from the agent ------------------------------------------------------------------------------------------


async def test_agent_cancel_ends_the_runs_that_are_active_now_and_no_later_one() -> None:
    agent: Agent[Any, str]

    @tool
    async def stop(why: str) -> str:
        """Cancels the runs of its agent."""
        assert agent.cancel(why) == 1
        return "asked"

    model = ScriptedModel(call("stop", why="user clicked"), "fine")
    agent = Agent[Any, str](model, tools=[stop])
    assert agent.cancel() == 0  # armed for nothing
    cancelled = await agent.run("x")
    assert cancelled.stop_reason == "Cancelled: user clicked"
    assert results(cancelled) == ["asked"]  # the tool under way finished
    assert (await agent.run("x")).stop_reason == "NoToolCalls"


async def test_agent_cancel_without_a_reason() -> None:
    agent: Agent[Any, str]

    @tool
    async def stop() -> str:
        """Cancels."""
        agent.cancel()
        return "asked"

    agent = Agent[Any, str](ScriptedModel(call("stop"), "never"), tools=[stop])
    assert (await agent.run("x")).stop_reason == "Cancelled"


async def test_agent_cancel_works_from_another_thread() -> None:
    agent: Agent[Any, str]

    @tool
    def stop() -> str:
        """Runs in a worker thread."""
        assert threading.current_thread() is not threading.main_thread()
        agent.cancel("from a thread")
        return "asked"

    agent = Agent[Any, str](ScriptedModel(call("stop"), "never"), tools=[stop])
    assert (await agent.run("x")).stop_reason == "Cancelled: from a thread"


@pytest.mark.parametrize("by", ["run_id", "thread_id"])
async def test_agent_cancel_can_name_one_of_several_runs(by: str) -> None:
    started: dict[str, str] = {}
    all_started, go = anyio.Event(), anyio.Event()

    @tool
    async def wait(ctx: ToolContext[Any]) -> str:
        """Waits until all are there and one was cancelled."""
        started[ctx.thread_id] = ctx.run_id
        if len(started) == 3:
            all_started.set()
        await go.wait()
        return "waited"

    agent = Agent[Any, str](ScriptedModel(script=lambda request: [call("wait"), "done"]), tools=[wait])
    reasons: dict[str, str] = {}

    async def one(thread_id: str) -> None:
        reasons[thread_id] = (await agent.run("x", thread_id=thread_id)).stop_reason

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            for thread_id in "abc":
                group.start_soon(one, thread_id)
            await all_started.wait()
            name = {"run_id": started["b"]} if by == "run_id" else {"thread_id": "b"}
            assert agent.cancel("that one", **name) == 1
            go.set()
    assert reasons == {"a": "NoToolCalls", "b": "Cancelled: that one", "c": "NoToolCalls"}


async def test_a_cancel_during_the_model_call_takes_effect_after_it() -> None:
    agent: Agent[Any, str]

    def answer(request: Any) -> Any:
        agent.cancel("while it thought")
        return call("add", a=1)

    agent = Agent[Any, str](ScriptedModel(answer), tools=[add])
    result = await agent.run("x")
    assert result.stop_reason == "Cancelled: while it thought"
    assert results(result) == ["Error: not run: Cancelled: while it thought"]


async def test_a_run_can_be_cancelled_by_itself_even_before_it_starts() -> None:
    agent = Agent(ScriptedModel("one", "two"))
    run = agent.run("x")
    run.cancel("changed my mind")
    assert (await run).stop_reason == "Cancelled: changed my mind"
    assert (await agent.run("x")).stop_reason == "NoToolCalls"


async def test_the_first_reason_is_kept() -> None:
    class Late(Hook):
        def on_terminate(self, event: TerminateEvent) -> Cancel:
            return Cancel("too late")

    both = [On(ModelCompleteEvent, Cancel("first")), On(ThinkEvent, Cancel("second")), Late()]
    result = await Agent(ScriptedModel("hi"), hooks=both).run("x")
    assert result.stop_reason == "Cancelled: first"
    result = await Agent(ScriptedModel("hi"), hooks=[Late()]).run("x")
    assert result.stop_reason == "NoToolCalls"


async def test_the_state_is_saved_before_the_stream_ends() -> None:
    store = MemoryStore()
    saved: list[str] = []

    class Look(Hook):
        async def on_terminate(self, event: TerminateEvent) -> None:
            saved.extend(e.body.next_node for e in await store.read("t") if isinstance(e.body, Transition))

    agent = Agent(
        ScriptedModel(call("add", a=1), "hello again"),
        tools=[add],
        checkpointer=store,
        hooks=[On(ThinkEvent, Cancel("stop")), Look()],
    )
    result = await agent.run("x", thread_id="t")
    assert saved == ["think", "terminate", "end"]
    assert_valid_history(result.state.messages)

    # The conversation goes on with the next turn.
    plain = Agent(ScriptedModel("hello again"), tools=[add], checkpointer=store)
    again = await plain.run("and now?", thread_id="t")
    assert again.message == "hello again"
    assert again.state.messages[: len(result.state.messages)] == result.state.messages


# -- leaving the iteration -------------------------------------------------------------------------------------


async def test_breaking_out_at_any_event_leaves_a_thread_that_can_be_resumed() -> None:
    def agent(store: MemoryStore | None) -> Agent[Any, str]:
        model = ScriptedModel(script=lambda request: [[call("add", a=1), call("add", a=2)], call("add", a=3), "done"])
        return Agent[Any, str](model, tools=[add], checkpointer=store)

    whole = await collect(agent(None).run("x"))
    for n in range(2, len(whole)):
        store = MemoryStore()
        run = agent(store).run("x", thread_id="t")
        seen = 0
        async for _ in run:
            seen += 1
            if seen == n:
                break
        await run.aclose()
        try:
            result = await agent(store).resume("t")
        except NothingToResume:
            assert whole[n - 1].type in ("checkpoint", "terminate")
            continue
        assert results(result) == ["2", "3", "4"], n


async def test_a_dropped_run_ends_by_itself() -> None:
    guarded, recorder, store = Guarded(), Recorder(), MemoryStore()
    agent = Agent(ScriptedModel(call("hold")), tools=[guarded.hold], hooks=[recorder], checkpointer=store)

    async def start_and_leave() -> None:
        async for event in agent.run("x", thread_id="t"):
            if isinstance(event, ToolStartEvent):
                return

    await start_and_leave()
    with anyio.fail_after(5):
        while (await store.threads())[0].holder is not None:
            await anyio.lowlevel.checkpoint()
    assert [e.reason for e in of(recorder.events, TerminateEvent)] == ["Cancelled"]
    assert guarded.log == []  # it was left before the body was entered
    assert agent.cancel() == 0  # nothing is active any more


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("then", ["resume", "run"])
async def test_a_thread_can_be_used_as_soon_as_its_loop_was_left(kept: bool, then: str) -> None:
    recorder = Recorder()
    agent = Agent[Any, str](
        ScriptedModel(call("add", a=1), "done", after="cycle"),
        tools=[add],
        hooks=[recorder],
        checkpointer=MemoryStore(),
    )
    held = [agent.run("x", thread_id="t")]
    async for event in held[0] if kept else held.pop():
        if isinstance(event, ToolCompleteEvent):
            break

    result = await (agent.resume("t") if then == "resume" else agent.run("y", thread_id="t"))

    assert result.stop_reason == "NoToolCalls"
    assert_valid_history(result.state.messages)
    assert [e.reason for e in of(recorder.events, TerminateEvent)] == ["Cancelled", "NoToolCalls"]


async def test_a_loop_in_a_block_may_be_left_and_entered_again() -> None:
    async with Agent(ScriptedModel(call("add", a=1), "done"), tools=[add]).run("x") as run:
        async for event in run:
            if isinstance(event, ToolStartEvent):
                break
        rest = await collect(run)
    assert kinds(rest)[-1] == "terminate"
    assert run.result.message == "done"


async def test_a_thread_that_a_left_run_does_not_give_back_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locus.run.PATIENCE", 0.0)
    inside, go_on = anyio.Event(), anyio.Event()

    @tool
    async def cling() -> str:
        """Does not let itself be cancelled."""
        inside.set()
        with anyio.CancelScope(shield=True):
            await go_on.wait()
        return "at last"

    store = MemoryStore()
    agent = Agent(ScriptedModel([call("cling"), call("add", a=1)]), tools=[cling, add], checkpointer=store)
    run = agent.run("x", thread_id="t")
    async for event in run:
        if isinstance(event, ToolCompleteEvent):
            await inside.wait()
            break
    with pytest.raises(ThreadBusy):
        await agent.resume("t")
    monkeypatch.setattr("locus.run.PATIENCE", 60.0)
    with anyio.fail_after(5):  # it is nobody's business on another thread
        await Agent(ScriptedModel("hi"), checkpointer=store).run("x", thread_id="u")
    go_on.set()
    await run.aclose()
    assert (await store.threads())[0].holder is None


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_no_task_is_left_behind() -> None:
    before = asyncio.all_tasks()
    agent = Agent(ScriptedModel(call("add", a=1), after="repeat"), tools=[add])
    for _ in range(3):
        run = agent.run("x")
        async for event in run:
            if isinstance(event, ToolStartEvent):
                break
        await run.aclose()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


# -- questions and children ---------------------------------------------------------------------------------------


async def test_cancelling_a_run_that_waits_for_a_person_concerns_nobody() -> None:
    agent = Agent(ScriptedModel(call("confirm", what="pay"), "done"), tools=[confirm])
    asked = await agent.run("x")
    assert agent.cancel() == 0
    assert (await agent.resume(asked, "yes")).stop_reason == "NoToolCalls"


async def test_a_cancel_of_the_parent_reaches_the_child() -> None:
    inner = ScriptedModel(call("add", a=1), after="repeat")
    child: Agent[Any, str] = Agent(inner, tools=[add], max_iterations=50)
    parent: Agent[Any, str]
    seen: list[str] = []

    @tool
    async def delegate(ctx: ToolContext[Any]) -> str:
        """Runs a child that would take long."""
        result = await ctx.run_child(child, "count")
        seen.append(result.stop_reason)
        return "delegated"

    class Stop(Hook):
        def on_iteration(self, event: IterationEvent) -> None:
            if event.parent_run_id is not None and event.iteration == 3:
                parent.cancel("enough")

    child = Agent(inner, tools=[add], max_iterations=50, hooks=[Stop()])
    parent = Agent(ScriptedModel(call("delegate"), "never"), tools=[delegate])
    result = await parent.run("x")
    assert seen == ["Cancelled: enough"]
    assert len(inner.requests) == 2
    assert result.stop_reason == "Cancelled: enough"


async def test_run_sync_can_be_cancelled_from_another_thread() -> None:
    entered = threading.Event()
    release = threading.Event()

    @tool
    def wait() -> str:
        """Waits for the other thread."""
        entered.set()
        release.wait(5)
        return "waited"

    agent = Agent(ScriptedModel(call("wait"), "never"), tools=[wait])
    results_: list[AgentResult[Any]] = []

    async with anyio.create_task_group() as group:

        async def other() -> None:
            results_.append(await anyio.to_thread.run_sync(agent.run_sync, "x"))

        group.start_soon(other)
        await anyio.to_thread.run_sync(entered.wait, 5)
        assert agent.cancel("from outside") == 1
        release.set()
    assert results_[0].stop_reason == "Cancelled: from outside"


# -- the next run on the thread ---------------------------------------------------------------------


class Lingering(Hook):
    """Holds something open that takes its time to close."""

    @hookimpl
    @asynccontextmanager
    async def locus_run_session(self, run: RunContext) -> AsyncIterator[list[Any]]:
        yield []
        for _ in range(20):
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("hooks", [[], [Lingering()]], ids=["at once", "lingering"])
@pytest.mark.parametrize("cancelled", [False, True])
async def test_who_has_the_last_event_of_a_run_can_begin_the_next_on_its_thread(
    hooks: list[Hook], cancelled: bool
) -> None:
    agent = Agent(ScriptedModel("one", after="repeat"), checkpointer=MemoryStore(), hooks=hooks)
    run, following = agent.run("x", thread_id="t"), []
    async for event in run:
        if cancelled and isinstance(event, ThinkEvent):
            run.cancel("enough")
        if isinstance(event, TerminateEvent):
            following.append(await agent.run("y", thread_id="t"))
    assert run.result.stop_reason == ("Cancelled: enough" if cancelled else "NoToolCalls")
    assert [m.text for m in following[0].state.messages] == ["x", "one", "y", "one"]


async def test_the_last_event_of_a_child_is_not_the_last_of_its_parent() -> None:
    child = Agent(ScriptedModel("inner"))

    @tool
    async def delegate(ctx: ToolContext[Any]) -> str:
        """Ask another agent."""
        return str((await ctx.run_child(child, "?")).text)

    agent = Agent(ScriptedModel(call("delegate"), "outer"), tools=[delegate], checkpointer=MemoryStore())
    with anyio.fail_after(30):
        async for event in agent.run("x", thread_id="t"):
            if isinstance(event, TerminateEvent) and event.parent_run_id is not None:
                with pytest.raises(ThreadBusy):
                    await agent.run("y", thread_id="t")
