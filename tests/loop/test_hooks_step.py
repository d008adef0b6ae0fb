"""`run.step`: an effect of a plugin happens once in a run, whatever becomes of the process."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from tests.loop.hook_kit import Crash, failures, question
from tests.loop.kit import add, assert_valid_history, confirm, results

from locus import (
    Accept,
    Agent,
    AgentState,
    CheckpointEvent,
    Hook,
    Message,
    RunStartEvent,
    ThinkEvent,
    ToolCompleteEvent,
)
from locus.core.errors import OutcomeUnknown, StepFailed
from locus.core.journal import Intent, Outcome
from locus.core.messages import ToolCall
from locus.journal import MemoryStore
from locus.plugin import RunContext, hookimpl
from locus_kit.reflect import EveryIterations
from locus_kit.snapshots import SnapshotAdapter
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


class Effect(Hook):
    """Has an effect at one point of the run, as a step; and can die before, in or after it.

    ``done`` counts what really happened, ``heard`` what the hook was told came of it.
    """

    name = "effect"

    def __init__(self, at: str, *, effect: str = "once", dies: str = "", fails: bool = False) -> None:
        self.at, self.effect, self.dies, self.fails = at, effect, dies, fails
        self.done: Counter[str] = Counter()
        self.heard: list[Any] = []

    async def act(self, run: RunContext) -> Any:
        async def body() -> dict[str, Any]:
            self.done["effect"] += 1
            if self.dies == "in":
                raise Crash
            if self.fails:
                raise LookupError("no such thing")
            return {"number": self.done["effect"]}

        came = await run.step("effect", body, effect=self.effect)
        self.heard.append(came["number"])
        if self.dies == "after":
            raise Crash
        return came

    async def on_think(self, event: ThinkEvent, run: RunContext) -> None:
        if self.at == "think":
            await self.act(run)

    async def on_tool_complete(self, event: ToolCompleteEvent, run: RunContext) -> None:
        if self.at == "tool_complete":
            await self.act(run)

    async def on_tool_call(self, call: ToolCall, run: RunContext) -> None:
        if self.at == "decide":
            await self.act(run)

    @hookimpl
    async def locus_review_answer(self, run: RunContext) -> Accept:
        if self.at == "review":
            await self.act(run)
        return Accept()

    @hookimpl
    async def locus_wrap_model_call(self, call_next: Any, request: Any, run: RunContext) -> Any:
        if self.at == "wrap":
            await self.act(run)
        return await call_next(request)

    @hookimpl
    def locus_register_reflect_policies(self) -> list[EveryIterations]:
        return [EveryIterations(1)] if self.at == "reflect" else []

    @hookimpl
    async def locus_reflect(self, state: AgentState, run: RunContext) -> AgentState:
        came = await self.act(run)
        return state.with_metadata("effect", came["number"])


def script() -> ScriptedModel:
    """In each turn one call of a tool, then the answer; the same in every process."""
    return ScriptedModel(script=lambda request: [call("add", a=1), "done"], after="cycle")


POINTS = ("think", "tool_complete", "decide", "review", "wrap", "reflect")


@pytest.mark.parametrize("at", POINTS)
@pytest.mark.parametrize("effect", ["once", "keyed", "pure"])
async def test_what_is_on_record_does_not_happen_again(at: str, effect: str) -> None:
    store, hook = MemoryStore(), Effect(at, effect=effect, dies="after")
    agent = Agent(script(), tools=[add], hooks=[hook], checkpointer=store)
    with pytest.raises(Crash):
        await agent.run("x", thread_id="t")
    assert (hook.done["effect"], hook.heard) == (1, [1])
    hook.dies = ""
    result = await agent.resume("t")
    assert (result.stop_reason, result.message, results(result)) == ("NoToolCalls", "done", ["2"])
    assert hook.heard[:2] == [1, 1]  # told again, not done again
    assert hook.done["effect"] == len(set(hook.heard))
    assert failures(result, "effect") == ()


@pytest.mark.parametrize("effect", ["keyed", "pure"])
async def test_an_effect_that_may_be_repeated_is_done_again_after_a_crash_in_the_middle(effect: str) -> None:
    hook = Effect("reflect", effect=effect, dies="in")
    agent = Agent(script(), tools=[add], hooks=[hook], checkpointer=MemoryStore())
    with pytest.raises(Crash):
        await agent.run("x", thread_id="t")
    hook.dies = ""
    result = await agent.resume("t")
    assert (result.message, result.state.metadata["effect"]) == ("done", 2)


async def test_of_an_effect_that_may_happen_once_only_the_outcome_is_unknown_after_a_crash_in_the_middle() -> None:
    hook = Effect("reflect", dies="in")
    agent = Agent(script(), tools=[add], hooks=[hook], checkpointer=MemoryStore())
    with pytest.raises(Crash):
        await agent.run("x", thread_id="t")
    hook.dies = ""
    result = await agent.resume("t")
    # The node cannot go on, and says so; the thread is not stuck.
    assert result.stop_reason == "NodeError"
    assert isinstance(result.error, OutcomeUnknown)
    assert hook.done["effect"] == 1
    assert_valid_history(result.state.messages)
    again = await agent.run("y", thread_id="t")
    assert again.message == "done"


@pytest.mark.parametrize(
    ("at", "reason"), [("think", "NoToolCalls"), ("review", "NoToolCalls"), ("wrap", "ModelError")]
)
async def test_who_cannot_go_on_without_the_outcome_has_failed_like_any_hook(at: str, reason: str) -> None:
    hook = Effect(at, dies="in")
    agent = Agent(script(), tools=[add], hooks=[hook], checkpointer=MemoryStore())
    with pytest.raises(Crash):
        await agent.run("x", thread_id="t")
    hook.dies = ""
    result = await agent.resume("t")
    assert result.stop_reason == reason
    assert "OutcomeUnknown" in failures(result, "effect")[0].error


async def test_a_step_that_failed_stays_failed() -> None:
    store, hook = MemoryStore(), Effect("think", fails=True)

    class Dies(Hook):
        alive = False

        def on_think(self, event: ThinkEvent) -> None:
            if not self.alive:
                raise Crash

    dies = Dies()
    agent = Agent(script(), tools=[add], hooks=[hook, dies], checkpointer=store)
    with pytest.raises(Crash):
        await agent.run("x", thread_id="t")
    dies.alive, hook.fails = True, False
    result = await agent.resume("t")
    assert result.message == "done"
    first = failures(result, "effect")[0]
    assert first.error.startswith(StepFailed.__name__)
    assert "no such thing" in first.error
    assert hook.done["effect"] == 2  # the failed one, and the one of the second Think


async def test_a_step_of_another_node_is_another_step() -> None:
    hook = Effect("think")
    result = await Agent(script(), tools=[add], hooks=[hook]).run("x")
    assert result.message == "done"
    assert hook.heard == [1, 2]


async def test_steps_are_in_the_journal_before_and_after() -> None:
    store = MemoryStore()
    await Agent(script(), tools=[add], hooks=[Effect("reflect")], checkpointer=store).run("x", thread_id="t")
    bodies = [e.body for e in await store.read("t")]
    steps = [b for b in bodies if isinstance(b, Intent | Outcome) and b.step_id.name == "effect"]
    assert [type(s).__name__ for s in steps] == ["Intent", "Outcome"]
    assert len({s.step_id for s in steps}) == 1
    assert steps[1].value == {"number": 1}  # type: ignore[union-attr]


async def test_a_step_without_a_json_form_is_refused_by_a_store_that_needs_one() -> None:
    class Odd(Hook):
        name = "odd"

        async def on_think(self, event: ThinkEvent, run: RunContext) -> None:
            async def body() -> object:
                return object()

            await run.step("odd", body)

    saved: dict[str, str] = {}

    def save(thread_id: str, data: dict[str, Any]) -> None:
        saved[thread_id] = json.dumps(data)

    store = SnapshotAdapter(save, lambda thread_id: json.loads(saved[thread_id]) if thread_id in saved else None)
    result = await Agent(ScriptedModel("hi"), hooks=[Odd()], checkpointer=store).run("x", thread_id="t")
    assert result.message == "hi"
    assert "object" in failures(result, "odd")[0].error


async def test_a_step_may_hold_a_model_call_and_both_are_kept() -> None:
    heard: list[str] = []

    class Both(Hook):
        async def on_think(self, event: ThinkEvent, run: RunContext) -> None:
            async def body() -> str:
                return (await run.call_model(question("x"), purpose="both")).message.text

            heard.append(await run.step("both", body))

    class Dies(Hook):
        alive = False

        def on_think(self, event: ThinkEvent) -> None:
            if not self.alive:
                raise Crash

    dies = Dies()
    model = ScriptedModel("done", "yes")
    agent = Agent(model, hooks=[Both(), dies], checkpointer=MemoryStore())
    with pytest.raises(Crash):
        await agent.run("x", thread_id="t")
    dies.alive = True
    result = await agent.resume("t")
    assert (result.message, heard, len(model.requests)) == ("done", ["yes", "yes"], 2)
    assert result.usage.total_tokens == 30


async def test_an_effect_beside_an_open_question_is_not_repeated_when_it_is_answered() -> None:
    hook = Effect("tool_complete")
    agent = Agent(
        ScriptedModel([call("add", a=1), call("confirm", what="pay")], "done"),
        tools=[add, confirm],
        hooks=[hook],
        tool_execution="sequential",
    )
    asked = await agent.run("x")
    assert hook.done["effect"] == 1
    result = await agent.resume(asked, "yes")
    assert results(result) == ["2", "pay: yes"]
    assert hook.done["effect"] == 1


@pytest.mark.parametrize("at", ["filter", "run_start"])
async def test_a_step_before_the_run_has_begun_belongs_to_that_run_alone(at: str) -> None:
    done: list[str] = []

    class Early(Hook):
        alive = False

        async def act(self, run: RunContext, what: str) -> None:
            async def body() -> str:
                done.append(what)
                return what

            assert await run.step("early", body) == what
            if not self.alive:
                raise Crash

        async def on_run_start(self, event: RunStartEvent, run: RunContext) -> None:
            if at == "run_start" and not event.resumed:
                await self.act(run, event.prompt)

        @hookimpl
        async def locus_filter_input(self, prompt: Message, run: RunContext) -> None:
            if at == "filter":
                await self.act(run, prompt.text)

    early = Early()
    agent = Agent(script(), tools=[add], hooks=[early], checkpointer=MemoryStore())
    with pytest.raises(Crash):
        await agent.run("one", thread_id="t")
    early.alive = True
    first = await agent.run("two", thread_id="t")
    second = await agent.run("three", thread_id="t")
    assert done == ["one", "two", "three"]
    assert (first.message, second.message) == ("done", "done")
    assert failures(second, "Early") == ()
    assert [m.text for m in second.state.messages if m.role == "user"] == ["two", "three"]


async def test_a_step_at_the_very_end_is_done_and_disturbs_no_later_run() -> None:
    done: list[str] = []

    class Late(Hook):
        async def on_checkpoint(self, event: CheckpointEvent, run: RunContext) -> None:
            if event.next_node == "end":

                async def body() -> str:
                    done.append(run.run_id)
                    return run.run_id

                assert await run.step("late", body) == run.run_id

    agent = Agent(script(), tools=[add], hooks=[Late()], checkpointer=MemoryStore())
    first = await agent.run("one", thread_id="t")
    second = await agent.run("two", thread_id="t")
    assert done == [first.run_id, second.run_id]
    assert failures(second, "Late") == ()
