"""Nodes: for Think, Execute and Terminate the first answer wins; Reflect is everybody's, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from locus.core.errors import PluginError
from locus.core.state import AgentState
from locus.hooks.dispatch.call import ask, blame

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from locus.hooks.context import RunContext
    from locus.hooks.health import HookHealth
    from locus.hooks.table import Impl

Run = TypeVar("Run", bound="RunContext")

__all__ = ["first_answer", "fold"]


async def first_answer(
    impls: tuple[Impl, ...],
    state: AgentState,
    run: Run,
    default: Callable[[AgentState, Run], Awaitable[AgentState]] | None = None,
    health: HookHealth | None = None,
) -> AgentState:
    """The state that the first implementation returns which does not return None.

    Args:
        impls: ``table.impls("locus_think")``, ``"locus_execute"`` or ``"locus_terminate"``.
        state: the state.
        run: the run.
        default: the kernel's own node, asked when nobody answers; None where it is among ``impls``.
        health: the run's failures.

    Raises:
        PluginError: an implementation returned something else than a state, or nobody answered.
        Exception: what an implementation raised, with a note that names the plugin.
    """
    for impl in impls:
        answer = await _node(impl, state, run, health)
        if answer is not None:
            return answer
    if default is not None:
        return await default(state, run)
    raise PluginError("", "nobody answered; the kernel's own node must be the last implementation")


async def fold(
    impls: tuple[Impl, ...], state: AgentState, run: RunContext, health: HookHealth | None = None
) -> AgentState:
    """The state after all implementations, each on what the one before made of it; None leaves it as it is.

    Args:
        impls: ``table.impls("locus_reflect")``.
        state: the state.
        run: the run.
        health: the run's failures.

    Raises:
        PluginError: an implementation returned something else than a state.
        Exception: what an implementation raised, with a note that names the plugin.
    """
    for impl in impls:
        answer = await _node(impl, state, run, health)
        if answer is not None:
            state = answer
    return state


async def _node(impl: Impl, state: AgentState, run: RunContext, health: HookHealth | None) -> AgentState | None:
    try:
        answer: Any = await ask(impl, state, run)
        if answer is not None and not isinstance(answer, AgentState):
            raise PluginError(impl.plugin, f"{impl.hook} returned {answer!r:.80}; return an AgentState, or None")
    except BaseException as e:
        if impl.plugin:
            await blame(impl, e, health)
        raise
    state_or_none: AgentState | None = answer
    return state_or_none
