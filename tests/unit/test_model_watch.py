"""The time limit of a model call on asyncio: one timer for all calls, and no cancellation of anybody else is lost."""

from __future__ import annotations

import asyncio
import gc
import weakref

import anyio
import pytest

from locus.journal.effects import CallerCancel, WatchedCall

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def watch_call(seconds: float) -> WatchedCall | None:
    cancel = CallerCancel()
    return cancel.watch(cancel.enter(), seconds)


async def hang() -> None:
    await asyncio.get_running_loop().create_future()


async def test_a_call_is_cancelled_when_its_time_is_up_and_the_task_goes_on() -> None:
    task = asyncio.current_task()
    assert task is not None
    call = watch_call(0.01)
    assert call is not None
    with pytest.raises(asyncio.CancelledError):
        await hang()
    assert call.leave() is True
    assert task.cancelling() == 0
    await asyncio.sleep(0)


async def test_a_call_that_swallows_its_cancellation_is_cancelled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locus.journal.effects._AGAIN", 0.01)
    call, swallowed = watch_call(0.01), 0
    assert call is not None
    while swallowed < 3:
        try:
            await hang()
        except asyncio.CancelledError:
            swallowed += 1
    assert call.leave() is True
    await asyncio.sleep(0)


async def test_a_cancellation_by_somebody_else_counts_as_theirs() -> None:
    task = asyncio.current_task()
    assert task is not None
    call = watch_call(0.01)
    assert call is not None
    with pytest.raises(asyncio.CancelledError):
        await hang()
    task.cancel()
    assert call.leave() is False
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(0)
    assert task.uncancel() == 0  # from 3.13 on, this takes back what is still to come


async def test_of_two_calls_the_one_with_less_time_is_cancelled_first_whichever_began_first() -> None:
    ended: list[str] = []

    async def ask(name: str, seconds: float) -> None:
        call = watch_call(seconds)
        assert call is not None
        try:
            await hang()
        except asyncio.CancelledError:
            assert call.leave()
            ended.append(name)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(ask, "long", 0.05)
            group.start_soon(ask, "short", 0.01)
    assert ended == ["short", "long"]


def test_a_loop_that_is_closed_is_kept_by_nobody() -> None:
    async def main() -> weakref.ref[asyncio.AbstractEventLoop]:
        call = watch_call(600)
        assert call is not None
        assert call.leave() is False
        return weakref.ref(asyncio.get_running_loop())

    kept = asyncio.run(main())
    gc.collect()
    assert kept() is None
