"""A child whose run was overtaken: a worker that has not noticed may go on with it, and end it, at any moment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.loop.kit import add, results

from locus import Agent, ToolContext, tool
from locus.core.journal import START, Transition
from locus.journal import MemoryStore
from locus.journal.store import JournalStore
from locus_testkit import InterceptedStore, ScriptedModel, call

pytestmark = pytest.mark.anyio


def then(store: InterceptedStore, other: Callable[[str], Awaitable[object]]) -> None:
    """Let the other worker do this when somebody has looked."""

    async def once(thread_id: str) -> None:
        store.after.clear()
        await other(thread_id)

    store.after["peek"] = once


def parent(child: Agent[Any, Any], store: JournalStore) -> tuple[Agent[Any, Any], ScriptedModel]:
    @tool(effect="keyed")
    async def delegate(ctx: ToolContext[Any]) -> str:
        """Have somebody else do it."""
        return str((await ctx.run_child(child, "y")).message)

    model = ScriptedModel(call("delegate"), "it is two")
    return Agent(model, tools=[delegate], checkpointer=store), model


async def test_a_child_that_was_begun_meanwhile_is_gone_on_with_and_not_begun_again() -> None:
    theirs = InterceptedStore()
    models = ScriptedModel(call("add", a=1), "two")
    child = Agent(models, tools=[add], checkpointer=theirs)

    async def begin(thread_id: str) -> None:
        run = child.run("y", thread_id=thread_id)
        async for event in run:
            if event.type == "think":
                await run.aclose()

    then(theirs, begin)
    agent, _ = parent(child, MemoryStore())

    result = await agent.run("x")

    assert (results(result), result.message) == (["two"], "it is two")
    [thread] = await theirs.threads()
    bodies = [entry.body for entry in await theirs.read(thread.thread_id)]
    assert sum(isinstance(body, Transition) and body.node == START for body in bodies) == 1
    assert len(models.requests) == 2


async def test_a_child_that_was_ended_meanwhile_has_ended() -> None:
    theirs = InterceptedStore()
    models = ScriptedModel(call("add", a=1), "two")
    child = Agent(models, tools=[add], checkpointer=theirs)
    agent, _ = parent(child, MemoryStore())

    async def run(thread_id: str) -> None:
        await child.run("y", thread_id=thread_id)

    then(theirs, run)

    result = await agent.run("x")

    assert (results(result), result.message) == (["two"], "it is two")
    assert models.remaining == 0
    assert result.usage.total_tokens == 60
