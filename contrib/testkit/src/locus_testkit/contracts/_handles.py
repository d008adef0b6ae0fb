"""Handles of one test on the same place: opened as the test asks for them, and all closed at its end."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import anyio

__all__ = ["close_handle", "opening"]

Handle = TypeVar("Handle")
Shown = TypeVar("Shown")


async def close_handle(handle: object) -> None:
    """Await its ``aclose()`` or call its ``close()``, where it has one."""
    close = getattr(handle, "aclose", None) or getattr(handle, "close", None)
    if close is not None:
        closed = close()
        if inspect.isawaitable(closed):
            await closed


@asynccontextmanager
async def opening(
    place: Path,
    make: Callable[[Path], Handle | Awaitable[Handle]],
    close: Callable[[Handle], Awaitable[None]],
    show: Callable[[Handle], Shown],
) -> AsyncIterator[Callable[[], Awaitable[Shown]]]:
    """Opens handles on a folder; all are closed at the end.

    Args:
        place: the folder, made here.
        make: opens one; may be a coroutine function.
        close: closes one.
        show: what a test gets of one.
    """
    opened: list[Handle] = []
    await anyio.Path(place).mkdir()

    async def one_more() -> Shown:
        made = make(place)
        handle = await made if inspect.isawaitable(made) else made
        opened.append(handle)
        return show(handle)

    yield one_more
    for handle in opened:
        await close(handle)
