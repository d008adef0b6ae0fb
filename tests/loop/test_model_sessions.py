"""What the calls of a model share lives as long as a segment of a run: no longer, however that ends."""

from __future__ import annotations

import gc
import warnings
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tests.loop.kit import interrupting

from locus import Agent, ToolStartEvent
from locus.core.errors import LocusError
from locus.journal import MemoryStore
from locus.models.protocol import ModelRequest, ModelResponse, OnChunk
from locus.tools import ToolContext
from locus_testkit import ScriptedModel, call, never

pytestmark = pytest.mark.anyio


class Connecting:
    """A model that counts its sessions, and those that were open when it was asked."""

    name = "test:connecting"

    def __init__(self, *turns: Any, leaving: BaseException | None = None) -> None:
        self.script = ScriptedModel(*turns)
        self.opened = self.open = 0
        self.leaving = leaving
        self.during: list[int] = []

    def session(self) -> AbstractAsyncContextManager[object]:
        return self._session()

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[None]:
        self.opened += 1
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1
            await anyio.lowlevel.checkpoint()
            if self.leaving is not None:
                raise self.leaving

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        self.during.append(self.open)
        return await self.script.complete(request, on_chunk)


def look() -> str:
    """Look."""
    return "seen"


async def test_all_calls_of_a_run_are_made_in_one_session() -> None:
    model = Connecting(call("look"), call("look"), "Done.")
    result = await Agent(model, tools=[look]).run("Go.")
    assert result.text == "Done."
    assert (model.opened, model.open, model.during) == (1, 0, [1, 1, 1])


async def test_the_session_ends_when_the_run_fails() -> None:
    model = Connecting(LookupError("no"))
    result = await Agent(model).run("Go.")
    assert result.stop_reason == "ModelError"
    assert (model.opened, model.open) == (1, 0)


async def test_the_session_ends_when_the_caller_is_cancelled() -> None:
    with anyio.CancelScope() as scope:
        model = Connecting(interrupting(scope))
        await Agent(model).run("Go.")
    assert (model.opened, model.open, model.during) == (1, 0, [1])


async def test_the_session_ends_when_nobody_listens_any_more() -> None:
    model = Connecting(call("look"), never)
    async with Agent(model, tools=[look]).run("Go.") as run:
        async for event in run:
            if isinstance(event, ToolStartEvent):
                break
    assert (model.opened, model.open) == (1, 0)


async def test_each_segment_has_a_session_of_its_own() -> None:
    def ask(ctx: ToolContext[None]) -> str:
        """Ask a person."""
        return f"They say {ctx.interrupt('Well?')}"

    model = Connecting(call("ask"), "Done.")
    agent: Agent[None, Any] = Agent(model, tools=[ask], checkpointer=MemoryStore())
    first = await agent.run("Go.", thread_id="t")
    assert first.interrupts
    assert (model.opened, model.open) == (1, 0)
    assert (await agent.resume("t", "yes")).text == "Done."
    assert (model.opened, model.open) == (2, 0)


async def test_a_child_has_a_session_beside_that_of_its_parent() -> None:
    model = Connecting(call("delegate"), "child", "parent")
    child: Agent[Any, Any] = Agent(model)

    async def delegate(ctx: ToolContext[None]) -> str:
        """Let another one do it."""
        return str((await ctx.run_child(child, "Do it.")).text)

    result = await Agent(model, tools=[delegate]).run("Go.")
    assert result.text == "parent"
    assert model.during == [1, 2, 1]
    assert model.open == 0


@pytest.mark.parametrize("leaving", [OSError("cannot close"), LocusError("cannot close")])
async def test_a_session_that_cannot_be_left_changes_nothing(leaving: Exception) -> None:
    model = Connecting("Done.", leaving=leaving)
    assert (await Agent(model).run("Go.")).text == "Done."


async def test_a_session_that_takes_too_long_to_leave_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locus.loop.segment.SHIELD", 0.05)

    class Stuck(Connecting):
        @asynccontextmanager
        async def _session(self) -> AsyncIterator[None]:
            yield
            await anyio.sleep_forever()

    with anyio.fail_after(5):
        assert (await Agent(Stuck("Done.")).run("Go.")).text == "Done."


async def test_a_session_that_cannot_be_entered_ends_the_run_and_frees_the_thread() -> None:
    class Refusing(Connecting):
        def session(self) -> AbstractAsyncContextManager[object]:
            raise LookupError("no session")

    store = MemoryStore()
    with pytest.raises(LookupError, match="no session"):
        await Agent(Refusing(), checkpointer=store).run("Go.", thread_id="t")
    assert (await Agent(ScriptedModel("Done."), checkpointer=store).run("Go.", thread_id="t")).text == "Done."


def test_a_run_that_is_dropped_outside_of_any_event_loop_makes_no_noise() -> None:
    model = Connecting(never)
    coroutine = Agent(model).run("Go.").__await__()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        coroutine.close()
        gc.collect()
    assert model.open == 0
