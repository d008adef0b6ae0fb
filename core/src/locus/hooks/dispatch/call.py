"""One call of one implementation, whichever way it was written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import anyio

from locus.core.directives import Interrupt
from locus.core.errors import PluginError
from locus.hooks.caller import as_caller
from locus.tools.cancellation import is_foreign_cancellation

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from locus.hooks.health import HookHealth
    from locus.hooks.table import Impl

__all__ = ["Nonsense", "ask", "blame", "is_failure", "nonsense", "timed", "within"]


def is_failure(error: BaseException) -> bool:
    """Whether this is a failure of what raised it.

    A cancellation of the run, Ctrl-C and SystemExit are none: they always propagate. A cancellation that a hook
    raised by itself, because it awaited what somebody else had cancelled, is one.
    """
    return isinstance(error, Exception | Interrupt) or is_foreign_cancellation(error)


async def blame(impl: Impl, error: BaseException, health: HookHealth | None) -> None:
    """Note on a failure whose it is, before it goes on up as the error of what the hook was called for.

    Raises:
        PluginError: the failure is no `Exception`, and would not be taken for an error where it goes.
    """
    if not is_failure(error):
        return
    if health is None:
        error.add_note(f"in hook {impl.hook} of plugin {impl.plugin!r}")
    else:
        await health.tell([health.record(impl, error, isolated=False)])
    if not isinstance(error, Exception):
        raise PluginError(impl.plugin, f"{impl.hook} raised {type(error).__name__}: {error}") from error


class Nonsense(TypeError):
    """A hook returned what is no answer to its question."""


def nonsense(answer: object, expected: str) -> NoReturn:
    """Refuse an answer, saying what would have been one."""
    shown = repr(answer)
    if isinstance(answer, type):
        shown = f"the class {answer.__name__}, not an instance of it"
    raise Nonsense(f"returned {shown if len(shown) <= 80 else shown[:77] + '...'}; expected {expected}")


async def ask(impl: Impl, *arguments: Any) -> Any:
    """The answer of one implementation."""
    answer = impl.call(*arguments)
    if impl.is_async:
        return await as_caller(impl.plugin, answer)
    if answer is not None and hasattr(answer, "__await__"):
        return await as_caller(impl.plugin, within(impl.timeout, answer))
    return answer


async def within(seconds: float | None, awaitable: Awaitable[Any]) -> Any:
    """What an awaitable gives, unless it takes longer than that.

    Raises:
        TimeoutError: it took longer, and was cancelled.
    """
    if seconds is None:
        return await awaitable
    with anyio.move_on_after(seconds):
        return await awaitable
    raise TimeoutError(f"took longer than its hook_timeout of {seconds:g} s")


def timed(function: Callable[..., Awaitable[Any]], seconds: float) -> Callable[..., Awaitable[Any]]:
    """An async function that fails when it takes longer than that."""

    async def call(*arguments: Any) -> Any:
        return await within(seconds, function(*arguments))

    return call
