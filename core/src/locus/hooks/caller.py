"""Whose hook is at work: a plugin does not hear of a model call that it makes itself.

It would answer its own question for ever. What is running is known from the context and from nothing that a hook
could pass on wrongly; it is set back rather than reset, because a run may be closed in another context.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

__all__ = ["as_caller", "deaf", "still_deaf", "unheard"]

T = TypeVar("T")

_CALLER: ContextVar[str] = ContextVar("locus_caller", default="")
_DEAF: ContextVar[tuple[tuple[object, str], ...]] = ContextVar("locus_deaf", default=())

#: The plugins that hear nothing now, each with the run in which that is so.
deaf = _DEAF.get


async def as_caller(plugin: str, awaitable: Awaitable[T]) -> T:
    """Await what a plugin's hook returned, or with ``""`` what is nobody's."""
    before = _CALLER.get()
    _CALLER.set(plugin)
    try:
        return await awaitable
    finally:
        _CALLER.set(before)


@contextmanager
def still_deaf(those: tuple[tuple[object, str], ...]) -> Iterator[None]:
    """Tell now what happened when `deaf` gave these: they hear nothing of it."""
    before = _DEAF.get()
    _DEAF.set(those)
    try:
        yield
    finally:
        _DEAF.set(before)


@contextmanager
def unheard(run: object) -> Iterator[None]:
    """Let the plugin whose hook is at work hear no event of the run meanwhile."""
    plugin, before = _CALLER.get(), _DEAF.get()
    with still_deaf((*before, (run, plugin)) if plugin else before):
        yield
