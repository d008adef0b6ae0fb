"""From what pluggy accepted to what the loop calls: positional, complete, and resolved once.

An implementation may name any of its hook's arguments, in any order; the adapter that makes up the
difference is chosen here, and there is none where the names already agree.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from pluggy import HookImpl

from locus.core.errors import HookSpecError, closest
from locus.core.frozen import frozen
from locus.hooks.adapt import Adapted
from locus.hooks.dispatch.call import timed
from locus.hooks.names import observer_hook
from locus.hooks.specs import HookInfo
from locus.hooks.table import Impl

__all__ = ["Owner", "compile_impl"]

_CHUNKS = observer_hook("model_chunk")
_KINDS = inspect.Parameter


@frozen(kw_only=True)
class Owner:
    """Whose hook objects these are, and what holds for all of them.

    Args:
        name: as in reports.
        place: where it stands among all, counted from 0.
        guard: fails closed.
        timeout: seconds, or None.
        buffers: see `Impl`.
        kernel: the kernel's own nodes, which come last whatever is marked.
    """

    name: str
    place: int = 0
    guard: bool = False
    timeout: float | None = None
    buffers: bool = False
    kernel: bool = False


def compile_impl(info: HookInfo, impl: HookImpl, owner: Owner, index: int) -> Impl:
    """One implementation, ready to be called.

    Args:
        info: the hook's specification.
        impl: pluggy's record; its ``plugin`` is an `Adapted`.
        owner: whose it is.
        index: of the hook object among its owner's.

    Raises:
        HookSpecError: it is a generator, or async where only sync works, or takes what the hook does not give.
    """
    adapted: Adapted = impl.plugin  # type: ignore[assignment]
    shown = adapted.shown[info.name]
    method, takes = adapted.direct.get(info.name, (None, 0))
    function = impl.function if method is None else method
    _refuse_generators(function if info.family == "session" else inspect.unwrap(function), shown, owner.name)
    is_async = _is_async(function)
    if is_async and info.name == _CHUNKS:
        raise HookSpecError(owner.name, f"{shown} is async; who hears chunks must be sync, for one is called per token")
    if is_async and info.family == "register":
        raise HookSpecError(owner.name, f"{shown} is async; it is called while an agent is built and must be sync")
    if is_async and info.family == "session":
        raise HookSpecError(
            owner.name,
            f"{shown} is async; it returns an async context manager: make it one with contextlib.asynccontextmanager",
        )
    if method is None:
        call = positional(function, info, shown, owner.name)
    else:
        call = function if takes == 2 else _first(function)
    source = adapted.source
    own_timeout = getattr(source, "hook_timeout", None)
    timeout = _seconds(own_timeout if own_timeout is not None else owner.timeout, owner.name)
    if timeout is not None and is_async and info.family != "wrap":
        call = timed(call, timeout)
    rank = 3 if owner.kernel else 0 if impl.tryfirst else 2 if impl.trylast else 1
    return Impl(
        call=call,
        plugin=owner.name,
        hook=info.name,
        guard=owner.guard or getattr(source, "guard", False) is True,
        is_async=is_async,
        timeout=timeout,
        buffers=owner.buffers or getattr(source, "buffers", False) is True,
        order=(rank, owner.place, index),
    )


def _refuse_generators(function: Callable[..., Any], shown: str, name: str) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise HookSpecError(
            name,
            f"{shown} is a generator; write a plain function, and use locus_wrap_... to put code around something, "
            "or locus_run_session with contextlib.asynccontextmanager to hold something open",
        )


def _is_async(function: Callable[..., Any]) -> bool:
    # `unwrap` would look through a sync decorator at the async function behind it: what counts is what is called.
    called = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    return inspect.iscoroutinefunction(called)


def _seconds(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise HookSpecError(name, f"hook_timeout is {value!r}; it is a number of seconds above 0, or None")
    return float(value)


def positional(function: Callable[..., Any], info: HookInfo, shown: str, name: str) -> Callable[..., Any]:
    """A callable that takes all of a hook's arguments by position and passes on the ones that were named.

    Raises:
        HookSpecError: the function takes something that the hook does not give.
    """
    gives = info.arguments
    by_place: list[int] = []
    by_name: dict[str, int] = {}
    skipped = False  # a parameter keeps its default, so those behind it must be passed by name
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (_KINDS.VAR_POSITIONAL, _KINDS.VAR_KEYWORD):
            raise HookSpecError(name, f"{shown} takes {parameter}; name what it wants of ({', '.join(gives)})")
        if parameter.name in gives:
            if skipped or parameter.kind is _KINDS.KEYWORD_ONLY:
                by_name[parameter.name] = gives.index(parameter.name)
            else:
                by_place.append(gives.index(parameter.name))
        elif parameter.default is _KINDS.empty:
            near = closest(parameter.name, gives)
            hint = f"; did you mean {near!r}?" if near else ""
            raise HookSpecError(name, f"{shown} wants {parameter.name!r}; the hook gives ({', '.join(gives)}){hint}")
        else:
            skipped = True
    return _adapter(function, len(gives), by_place, by_name)


def _adapter(
    function: Callable[..., Any], given: int, by_place: list[int], by_name: dict[str, int]
) -> Callable[..., Any]:
    if not by_name and by_place == list(range(given)):
        return function
    if not by_name and given == 2 and by_place == [0]:
        return _first(function)

    def call(*arguments: Any) -> Any:
        named = {name: arguments[i] for name, i in by_name.items()}
        return function(*[arguments[i] for i in by_place], **named)

    return call


def _first(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(first: Any, _: Any) -> Any:
        return function(first)

    return call
