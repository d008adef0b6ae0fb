"""A run that nobody awaits warns, as a coroutine does."""

from __future__ import annotations

import asyncio
import gc
import inspect
import warnings
from typing import Any

import pytest

from locus import Agent
from locus.journal import MemoryStore
from locus_testkit import ScriptedModel


def agent(**options: Any) -> Agent:
    return Agent(ScriptedModel("Hi.", after="repeat"), **options)


def caught() -> warnings.catch_warnings[list[warnings.WarningMessage]]:
    return warnings.catch_warnings(record=True)


def line() -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def test_a_run_that_is_dropped_warns_and_says_where_it_was_made() -> None:
    with caught() as said:
        warnings.simplefilter("always")
        made = line() + 1
        agent().run("x")
        gc.collect()
    (warning,) = said
    assert warning.category is RuntimeWarning
    assert "Agent.run() was never awaited, so nothing was run; write `await agent.run(...)`" in str(warning.message)
    assert (warning.filename, warning.lineno) == (__file__, made)


def test_a_resume_that_is_dropped_warns_too() -> None:
    with caught() as said:
        warnings.simplefilter("always")
        agent(checkpointer=MemoryStore()).resume("t")
        gc.collect()
    assert ["Agent.resume() was never awaited" in str(warning.message) for warning in said] == [True]


async def _awaited() -> None:
    await agent().run("x")


async def _iterated() -> None:
    async for _ in agent().run("x"):
        break


async def _entered() -> None:
    async with agent().run("x") as run:
        async for _ in run:
            pass


async def _left_to_a_task() -> None:
    await asyncio.create_task(agent().run("x"))


async def _cancelled_before_it_began() -> None:
    task = asyncio.create_task(agent().run("x"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def _closed() -> None:
    agent().run("x").close()


@pytest.mark.parametrize(
    "use",
    [_awaited, _iterated, _entered, _left_to_a_task, _cancelled_before_it_began, _closed],
    ids=lambda use: use.__name__,
)
def test_a_run_that_is_used_does_not_warn(use: Any) -> None:
    with caught() as said:
        warnings.simplefilter("always")
        asyncio.run(use())
        agent().run_sync("x")
        gc.collect()
    assert [str(warning.message) for warning in said if "never awaited" in str(warning.message)] == []
