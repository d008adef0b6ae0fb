"""Wrappers: an async onion around a node, a model call or a tool call.

An error that comes out of the core passes through a wrapper as it is; one that the wrapper adds gets a note
that names it, so that nobody is blamed for a provider's bad day.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from locus.core.errors import PluginError
from locus.hooks.caller import as_caller
from locus.hooks.dispatch.call import blame

if TYPE_CHECKING:
    from locus.hooks.health import HookHealth
    from locus.hooks.table import Impl

__all__ = ["onion"]

V = TypeVar("V")
R = TypeVar("R")

Core = Callable[[V], Awaitable[R]]


def onion(
    impls: Sequence[Impl],
    core: Core[V, R],
    *,
    before: tuple[Any, ...] = (),
    after: tuple[Any, ...] = (),
    returns: type[R] | None = None,
    health: HookHealth | None = None,
) -> Core[V, R]:
    """The core with every wrapper around it, the first outermost; the core itself when there is none.

    Args:
        impls: ``table.impls("locus_wrap_...")``.
        core: async, from the value (a state, a request, a call) to the result.
        before: what stands between ``call_next`` and the value in the hook's arguments: the node.
        after: what stands behind the value: the run.
        returns: the class of a result; a wrapper that returns something else has failed.
        health: the run's failures.
    """
    for impl in reversed(impls):
        core = _layer(impl, core, before, after, returns, health)
    return core


def _layer(
    impl: Impl,
    inner: Core[V, R],
    before: tuple[Any, ...],
    after: tuple[Any, ...],
    returns: type[R] | None,
    health: HookHealth | None,
) -> Core[V, R]:
    async def layer(value: V) -> R:
        call_next = _Inner(inner)
        try:
            arguments = (call_next, *before, value, *after)
            result = await (_call(impl, arguments) if impl.timeout is None else _timed(impl, call_next, arguments))
            if returns is not None and not isinstance(result, returns):
                raise PluginError(impl.plugin, f"{impl.hook} returned {result!r:.80}; return what call_next returned")
        except BaseException as e:
            if e is not call_next.escaped:
                await blame(impl, e, health)
            raise
        finally:
            call_next.escaped = None  # an error that is kept must not keep its own traceback alive through this
        wrapped: R = result
        return wrapped

    return layer


class _Inner:
    """What a wrapper gets as ``call_next``: remembers what came out of it, and stops the wrapper's clock."""

    __slots__ = ("_clock", "_inner", "_left", "_running", "escaped")

    def __init__(self, inner: Core[Any, Any]) -> None:
        self._inner = inner
        self._clock: anyio.CancelScope | None = None
        self._left = 0.0
        self._running = 0
        self.escaped: BaseException | None = None

    def clock(self, scope: anyio.CancelScope) -> None:
        """The scope whose deadline stands still while the core is at work."""
        self._clock = scope

    async def __call__(self, value: Any) -> Any:
        clock = self._clock
        if clock is not None:
            if not self._running:
                self._left = clock.deadline - anyio.current_time()
                clock.deadline = math.inf
            self._running += 1
        try:
            return await as_caller("", self._inner(value))  # what is wrapped is not the wrapper's
        except BaseException as e:
            self.escaped = e
            raise
        finally:
            if clock is not None:
                self._running -= 1
                if not self._running:
                    clock.deadline = anyio.current_time() + self._left


async def _call(impl: Impl, arguments: tuple[Any, ...]) -> Any:
    answer = impl.call(*arguments)
    # A sync wrapper may hand on what call_next gave it.
    return await as_caller(impl.plugin, answer) if hasattr(answer, "__await__") else answer


async def _timed(impl: Impl, call_next: _Inner, arguments: tuple[Any, ...]) -> Any:
    assert impl.timeout is not None
    with anyio.move_on_after(impl.timeout) as scope:
        call_next.clock(scope)
        return await _call(impl, arguments)
    raise TimeoutError(f"took longer than its hook_timeout of {impl.timeout:g} s, not counting what it wraps")
