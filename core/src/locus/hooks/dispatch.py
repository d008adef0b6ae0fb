"""How hooks are called: one rule for each family. This is all that the loop imports of the hooks.

- decide: a call runs only when no implementation objects, and one that fails objects;
- observe: isolated, called in order, and not called any more after the third failure; a failing guard cancels the run;
- node: of Think, Execute and Terminate the first answer wins; Reflect is all implementations, in order;
- wrap: an async onion around a node, a model call or a tool call.

What comes in and what goes out is reviewed in `locus.hooks.review`. In both modules ``impls`` are the implementations
of the hook in the agent's table, ``run`` is what hooks see of the run, and ``health`` counts what fails in it.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import anyio

from locus.core.directives import Allow, Cancel, Continue, Decision, Interrupt, Reject, Retry
from locus.core.errors import PluginError
from locus.core.events import Event, HookFailedEvent, ToolStartEvent
from locus.core.state import AgentState
from locus.models.prices import dollars
from locus.tools.cancellation import is_failure

if TYPE_CHECKING:
    from collections.abc import Container
    from datetime import datetime

    from locus.core.messages import ToolCall, Usage
    from locus.hooks.context import RunContext
    from locus.hooks.table import HookHealth, Impl
    from locus.models.protocol import Model

T = TypeVar("T")
V = TypeVar("V")
R = TypeVar("R")
Run = TypeVar("Run", bound="RunContext")
Node = TypeVar("Node", bound=str)

Core = Callable[[V], Awaitable[R]]


# -- whose hook is at work ---------------------------------------------------------------------------


# A plugin does not get the events of a model call that it makes itself: it would answer its own question for ever.
# Whose hook is at work is known from the context and from nothing that a hook could pass on wrongly; it is set back
# rather than reset, because a run may be closed in another context.

_CALLER: ContextVar[str] = ContextVar("locus_caller", default="")
_SUPPRESSED: ContextVar[tuple[tuple[object, str], ...]] = ContextVar("locus_suppressed", default=())

#: The plugins that get no events now, each with the run in which that is so.
suppressions = _SUPPRESSED.get


async def as_caller(plugin: str, awaitable: Awaitable[T]) -> T:
    """Await what a plugin's hook returned; with ``""`` what no plugin returned."""
    before = _CALLER.get()
    _CALLER.set(plugin)
    try:
        return await awaitable
    finally:
        _CALLER.set(before)


@contextmanager
def with_suppressions(those: tuple[tuple[object, str], ...]) -> Iterator[None]:
    """Emit now what happened when `suppressions` returned these: they do not get it."""
    before = _SUPPRESSED.get()
    _SUPPRESSED.set(those)
    try:
        yield
    finally:
        _SUPPRESSED.set(before)


@contextmanager
def suppress_own_events(run: object) -> Iterator[None]:
    """Keep the events of the run from the plugin whose hook is at work."""
    plugin, before = _CALLER.get(), _SUPPRESSED.get()
    with with_suppressions((*before, (run, plugin)) if plugin else before):
        yield


# -- one call of one implementation ------------------------------------------------------------------


async def attribute_error(impl: Impl, error: BaseException, health: HookHealth) -> None:
    """Note on a failure which plugin it belongs to, before it goes on up as the error of the node or call.

    Raises:
        PluginError: the failure is not an `Exception`, and would not be taken for an error where it goes.
    """
    if not is_failure(error):
        return
    await health.emit([health.record(impl, error, isolated=False)])
    if not isinstance(error, Exception):
        raise PluginError(impl.plugin, f"{impl.hook} raised {type(error).__name__}: {error}") from error


class InvalidHookResult(TypeError):
    """A hook returned something that is not an answer to its question."""


def refuse_result(answer: object, expected: str) -> NoReturn:
    """Refuse an answer, and say what was expected."""
    shown = repr(answer)
    if isinstance(answer, type):
        shown = f"the class {answer.__name__}, not an instance of it"
    raise InvalidHookResult(f"returned {shown if len(shown) <= 80 else shown[:77] + '...'}; expected {expected}")


async def call_hook(impl: Impl, *arguments: Any) -> Any:
    """The answer of one implementation."""
    answer = impl.call(*arguments)
    if impl.is_async or (answer is not None and hasattr(answer, "__await__")):
        if impl.timeout is not None:
            answer = limit_time(impl.timeout, answer)
        # As `as_caller`, which would be a coroutine more for every call.
        before = _CALLER.get()
        _CALLER.set(impl.plugin)
        try:
            return await answer
        finally:
            _CALLER.set(before)
    return answer


async def ask_isolated(
    impl: Impl, health: HookHealth, accept: Callable[[Any], R], *arguments: Any
) -> R | Cancel | None:
    """The answer of an implementation whose failure does not concern the run, unless it is a guard.

    Returns:
        What ``accept`` made of it, which raises for anything but an answer; `Cancel` when a guard failed; None when
        another one failed, or is not called any more.
    """
    if impl in health.quarantined:
        return None
    try:
        return accept(await call_hook(impl, *arguments))
    except BaseException as e:
        if not is_failure(e):
            raise
        await health.emit([health.record(impl, e, isolated=True)])
        return Cancel(f"guard {impl.plugin} failed") if impl.guard else None


async def limit_time(seconds: float | None, awaitable: Awaitable[Any]) -> Any:
    """The result of an awaitable, unless it takes longer than that.

    Raises:
        TimeoutError: it took longer, and was cancelled.
    """
    if seconds is None:
        return await awaitable
    with anyio.move_on_after(seconds):
        return await awaitable
    raise TimeoutError(f"took longer than its hook_timeout of {seconds:g} s")


# -- decide ------------------------------------------------------------------------------------------


_ALLOW = Allow()
# A rejection is stricter than a question: who answers the question has not seen what was to be rejected.
_DECISIONS: dict[type, int] = {Allow: 0, Interrupt: 1, Reject: 2, Cancel: 3}
_EXPECTED_DECISION = "Allow(), Reject(...), Interrupt(...), Cancel(...), or None to allow"


async def decide_tool_call(
    impls: tuple[Impl, ...], call: ToolCall, run: RunContext, health: HookHealth, *, is_answered: bool = False
) -> Decision:
    """May this call, with the arguments that the body would get, run? All are asked and the strictest answer wins.

    Several questions become one, with the options of the first that has any. Where a person has answered, a question
    counts as answered. One that fails rejects the call. What decides is never quarantined, for that would let
    everything through.
    """
    strictest: Decision = _ALLOW
    failed: list[HookFailedEvent] | None = None
    for impl in impls:
        try:
            decision = _decision(await call_hook(impl, call, run))
        except Interrupt as asked:
            # Raising is how a tool asks; a decider that does the same means the same.
            decision = Interrupt(asked.question, asked.options)
        except BaseException as e:
            if not is_failure(e):
                raise
            failed = failed or []
            failed.append(health.record(impl, e, isolated=False))
            decision = Reject(f"plugin_error: {impl.plugin!r} failed while it decided about this call")
        if isinstance(decision, Interrupt):
            if is_answered:
                continue
            if isinstance(strictest, Interrupt):
                # The answer counts for all of them, so the person reads every reason.
                options = strictest.options or decision.options
                strictest = Interrupt(f"{strictest.question}\n{decision.question}", options)
        if _DECISIONS[type(decision)] > _DECISIONS[type(strictest)]:
            strictest = decision
    await health.emit(failed)
    return strictest


def _decision(answer: Any) -> Decision:
    if answer is None or type(answer) is Continue:
        return _ALLOW
    if type(answer) not in _DECISIONS:
        refuse_result(answer, _EXPECTED_DECISION)
    decision: Decision = answer
    return decision


async def decide_route(
    impls: tuple[Impl, ...],
    node: Node,
    state: AgentState,
    proposed: Node,
    legal: Container[Node],
    health: HookHealth,
) -> Node | Cancel:
    """Where the run goes next: the first other legal node that a hook names, else what the router proposed.

    That is the router's route, which is taken when a hook fails, too; a failing guard cancels. The loop does not ask
    when it is Terminate.
    """

    def other(answer: Any) -> Node | None:
        if answer is None or answer == proposed:
            return None
        if not isinstance(answer, str) or answer not in legal:
            refuse_result(answer, f"None, or a node that can follow {node!s}")
        return type(proposed)(answer)

    for impl in impls:
        route = await ask_isolated(impl, health, other, node, state, proposed)
        if route is not None:
            return route
    return proposed


# -- observe -----------------------------------------------------------------------------------------


_EXPECTED_DIRECTIVE = "None, Continue(), Cancel(...), Retry(...), or Reject(...) of a tool call"
# Reject answers the start of a tool alone, where a guard's refusal must not be undone by another hook's Retry.
_DIRECTIVES: dict[type, int] = {Continue: 0, Retry: 1, Reject: 2, Cancel: 3}


async def notify(
    impls: tuple[Impl, ...], event: Event, run: RunContext, health: HookHealth
) -> Cancel | Retry | Reject | None:
    """Call every listener of an event that was stamped.

    Failures are emitted after all listeners were called, except those of a listener of failures: two observers that
    fail on each other's failures would never stop.

    Returns:
        The strictest directive, or None to go on: Cancel beats Reject beats Retry, the first of equals wins.
    """
    strictest: Any = None
    failed: list[HookFailedEvent] | None = None
    muted = health.quarantined
    muted_now = suppressions()
    culprit = event.plugin if type(event) is HookFailedEvent else None
    for impl in impls:
        if (muted and impl in muted) or impl.plugin == culprit:
            continue
        if muted_now and (run, impl.plugin) in muted_now:
            continue
        try:
            answer = impl.call(event, run)
            if impl.is_async:
                in_time = answer if impl.timeout is None else limit_time(impl.timeout, answer)
                answer = await as_caller(impl.plugin, in_time)
            if answer is None or type(answer) is Continue:
                continue
            directive = await _directive(impl, answer, event)
        except BaseException as e:
            if not is_failure(e):
                raise
            failed = failed or []
            failed.append(health.record(impl, e, isolated=True))
            directive = Cancel(f"guard {impl.plugin} failed") if impl.guard else None
        if directive is not None and (strictest is None or _DIRECTIVES[type(directive)] > _DIRECTIVES[type(strictest)]):
            strictest = directive
    if failed and culprit is None:
        await health.emit(failed)
    verdict: Cancel | Retry | Reject | None = strictest
    return verdict


async def _directive(impl: Impl, answer: Any, event: Event) -> Cancel | Retry | Reject | None:
    """The directive in what an observer returned."""
    if hasattr(answer, "__await__"):
        answer = await as_caller(impl.plugin, limit_time(impl.timeout, answer))
    if answer is None or type(answer) is Continue:
        return None
    if type(answer) not in _DIRECTIVES:
        refuse_result(answer, _EXPECTED_DIRECTIVE)
    if type(answer) is Reject and type(event) is not ToolStartEvent:
        refuse_result(
            answer,
            "not Reject: it answers on_tool_call and on_tool_start only; use Cancel to end the run",
        )
    directive: Cancel | Retry | Reject = answer
    return directive


# -- register ----------------------------------------------------------------------------------------


async def ask_price(
    sources: tuple[Impl, ...], health: HookHealth, model: Model, answered: str, usage: Usage, at: datetime
) -> float | None:
    """The dollars of a model call as the first `PriceSource` has it that knows them; one that fails is skipped."""
    for source in sources:
        cost = await ask_isolated(source, health, dollars, model, answered, usage, at)
        if isinstance(cost, float):
            return cost
    return None


# -- node --------------------------------------------------------------------------------------------


async def first_answer(
    impls: tuple[Impl, ...],
    state: AgentState,
    run: Run,
    default: Callable[[AgentState, Run], Awaitable[AgentState]],
    health: HookHealth,
) -> AgentState:
    """The state that the first implementation returns which does not return None.

    The default is the kernel's own node, called when no hook answers.

    Raises:
        PluginError: an implementation returned something else than a state.
        Exception: what an implementation raised, with a note that names the plugin.
    """
    for impl in impls:
        answer = await _node(impl, state, run, health)
        if answer is not None:
            return answer
    return await default(state, run)


async def fold(impls: tuple[Impl, ...], state: AgentState, run: RunContext, health: HookHealth) -> AgentState:
    """The state after all implementations, each on what the one before made of it; None leaves it as it is.

    Raises:
        PluginError: an implementation returned something else than a state.
        Exception: what an implementation raised, with a note that names the plugin.
    """
    for impl in impls:
        answer = await _node(impl, state, run, health)
        if answer is not None:
            state = answer
    return state


async def _node(impl: Impl, state: AgentState, run: RunContext, health: HookHealth) -> AgentState | None:
    try:
        answer: Any = await call_hook(impl, state, run)
        if answer is not None and not isinstance(answer, AgentState):
            raise PluginError(impl.plugin, f"{impl.hook} returned {answer!r:.80}; return an AgentState, or None")
    except BaseException as e:
        await attribute_error(impl, e, health)
        raise
    state_or_none: AgentState | None = answer
    return state_or_none


# -- wrap --------------------------------------------------------------------------------------------


def onion(
    impls: Sequence[Impl],
    core: Core[V, R],
    *,
    before: tuple[Any, ...] = (),
    after: tuple[Any, ...] = (),
    returns: type[R],
    health: HookHealth,
) -> Core[V, R]:
    """The core with every wrapper around it, the first outermost; the core itself without a wrapper.

    ``before`` is what the hook takes between ``call_next`` and the value: the node. ``after`` is what it takes behind
    the value: the run. A wrapper that returns something else than an instance of ``returns`` has failed.
    """
    for impl in reversed(impls):
        core = _layer(impl, core, before, after, returns, health)
    return core


def _layer(
    impl: Impl,
    inner: Core[V, R],
    before: tuple[Any, ...],
    after: tuple[Any, ...],
    returns: type[R],
    health: HookHealth,
) -> Core[V, R]:
    async def layer(value: V) -> R:
        call_next = _Inner(inner)
        try:
            if impl.timeout is not None:
                result = await _timed_call(impl, call_next, (call_next, *before, value, *after))
            else:
                result = impl.call(call_next, *before, value, *after)
                # A sync wrapper may hand on what call_next gave it.
                if hasattr(result, "__await__"):
                    # As `as_caller`, here and in `_Inner`, without a coroutine more for every layer.
                    caller = _CALLER.get()
                    _CALLER.set(impl.plugin)
                    try:
                        result = await result
                    finally:
                        _CALLER.set(caller)
            if not isinstance(result, returns):
                raise PluginError(impl.plugin, f"{impl.hook} returned {result!r:.80}; return what call_next returned")
        except BaseException as e:
            if e is not call_next.error:
                await attribute_error(impl, e, health)
            raise
        finally:
            call_next.error = None  # an error that is kept must not keep its own traceback alive through this
        wrapped: R = result
        return wrapped

    return layer


class _Inner:
    """What a wrapper gets as ``call_next``: remembers what came out of it, and stops the wrapper's clock."""

    __slots__ = ("_clock", "_inner", "_left", "_under_way", "error")

    def __init__(self, inner: Core[Any, Any]) -> None:
        self._inner = inner
        self._clock: anyio.CancelScope | None = None
        self._left = 0.0
        self._under_way = 0
        self.error: BaseException | None = None

    def clock(self, scope: anyio.CancelScope) -> None:
        """The scope whose deadline is put off while the core is at work."""
        self._clock = scope

    async def __call__(self, value: Any) -> Any:
        clock = self._clock
        if clock is not None:
            if not self._under_way:
                self._left = clock.deadline - anyio.current_time()
                clock.deadline = math.inf
            self._under_way += 1
        caller = _CALLER.get()
        _CALLER.set("")  # what is wrapped is not the wrapper's
        try:
            return await self._inner(value)
        except BaseException as e:
            self.error = e
            raise
        finally:
            _CALLER.set(caller)
            if clock is not None:
                self._under_way -= 1
                if not self._under_way:
                    clock.deadline = anyio.current_time() + self._left


async def _timed_call(impl: Impl, call_next: _Inner, arguments: tuple[Any, ...]) -> Any:
    assert impl.timeout is not None
    with anyio.move_on_after(impl.timeout) as scope:
        call_next.clock(scope)
        answer = impl.call(*arguments)
        return await as_caller(impl.plugin, answer) if hasattr(answer, "__await__") else answer
    raise TimeoutError(f"took longer than its hook_timeout of {impl.timeout:g} s, not counting what it wraps")
