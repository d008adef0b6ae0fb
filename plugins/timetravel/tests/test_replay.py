"""`agent.replay`: the code against the journal; nothing happens, and the first difference is told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import anyio
import anyio.lowlevel
import pytest

import locus_plugin_timetravel as timetravel
from locus import (
    Agent,
    AgentState,
    Budget,
    Cancel,
    Event,
    Hook,
    Interrupt,
    InterruptEvent,
    Message,
    ModelErrorEvent,
    ModelRequest,
    ModelSettings,
    Reject,
    Retry,
    RetryableToolError,
    Role,
    ThinkEvent,
    ToolCompleteEvent,
    ToolContext,
    tool,
)
from locus.core.errors import ModelError
from locus.core.journal import Transition
from locus.core.termination import CustomCondition, Deadline, MaxIterations, TimeLimit, TokenLimit
from locus.journal import MemoryStore
from locus.models import Chunk, ModelResponse
from locus.plugin import Plugin, RunContext, current_run, hookimpl
from locus.plugins.discovery import Catalogue
from locus_kit.reflect import EveryIterations
from locus_plugin_conversation import SlidingWindowManager, SummarizingManager
from locus_testkit import FakeClock, ScriptedModel, call

from .kit import Answer, Strict, add, bodies, confirm, dead, made, question, results, same

pytestmark = pytest.mark.anyio


@pytest.fixture
def store() -> MemoryStore:
    bodies.clear()
    return MemoryStore()


# -- nothing happens ----------------------------------------------------------------------------------


async def test_a_replay_asks_and_enters_and_tells_nothing(store: MemoryStore) -> None:
    class Watch(Hook):
        def __init__(self) -> None:
            self.seen: list[str] = []

        def on_event(self, event: Event) -> None:
            self.seen.append(event.type)

        def on_tool_call(self, call: Any) -> None:
            self.seen.append("decide")

        @hookimpl
        async def locus_wrap_tool_call(self, call_next: Any, call: Any) -> Any:
            self.seen.append("wrap tool")
            return await call_next(call)

        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: Any) -> Any:
            self.seen.append("wrap model")
            return await call_next(request)

        @hookimpl
        async def locus_wrap_node(self, call_next: Any, state: Any) -> Any:
            self.seen.append("wrap node")
            return await call_next(state)

        @hookimpl
        def locus_review_answer(self, answer: Any) -> None:
            self.seen.append("review")

        @hookimpl
        def locus_filter_input(self, prompt: Any) -> None:
            self.seen.append("filter")

        @hookimpl
        def locus_decide_route(self, node: Any) -> None:
            self.seen.append("route")

    watch = Watch()
    agent = made(store, call("add", a=1), "2", hooks=[watch])
    await agent.run("1 + 1?", thread_id="t")
    assert {"decide", "wrap tool", "wrap model", "wrap node", "review", "filter", "route", "think"} <= set(watch.seen)
    watch.seen.clear()
    entered, before = dict(bodies), await store.read("t")

    await same(agent)
    await same(dead(store, hooks=[watch]))
    assert watch.seen == []
    assert dict(bodies) == entered
    assert await store.read("t") == before
    assert (await store.threads())[0].holder is None


async def test_a_thread_is_replayed_while_a_run_holds_it(store: MemoryStore) -> None:
    agent = made(store, call("add", a=1), "2")
    checked = []
    async for _ in agent.run("x", thread_id="t"):
        if await store.read("t"):
            found = await timetravel.replay(agent, "t")
            assert found, str(found)
            checked.append(found.checked)
    assert checked[-1] == 5
    assert checked == sorted(checked)


# -- the same code finds nothing ------------------------------------------------------------------------


async def test_several_turns(store: MemoryStore) -> None:
    agent = made(store, call("add", a=1), "2", "hello", [call("nope"), call("add", a="x")], "oh", system_prompt="Be.")
    for prompt in ("1 + 1?", "hi", "again"):
        await agent.run(prompt, thread_id="t", metadata={"prompt": prompt})
    await same(dead(store, system_prompt="Be."))


async def test_an_answered_question(store: MemoryStore) -> None:
    agent = made(store, [call("confirm", what="go"), call("add", a=1)], "gone")
    await agent.run("x", thread_id="t")
    await same(dead(store))  # it waits
    await agent.resume("t", "yes")
    await same(dead(store))


async def test_a_question_of_a_decider(store: MemoryStore) -> None:
    class Careful(Hook):
        def on_tool_call(self, call: Any) -> Any:
            return Interrupt("May it?") if call.arguments["a"] == 1 else Reject("never two")

    agent = made(store, [call("add", a=1), call("add", a=2)], "done", hooks=[Careful()])
    await agent.run("x", thread_id="t")
    await same(dead(store))
    await agent.resume("t", "allow")
    await same(dead(store))


@pytest.mark.parametrize("at", range(1, 12))
async def test_a_cancel_wherever_it_comes(store: MemoryStore, at: int) -> None:
    class Whim(Hook):
        left = at

        def on_event(self, event: Event) -> Cancel | None:
            self.left -= 1
            return Cancel("enough") if self.left == 0 else None

    script = [[call("add", a=1), call("confirm", what="go"), call("add", a=2)], "done"]
    agent = made(store, *script, hooks=[Whim()], tool_execution="sequential")
    await agent.run("x", thread_id="t")
    await same(dead(store, tool_execution="sequential"))


async def test_a_cancel_without_a_reason(store: MemoryStore) -> None:
    agent = made(store, call("add", a=1), "2")
    run = agent.run("x", thread_id="t")
    async for event in run:
        if isinstance(event, ThinkEvent):
            run.cancel()
    assert run.result.stop_reason == "Cancelled"
    await same(dead(store))


@pytest.mark.parametrize(
    "limit", [MaxIterations(1), MaxIterations(2), TokenLimit(1), TokenLimit(15), TokenLimit(29), TokenLimit(0)]
)
async def test_a_limit(store: MemoryStore, limit: Any) -> None:
    agent = made(store, call("add", a=1), call("add", a=2), "3", termination=limit)
    await agent.run("x", thread_id="t")
    await same(dead(store, termination=limit))


@pytest.mark.parametrize("seconds", [0.0, 1.0, 2.5, 4.0, 5.5, 7.0, 10.0])
@pytest.mark.parametrize("kind", ["active", "deadline"])
async def test_a_limit_of_time(store: MemoryStore, seconds: float, kind: str) -> None:
    clock = FakeClock()

    class Slow(Hook):
        def on_event(self, event: Event) -> None:
            clock.advance(0.3)

    def limit() -> Any:
        return TimeLimit(seconds) if kind == "active" else Deadline(start + timedelta(seconds=seconds))

    start = clock.now()
    script = [call("add", a=1), call("add", a=2), "3"]
    agent = made(store, *script, termination=limit(), clock=clock, hooks=[Slow()])
    result = await agent.run("x", thread_id="t")
    assert seconds not in (0.0, 10.0) or (result.stop_reason == "NoToolCalls") is (seconds == 10.0)
    await same(dead(store, termination=limit()))


async def test_a_failing_model(store: MemoryStore) -> None:
    agent = made(store, call("add", a=1), ModelError("overloaded"))
    result = await agent.run("x", thread_id="t")
    assert result.stop_reason == "ModelError"
    await same(dead(store))


async def test_a_model_that_failed_in_its_own_way(store: MemoryStore) -> None:
    class Odd(ModelError):
        pass

    for n, error in enumerate((Odd("odd"), ValueError("plain"), TimeoutError())):
        await made(store, error).run("x", thread_id=str(n))
        await same(dead(store), str(n))


class Persistent(Hook):
    """Has whatever fails, or what was thought, run again."""

    def __init__(self, times: int = 1, *, think: bool = False) -> None:
        self.times, self.think = times, think

    def _again(self) -> Retry | None:
        self.times -= 1
        return Retry("again") if self.times >= 0 else None

    def on_model_error(self, event: ModelErrorEvent) -> Retry | None:
        return self._again()

    def on_tool_complete(self, event: ToolCompleteEvent) -> Retry | None:
        return self._again() if event.error else None

    def on_think(self, event: ThinkEvent) -> Retry | None:
        return self._again() if self.think else None


@pytest.mark.parametrize(
    "script",
    [
        [ModelError("no"), "yes"],
        [ModelError("no"), ModelError("no"), "yes"],
        [ModelError("no"), ModelError("no"), ModelError("no")],
    ],
)
async def test_a_model_that_was_asked_again(store: MemoryStore, script: Any) -> None:
    agent = made(store, *script, hooks=[Persistent(2)])
    await agent.run("x", thread_id="t")
    await same(dead(store))


@pytest.mark.parametrize("limit", [TokenLimit(1_000), TokenLimit(14), TokenLimit(29)])
async def test_an_answer_that_was_thrown_away(store: MemoryStore, limit: Any) -> None:
    agent = made(store, "no", "no, really", "yes", hooks=[Persistent(2, think=True)], termination=limit)
    await agent.run("x", thread_id="t")
    await same(dead(store, termination=limit))


async def test_an_answer_that_was_thrown_away_for_an_error(store: MemoryStore) -> None:
    agent = made(store, "no", ModelError("gone"), hooks=[Persistent(1, think=True)])
    assert (await agent.run("x", thread_id="t")).stop_reason == "ModelError"
    await same(dead(store))


async def test_calls_that_ran_again(store: MemoryStore) -> None:
    failures = ["one", "two"]

    @tool
    def flaky(a: int) -> str:
        """Fails twice."""
        if failures:
            raise RetryableToolError(failures.pop())
        return "at last"

    tools = [flaky, add]
    agent = made(store, [call("flaky", a=1), call("add", a=1)], "done", tools=tools, hooks=[Persistent(2)])
    result = await agent.run("x", thread_id="t")
    assert results(result)[0] == "at last"
    await same(dead(store, tools=tools))


async def test_an_answer_that_the_caller_cut_off(store: MemoryStore) -> None:
    class Endless:
        name, price = "scripted:model", None

        async def complete(self, request: ModelRequest, on_chunk: Any = None) -> ModelResponse:
            await on_chunk(Chunk("Once upon "))
            agent.cancel("enough")
            await anyio.sleep_forever()
            raise AssertionError

    class Listen(Hook):
        def on_model_chunk(self, event: Event) -> None: ...

    agent = Agent[Any, Any](Endless(), hooks=[Listen()], tools=[add, confirm], checkpointer=store, name="a")
    done = await agent.run("x", thread_id="t")
    assert (done.stop_reason, done.message) == ("Cancelled: enough", "Once upon ")
    await same(dead(store))
    fork = await timetravel.fork(agent, "t")
    again = await made(store, "a time").run("go on", thread_id=fork)
    assert [m.text for m in again.state.messages] == ["x", "Once upon ", "go on", "a time"]
    await same(dead(store), fork)


@pytest.mark.parametrize("kind", [ToolCompleteEvent, InterruptEvent])
async def test_a_cancel_beside_an_open_question(store: MemoryStore, kind: type[Event]) -> None:
    class Stop(Hook):
        def on_event(self, event: Event) -> Cancel | None:
            return Cancel("enough") if isinstance(event, kind) else None

    script = [call("add", a=1), call("confirm", what="pay")], "never"
    agent = made(store, *script, hooks=[Stop()], tool_execution="sequential")
    done = await agent.run("x", thread_id="t")
    assert done.stop_reason == "Cancelled: enough"
    await same(dead(store, tool_execution="sequential"))


async def test_calls_that_were_to_run_again_when_the_run_was_cancelled(store: MemoryStore) -> None:
    @tool
    def flaky(a: int) -> str:
        """Fails."""
        raise RetryableToolError("not now")

    class Undecided(Hook):
        def on_event(self, event: Event, run: RunContext) -> Retry | None:
            if isinstance(event, ToolCompleteEvent):
                run.cancel("changed my mind")
                return Retry()
            return None

    agent = made(store, call("flaky", a=1), "done", tools=[flaky], hooks=[Undecided()])
    result = await agent.run("x", thread_id="t")
    assert results(result) == ["Error: not run: Cancelled: changed my mind"]
    await same(dead(store, tools=[flaky]))


async def test_revisions(store: MemoryStore) -> None:
    agent = made(store, "no", "still no", "please", hooks=[Strict()])
    assert (await agent.run("x", thread_id="t")).text == "please"
    await same(dead(store, hooks=[Strict()]))


async def test_revisions_that_came_to_nothing(store: MemoryStore) -> None:
    agent = made(store, "no", "no", "no", hooks=[Strict()])
    assert (await agent.run("x", thread_id="t")).text == "no"
    await same(dead(store, hooks=[Strict()]))


async def test_a_reviewer_that_failed_too_often_is_not_missed(store: MemoryStore) -> None:
    class Broken(Hook):
        @hookimpl
        def locus_review_answer(self, answer: Message) -> None:
            raise LookupError("my mistake")

    options: Any = {"stop_on_text": False, "max_iterations": 5, "hooks": [Broken()]}
    await made(store, "1", "2", "3", "4", "5", **options).run("x", thread_id="t")
    await same(dead(store, **options))


async def test_repairs_by_schema(store: MemoryStore) -> None:
    agent = made(store, "five", '{"n": "five"}', '{"n": 5}', output_schema=Answer)
    assert (await agent.run("x", thread_id="t")).parsed == Answer(5)
    await same(dead(store, output_schema=Answer))


async def test_a_compaction(store: MemoryStore) -> None:
    judge = ScriptedModel("what was said", "what was said then", ModelError("no"), after="repeat", name="other:model")
    manager = SummarizingManager(6, keep_recent=2, model=judge)
    script = [call("add", a=n) for n in range(7)]
    agent = made(store, *script, "done", conversation_manager=manager)
    result = await agent.run("x", thread_id="t")
    assert len(judge.requests) >= 3
    asked = len(judge.requests)
    assert result.usage.total_tokens > 8 * 15
    await same(dead(store, conversation_manager=manager))
    assert len(judge.requests) == asked


async def test_a_window(store: MemoryStore) -> None:
    manager = SlidingWindowManager(5)
    agent = made(store, *[call("add", a=n) for n in range(6)], "done", conversation_manager=manager)
    await agent.run("x", thread_id="t")
    await same(dead(store, conversation_manager=manager))


class Spender(Hook):
    """Asks a model at every event that it may ask at."""

    def __init__(self, model: Any) -> None:
        self.model = model

    async def on_event(self, event: Event, run: RunContext) -> None:
        if event.type in ("run_start", "iteration", "think", "tool_start", "tool_complete", "checkpoint"):
            await run.call_model(question(f"{event.type} {event.seq}?"), model=self.model, purpose="judge")

    @hookimpl
    async def locus_filter_input(self, prompt: Message, run: RunContext) -> None:
        await run.call_model(question("prompt?"), model=self.model, purpose="judge")


async def test_what_observers_spend_is_in_the_record(store: MemoryStore) -> None:
    judge = ScriptedModel("fine", after="repeat", name="other:model")
    agent = made(store, call("add", a=1), call("add", a=2), "3", hooks=[Spender(judge)])
    result = await agent.run("x", thread_id="t")
    assert result.usage.total_tokens > 10 * 15
    await same(dead(store))
    assert not await timetravel.replay(dead(store, termination=TokenLimit(100)), "t")


async def test_a_model_that_is_named_needs_no_provider(store: MemoryStore) -> None:
    acme = Plugin(name="acme", api=(1, 0), summary="Judges.", provides={"model": "plugins.timetravel.tests.kit:judge"})

    class Judging(Hook):
        @hookimpl
        async def locus_reflect(self, state: AgentState, run: RunContext) -> AgentState:
            got = await run.call_model(question("well?"), model="acme:judge", purpose="judge")
            return state.with_metadata("judged", got.message.text)

        @hookimpl
        def locus_register_reflect_policies(self) -> Any:
            return [EveryIterations(1)]

    agent = made(store, call("add", a=1), "2", hooks=[Judging()], catalogue=Catalogue.only(acme))
    assert (await agent.run("x", thread_id="t")).state.metadata["judged"] == "fine"
    await same(dead(store, hooks=[Judging()]))


@tool
async def ask_a_model(ctx: ToolContext[Any]) -> str:
    """Ask a model."""
    bodies["ask_a_model"] += 1
    return (await ctx.call_model(question("well?"), purpose="judge")).message.text


async def test_what_a_body_asked_a_model_is_in_the_record(store: MemoryStore) -> None:
    agent = made(store, call("ask_a_model"), "fine", "done", tools=[ask_a_model])
    result = await agent.run("x", thread_id="t")
    assert result.usage.total_tokens == 45
    await same(dead(store, tools=[ask_a_model]))
    assert bodies["ask_a_model"] == 1


async def test_a_replay_is_the_current_run_of_what_it_calls(store: MemoryStore) -> None:
    seen: list[bool] = []

    class Looks(Hook):
        @hookimpl
        async def locus_wrap_node(self, call_next: Any, node: str, state: AgentState, run: RunContext) -> AgentState:
            seen.append(current_run() is run)
            made: AgentState = await call_next(state.with_metadata("at", str(node)))
            return made

    await made(store, "done", hooks=[Looks()]).run("x", thread_id="t")
    seen.clear()
    await same(dead(store, hooks=[Looks()]))
    assert seen
    assert all(seen)
    assert current_run() is None


async def test_what_is_kept_of_a_result_is_in_the_record(store: MemoryStore) -> None:
    asked: list[str] = []

    class Keeps(Hook):
        @hookimpl
        def locus_shorten_result(self, text: str) -> str:
            asked.append(text)
            return f"no {len(asked)}"

        @hookimpl
        def locus_parse_result(self, state: AgentState) -> tuple[str, ...]:
            return tuple(results(state))

    result = await made(store, call("add", a=1), "2", hooks=[Keeps()]).run("x", thread_id="t")
    await same(dead(store, hooks=[Keeps()]))
    assert asked == ["2"]
    assert result.parsed == ("no 1",)


async def test_reflection(store: MemoryStore) -> None:
    judge = ScriptedModel("good", after="repeat", name="other:model")

    class Reflecting(Hook):
        @hookimpl
        async def locus_reflect(self, state: AgentState, run: RunContext) -> AgentState:
            got = await run.call_model(question("how is it going?"), model=judge, purpose="judge")
            assert await run.step("look", self.look) == "looked"
            return state.with_confidence(0.5).with_metadata("judged", got.message.text)

        async def look(self) -> str:
            looked.append(1)
            return "looked"

        @hookimpl
        def locus_register_reflect_policies(self) -> Any:
            return [EveryIterations(1)]

    looked: list[int] = []
    agent = made(store, call("add", a=1), call("add", a=2), "3", hooks=[Reflecting()])
    await agent.run("x", thread_id="t")
    seen = (len(judge.requests), len(looked))
    await same(dead(store, hooks=[Reflecting()]))
    assert (len(judge.requests), len(looked)) == seen


async def test_a_diverted_route(store: MemoryStore) -> None:
    class Divert(Hook):
        asked = 0

        @hookimpl
        def locus_decide_route(self, node: str, proposed: str) -> str | None:
            self.asked += 1
            return "reflect" if node == "execute" and self.asked < 3 else "terminate" if self.asked == 5 else None

    class Never(Hook):
        @hookimpl
        def locus_decide_route(self, node: str) -> None:
            raise AssertionError("a replay asked about a route")

    agent = made(store, call("add", a=1), call("add", a=2), "3", hooks=[Divert()])
    await agent.run("x", thread_id="t")
    assert [m.why for m in await timetravel.history(agent, "t")][2] == "instead of think"
    await same(dead(store, hooks=[Never()]))


async def test_a_wrapper_that_changes_states_is_a_part_of_the_code(store: MemoryStore) -> None:
    class Stamp(Hook):
        @hookimpl
        async def locus_wrap_node(self, call_next: Any, node: str, state: AgentState) -> AgentState:
            done: AgentState = await call_next(state)
            return done.with_metadata("seen", (*done.metadata.get("seen", ()), str(node)))

    agent = made(store, call("add", a=1), "2", hooks=[Stamp()])
    await agent.run("x", thread_id="t")
    await same(dead(store, hooks=[Stamp()]))
    found = (await timetravel.replay(dead(store), "t")).difference
    assert found is not None
    assert (found.n, found.step, found.recorded, found.actual) == (2, "state.metadata['seen']", ("think",), None)


async def test_attempts_of_a_wrapper_are_one_step(store: MemoryStore) -> None:
    class Stubborn(Hook):
        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: Any) -> Any:
            await call_next(request)
            return await call_next(request)

    agent = made(store, "one", "two", hooks=[Stubborn()])
    assert (await agent.run("x", thread_id="t")).text == "two"
    await same(dead(store))


async def test_child_runs(store: MemoryStore) -> None:
    expert = made(store, call("add", a=1), call("add", a=2), "3", name="expert")

    @tool
    async def consult(ctx: ToolContext[Any]) -> str:
        """Ask an expert."""
        answer = await ctx.run_child(expert, "?", budget=Budget(iterations=2, tokens=1000))
        return f"{answer.stop_reason}: {answer.text}"

    agent = made(store, call("consult"), "done", tools=[consult])
    result = await agent.run("x", thread_id="t")
    assert results(result) == ["MaxIterations: "]
    await same(dead(store, tools=[consult]))
    # The child's own limits are on its own record.
    (child,) = (await timetravel.history(agent, "t"))[2].children
    await same(dead(store, name="expert"), child)


@pytest.mark.parametrize("place", ["think", "execute", "reflect", "review"])
async def test_children_that_a_limit_above_ended(store: MemoryStore, place: str) -> None:
    """Two children of one body share what there is: no state of theirs shows why they ended."""
    counting = 0

    class Asks(Hook):
        """Asks the model at one place of each turn."""

        async def ask(self, run: RunContext, about: str) -> None:
            nonlocal counting
            if place == about:
                counting += 1
                for _ in range(4):
                    await anyio.lowlevel.checkpoint()
                request = ModelRequest(messages=(Message(Role.USER, f"well? {run.state.iteration}"),))
                await run.call_model(request, purpose="judge")

        @hookimpl
        async def locus_decide_tool_call(self, call: Any, run: RunContext) -> Any:
            await self.ask(run, "execute")

        @hookimpl
        def locus_register_reflect_policies(self) -> Any:
            return [EveryIterations(1)]

        @hookimpl
        async def locus_reflect(self, state: AgentState, run: RunContext) -> AgentState:
            await self.ask(run, "reflect")
            return state

        @hookimpl
        async def locus_review_answer(self, answer: Message, state: AgentState, run: RunContext) -> Any:
            await self.ask(run, "review")

    script = [call("add", a=i) for i in range(9)] if place != "review" else ["an answer"]
    children = []

    @tool
    async def gather(ctx: ToolContext[Any]) -> str:
        """Two children together."""

        async def one(task: str) -> None:
            expert = Agent(
                ScriptedModel(*script), name="expert", checkpointer=store, tools=[add], hooks=[Asks()], max_iterations=9
            )
            children.append((await ctx.run_child(expert, task)).stop_reason)

        async with anyio.create_task_group() as group:
            group.start_soon(one, "a")
            group.start_soon(one, "b")
        return "gathered"

    limit = 125 if place != "review" else 44
    agent = made(store, call("gather"), "done", tools=[gather])
    result = await agent.run("x", thread_id="t", termination=TokenLimit(limit))
    assert result.state.total_tokens_used > limit
    assert set(children) == {"TokenLimit"}
    await same(dead(store, tools=[gather]))
    ids = [t.thread_id for t in await store.threads() if t.thread_id != "t"]
    assert len(ids) == 2
    above = 0
    for child in ids:
        bodies_of = [e.body for e in await store.read(child)]
        above += sum(isinstance(b, Transition) and b.detail.startswith("used up together") for b in bodies_of)
        await same(dead(store, name="expert", tools=[add], hooks=[Asks()], max_iterations=9), child)
    assert above
    assert counting == 0 or place != "think"


async def test_a_limit_of_one_run_is_on_its_record(store: MemoryStore) -> None:
    agent = made(store, call("add", a=1), call("add", a=2), "3")
    result = await agent.run("x", thread_id="t", termination=MaxIterations(1))
    assert result.stop_reason == "MaxIterations"
    await agent.run("y", thread_id="t")
    await same(dead(store))


async def test_a_limit_of_one_resumption_is_on_its_record(store: MemoryStore) -> None:
    agent = made(store, call("confirm", what="go"), call("add", a=2), "3")
    await agent.run("x", thread_id="t")
    assert (await agent.resume("t", "yes", termination=MaxIterations(1))).stop_reason == "MaxIterations"
    await same(dead(store))


async def test_a_limit_without_a_form_is_given_again(store: MemoryStore) -> None:
    def limit() -> Any:
        return CustomCondition(lambda state: len(state.tool_executions) >= 1, name="OneCall")

    agent = made(store, call("add", a=1), call("add", a=2), "3")
    assert (await agent.run("x", thread_id="t", termination=limit())).stop_reason == "OneCall"
    await same(dead(store), termination=limit())
    found = (await timetravel.replay(dead(store), "t")).difference
    assert found is not None
    assert (found.n, found.step) == (3, "the next node")


async def test_what_one_run_was_called_with_is_given_again(store: MemoryStore) -> None:
    agent = made(store, '{"n": 5}')
    await agent.run("x", thread_id="t", output_schema=Answer, model_settings=ModelSettings(temperature=0.0))
    how: Any = {"output_schema": Answer, "model_settings": ModelSettings(temperature=0.0)}
    await same(dead(store), **how)
    for missing, what in (("output_schema", "the output schema"), ("model_settings", "the model settings")):
        found = (await timetravel.replay(dead(store), "t", **{k: v for k, v in how.items() if k != missing})).difference
        assert found is not None
        assert found.step == "0/think/0"
        assert found.recorded.startswith(what)
        assert found.actual == f"{what} none"


async def test_nodes_of_a_plugin_and_their_dependencies(store: MemoryStore) -> None:
    class Planner(Hook):
        @hookimpl
        async def locus_think(self, state: AgentState, run: RunContext) -> AgentState:
            async def plan() -> str:
                planned.append(run.deps)
                return f"a plan for {run.deps}"

            made_plan = await run.step("plan", plan)
            return state.with_message(Message(Role.ASSISTANT, made_plan)).with_metadata("for", run.deps)

    planned: list[Any] = []
    agent = made(store, hooks=[Planner()])
    await agent.run("x", thread_id="t", deps="us")
    await same(dead(store, hooks=[Planner()]), deps="us")
    assert planned == ["us"]
    found = (await timetravel.replay(dead(store, hooks=[Planner()]), "t", deps="them")).difference
    assert found is not None
    assert (found.step, found.recorded, found.actual) == ("state.metadata['for']", "us", "them")


async def test_a_node_that_failed(store: MemoryStore) -> None:
    class Broken(Hook):
        def __init__(self, why: str) -> None:
            self.why = why

        @hookimpl
        def locus_think(self, state: AgentState) -> AgentState:
            raise LookupError(f"{self.why} at {object()!r}")

    agent = made(store, hooks=[Broken("lost")])
    assert (await agent.run("x", thread_id="t")).stop_reason == "NodeError"
    await same(dead(store, hooks=[Broken("lost")]))
    assert not await timetravel.replay(dead(store, hooks=[Broken("found")]), "t")
    assert not await timetravel.replay(dead(store), "t")


async def test_a_seed_and_a_transcript(store: MemoryStore) -> None:
    agent = made(store, "one", "two")
    seed = AgentState(messages=[Message(Role.SYSTEM, "Be."), Message(Role.USER, "x")]).with_metadata("k", 1)
    await agent.run(seed, thread_id="t")
    await agent.run([Message(Role.USER, "y"), Message(Role.ASSISTANT, "z"), Message(Role.USER, "?")], thread_id="t")
    await same(dead(store))


async def test_idempotent_calls(store: MemoryStore) -> None:
    @tool(idempotent=True)
    def book(n: int) -> str:
        """Book."""
        return f"booked {n}"

    @tool(idempotent="thread")
    def order(n: int) -> str:
        """Order."""
        return f"ordered {n}"

    tools = [book, order]
    script = [[call("book", n=1), call("book", n=1), call("order", n=1)], call("book", n=1), "done"]
    agent = made(store, *script, *script, tools=tools)
    await agent.run("x", thread_id="t")
    await agent.run("y", thread_id="t")
    await same(dead(store, tools=tools))


async def test_a_resumed_run_of_another_setup_differs_where_it_began(store: MemoryStore) -> None:
    """A run that an upgraded agent went on with is the work of two agents."""

    @tool(name="add")
    async def better(a: int, b: int = 1) -> int:
        """Add two numbers, better."""
        return a + b

    await made(store, [call("confirm", what="go"), call("add", a=1)], "done").run("x", thread_id="t")
    upgraded: Any = {"tools": [better, confirm]}
    await made(store, "done", **upgraded).resume("t", "yes")
    found = (await timetravel.replay(dead(store), "t")).difference
    assert found is not None
    assert (found.n, found.step) == (4, "1/think/0")
    found = (await timetravel.replay(dead(store, **upgraded), "t")).difference
    assert found is not None
    assert (found.n, found.step) == (2, "0/think/0")
