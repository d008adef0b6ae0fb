"""What a crash costs: at most one model call is made again, and an answer that stands in the journal stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from locus import Agent, Hook, ModelErrorEvent, Retry, ThinkEvent
from locus.core.errors import ModelError
from locus.core.journal import Body, Outcome, Transition
from locus.core.messages import Message, Role
from locus.journal import MemoryStore
from locus.journal.store import Claim
from locus.models.protocol import ModelRequest
from locus.plugin import Revise, hookimpl
from locus_testkit import InterceptedStore, ScriptedModel

pytestmark = pytest.mark.anyio


class Crash(GeneratorExit):
    """The process is gone."""


class Once(Hook):
    """Has the first answer thrown away, and failures tried again."""

    def on_think(self, event: ThinkEvent, run: Any) -> Retry | None:
        return Retry() if "again" in event.text else None

    def on_model_error(self, event: ModelErrorEvent) -> Retry | None:
        return Retry() if event.retryable else None


async def test_a_crash_in_a_second_attempt_repeats_one_call_and_not_both() -> None:
    def die(request: ModelRequest) -> str:
        raise Crash

    store = MemoryStore()
    model = ScriptedModel("say it again", die, "done")
    agent = Agent(model, hooks=[Once()], checkpointer=store)
    with pytest.raises(Crash):
        await agent.run("x", thread_id="t")

    result = await agent.resume("t")

    assert result.message == "done"
    assert len(model.requests) == 3
    assert result.usage.total_tokens == 30


class Reviewing(Once):
    """Asks the model about the first answer, and sends it back."""

    @hookimpl
    async def locus_review_answer(self, answer: Message, state: Any, run: Any) -> Revise | None:
        if state.revisions:
            return None
        request = ModelRequest(messages=(Message(Role.USER, f"is {answer.text} right?"),))
        return Revise((await run.call_model(request, purpose="review")).message.text)


async def test_an_attempt_that_failed_is_not_made_again_where_a_later_one_has_answered() -> None:
    def die(request: ModelRequest) -> str:
        raise Crash

    store = MemoryStore()
    model = ScriptedModel(ModelError("busy", retryable=True), "an answer", die, "no", "done")
    agent = Agent(model, hooks=[Reviewing()], checkpointer=store)
    with pytest.raises(Crash):
        await agent.run("x", thread_id="t")

    result = await agent.resume("t")

    assert [m.text for m in result.state.messages] == ["x", "an answer", "no", "done"]
    assert result.message == "done"
    assert model.remaining == 0


async def wait(claim: Claim, bodies: Sequence[Body]) -> None:
    """Let others run meanwhile."""
    for _ in range(3):
        await anyio.lowlevel.checkpoint()


class Panel(Hook):
    """Asks several judges at once."""

    @hookimpl
    async def locus_review_answer(self, answer: Message, run: Any) -> None:
        async def judge(n: int) -> None:
            await run.call_model(ModelRequest(messages=(Message(Role.USER, f"judge {n}"),)), purpose="judge")

        async with anyio.create_task_group() as group:
            for n in range(4):
                group.start_soon(judge, n)


async def test_answers_that_come_at_the_same_time_are_all_recorded() -> None:
    store = InterceptedStore({"append": wait})
    model = ScriptedModel("done", "good", "good", "bad", "good")
    await Agent(model, hooks=[Panel()], checkpointer=store).run("x", thread_id="t")

    bodies = [entry.body for entry in await store.read("t")]

    steps = [body.step_id.purpose or body.step_id.node for body in bodies if isinstance(body, Outcome)]
    assert sorted(steps) == ["judge"] * 4 + ["review", "think"]  # and the review itself
    assert sum(isinstance(body, Transition) for body in bodies) == 3
