"""`SegmentContext`: one segment of a run while it is alive.

It is what nodes and hooks call ``run``: it emits events, obeys directives, makes steps, charges usage. It owns the
mutable part of a run and nothing else does; the state itself only passes through.

- **Ending is asked for, never done here.** `cancel`, `fail` and a used-up limit set a field; the transition under way
  reads it at its next safe point. The first reason stays. A parent's cancel and deadline count for its children.
- **Limits.** `over_budget` asks the whole condition before a call of the loop's own; `find_exceeded` asks the bounds
  alone before anybody else's, because a goal that is reached there is for the loop to find. Both then ask the account,
  which has what children spend that are under way; the state learns of it only at the end of a node.
- **Charges** wait outside of the state (`uncharged`) until the node's transition takes them up. The transition records
  what it leaves, so that a resume charges each call once.
- **Events** are numbered when they are emitted. What a hook emits while it hears of an event follows it for the
  consumer; what is emitted before the segment has begun is held back until it has.
- **A plugin's calls** are steps named by what they ask, and its own hooks do not hear of them: a judge does not judge
  itself. A call whose answer is in the journal is not charged again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define, evolve, field

from locus.core.directives import Allow, Cancel, Directive, Interrupt, Reject, Retry, cancel_reason
from locus.core.errors import BudgetExceeded, ConditionError, Fenced, ModelError, StepMismatch, StoreError, ThreadBusy
from locus.core.events import (
    CONDITION_ERROR,
    Ending,
    Event,
    HookFailedEvent,
    ModelChunkEvent,
    ModelRestartEvent,
    RunStartEvent,
    stamp,
)
from locus.core.frozen import maker
from locus.core.journal import BLANK
from locus.core.labels import CLEAN, Label, taint
from locus.core.step_id import REVIEW, STEP, THINK, StepId
from locus.hooks.dispatch import (
    ask_price,
    decide_tool_call,
    notify,
    onion,
    suppress_own_events,
    suppressions,
    with_suppressions,
)
from locus.hooks.review import filter_progress, label_result, shorten_result
from locus.hooks.table import HookHealth
from locus.journal.effects import CallerCancel, Clock
from locus.models.call import ChildUsage, hash_request, model_step
from locus.models.protocol import QUARANTINED, ModelRequest, ModelResponse, check_quarantined
from locus.tools.account import Account, child_thread
from locus.tools.context import Stash
from locus.tools.outcome import CallOutcome
from locus.tools.provenance import Literals, trace_call

if TYPE_CHECKING:
    from locus.core.messages import Message, ToolCall, Usage
    from locus.core.state import AgentState
    from locus.core.termination import Bounds, Satisfied
    from locus.hooks.table import Impl
    from locus.journal.host import JournalHost
    from locus.loop.parts import AgentParts
    from locus.models.call import AskPrice, ModelCore
    from locus.models.output import OutputSchema
    from locus.models.protocol import Model, ModelSettings
    from locus.run import Channel
    from locus.tools.call_run import CallLimits
    from locus.tools.registry import ToolRegistry

T = TypeVar("T")
_chunk_event, _request, _step_id = maker(ModelChunkEvent), maker(ModelRequest), maker(StepId)


@define(eq=False)
class _Emission:
    """An event that hooks are called for, and what they have emitted since; None once it was handed over."""

    run: SegmentContext
    later: list[Event] | None = field(factory=list)


_EMITTING: ContextVar[_Emission | None] = ContextVar("locus_emitting", default=None)


@define(eq=False, repr=False)
class SegmentContext:
    """A segment of a run.

    Args:
        runtime: the agent.
        thread_id: the thread.
        deps: what tools get as ``ctx.deps``; never journalled.
        settings, output: of this run, in place of those of the agent.
        parent: the run that started this one as a child, or None.
        account: what this run and those below it have spent; None while nothing limits it and no child spends.
        given: the label of what the run was given to do; only the user's own turn is clean.
    """

    runtime: AgentParts[SegmentContext]
    thread_id: str
    deps: Any = field(default=None, kw_only=True)
    settings: ModelSettings = field(default=None, kw_only=True)
    output: OutputSchema[Any] | None = field(default=None, kw_only=True)
    parent: SegmentContext | None = field(default=None, kw_only=True)
    account: Account | None = field(default=None, kw_only=True)
    given: Label = field(default=CLEAN, kw_only=True)
    #: The journal; set by the segment, once it is claimed.
    host: JournalHost = field(default=None, init=False)
    #: The agent's tools, and those that plugins have brought to this run.
    registry: ToolRegistry = field(init=False)
    #: What the condition guarantees, and how many calls of tools there may be, and how long each.
    bounds: Bounds = field(init=False)
    #: Whether tokens or dollars are limited, here or above.
    is_limited: bool = field(init=False)
    call_limits: CallLimits = field(init=False)
    #: Whether anybody decides about calls, wraps tool bodies, shortens or labels results.
    has_deciders: bool = field(init=False)
    has_tool_wrappers: bool = field(init=False)
    has_result_hooks: bool = field(init=False)
    stash: Stash = field(factory=Stash, init=False)
    health: HookHealth = field(init=False)
    #: The state as last committed, or as the node under way last showed it to hooks.
    state: AgentState = field(default=BLANK, init=False)
    #: The committed state that the router let into Think.
    cleared: AgentState | None = field(default=None, init=False)
    stop: Ending | None = field(default=None, init=False)
    #: Whether the segment goes on with what is in the journal.
    resumed: bool = field(default=False, init=False)
    #: Whether the beginning of the segment was emitted, and its end.
    began: bool = field(default=False, init=False)
    ended: bool = field(default=False, init=False)
    deadline: float | None = field(default=None, init=False)
    #: The fingerprint of what every request of this segment says again, where a history is kept.
    request_fingerprint: str = field(default="", init=False)
    #: How many attempts at the Think under way are void, and why the last one is.
    attempt: int = field(default=0, init=False)
    retry_reason: str = field(default="", init=False)
    #: What plugins reported, by plugin.
    reports: dict[str, Any] = field(factory=dict, init=False)
    clock: Clock = field(init=False)
    #: Cuts off calls of models, and what bodies of tools let it, when the caller cancels.
    caller_cancel: CallerCancel = field(factory=CallerCancel, init=False)
    sink: Channel | None = field(init=False)
    #: The run that started this one, or None.
    parent_run_id: str | None = field(init=False)
    #: Asked often, and mostly answered by no, so it is the look-up itself.
    has_listener: Callable[[type[Event]], object] = field(init=False)
    _listeners: Mapping[type[Event], tuple[Impl, ...]] = field(init=False)
    #: Why the node under way is followed by what follows it, in its own words, or ``""``.
    why: str = field(default="", init=False)
    #: After how many more iterations the segment ends and leaves the run open; 0 = at the next transition.
    iterations_left: float = field(default=inf, init=False)
    #: The numbers of the signals whose work is done when the segment is.
    heard: set[int] = field(factory=set, init=False)
    _cancel: str | None = field(default=None, init=False)
    _retry: bool = field(default=False, init=False)
    _seq: int = field(default=0, init=False)
    #: What is emitted once the segment has begun, each with who does not get it; None when nothing is held back.
    _early: list[tuple[Event, tuple[tuple[object, str], ...]]] | None = field(default=None, init=False)
    #: How often plugins asked each question in the node under way.
    _asked: dict[StepId, int] = field(factory=dict, init=False)
    literals: Literals | None = field(default=None, init=False)
    #: What was charged to the run and is not in its state yet.
    uncharged: Usage | None = field(default=None, init=False)
    _timed: bool = field(init=False)
    _monotonic: Callable[[], float] = field(init=False)
    _mark: float = field(init=False)

    def __attrs_post_init__(self) -> None:
        runtime = self.runtime
        self.settings, self.output = self.settings or runtime.settings, self.output or runtime.output
        self.registry, self.bounds, self._timed = runtime.tools, runtime.budget.bounds, runtime.budget.timed
        bounds = self.bounds
        self.is_limited = self.account is not None or bounds.tokens is not None or bounds.dollars is not None
        self.has_deciders, self.has_tool_wrappers = runtime.has_deciders, runtime.has_tool_wrappers
        self.has_result_hooks, self.call_limits = runtime.has_result_hooks, runtime.call_limits
        self.health = HookHealth(self._emit_failure)
        self._listeners = runtime.hooks.listeners
        self.show_to(self.parent.sink if self.parent is not None else None)
        self.parent_run_id = None if self.parent is None else self.parent.run_id
        self.clock, self._monotonic = runtime.clock, runtime.clock.monotonic
        self._mark = self._monotonic()

    # -- what it is -------------------------------------------------------------------------------

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.host.run_id if self.host is not None else ""

    @property
    def rates(self) -> tuple[AskPrice | None, float | None]:
        """Who knows prices, or None; and what calls without one are charged, dollars per million tokens, or None."""
        sources = self.runtime.hooks.prices
        return partial(ask_price, sources, self.health) if sources else None, self.runtime.budget.unknown_price

    # -- stopping ---------------------------------------------------------------------------------

    @property
    def halted(self) -> bool:
        """Whether nothing more may be started."""
        if self.stop is not None or self._cancel is not None:
            return True
        return self.parent is not None and self.parent.cancelled is not None

    @property
    def cancelled(self) -> str | None:
        """The reason of a cancel that is on its way (maybe empty), or None."""
        if self._cancel is None and self.parent is not None:
            return self.parent.cancelled
        return self._cancel

    @property
    def stop_reason(self) -> str:
        """Why the run is ending, in words for the model and for people."""
        return (self.stop or Ending.from_cancel(self.cancelled)).reason

    def cancel(self, reason: str | None = "") -> None:
        """End the run at the next safe point. Safe to call from any thread."""
        if self._cancel is None:
            self._cancel = cancel_reason(reason)

    def cancel_now(self, reason: str | None = "") -> None:
        """`cancel` as the caller does it: models that are asked now do not finish their answers."""
        self.cancel(reason)
        self.caller_cancel.set()

    def fail(self, state: AgentState, reason: str, error: BaseException) -> AgentState:
        """End the run with an error, unless the condition explains the end better."""
        if not self.over_budget(state):
            self.stop = Ending(reason, error=error)
        return state.with_error(f"{reason}: {error}")

    def over_budget(self, state: AgentState) -> bool:
        """Whether the condition forbids another model call; sets `stop` when it does."""
        if self.stop is not None or self._cancel is not None or (self.parent is not None and self.halted):
            return True
        if state is self.cleared and not self._timed:
            # The router has just asked about this very state, and no clock can have changed the answer.
            return (self.parent or self.account) is not None and self._is_used_up_by_others()
        if self._timed:
            passed = self._monotonic() - self._mark
            state = state.at(updated_at=self.host.effects.now(), active_seconds=state.active_seconds + passed)
        try:
            found: Satisfied | None = self.runtime.router.condition.evaluate(state)
        except (ConditionError, Interrupt) as e:
            self.stop = Ending(CONDITION_ERROR, error=e)
            return True
        if found is not None:
            self.stop = Ending.of(found)
        return found is not None or ((self.parent or self.account) is not None and self._is_used_up_by_others())

    def is_out_of_time(self) -> bool:
        """Whether the time of this run, or of one above it, is used up; sets `stop` then."""
        seconds, parent = self.state.active_seconds + self._monotonic() - self._mark, self.parent
        left = self.runtime.budget.seconds_left(seconds, self.host.effects.now)
        if left is not None and left <= 0:
            return self.over_budget(self.state)
        if parent is None or not parent.is_out_of_time():
            return False
        self.stop = self.stop or Ending.from_others(parent.stop_reason)
        return True

    def find_exceeded(self, more: Usage | None = None) -> str | None:
        """Why a model may not be asked now: the run ends, or its budget is used up. Goals are the loop's matter."""
        if self.halted:
            return self.stop_reason
        account, seconds = self.account, self.state.active_seconds + self._monotonic() - self._mark
        if account is not None:  # it has what children spend that are under way, and all attempts
            tokens, dollars = account.tokens, account.dollars
        else:
            state = self.with_charges(self.state, take=False)
            state = state if more is None else state.with_usage(more)
            tokens, dollars = state.total_tokens_used, state.cost
        found = self.bounds.find_reached(tokens=tokens, seconds=seconds, dollars=dollars)
        return self.stop_reason if found is None and self._is_used_up_by_others() else found

    def _is_used_up_by_others(self) -> bool:
        """Whether a limit forbids another model call that the state does not show to be reached; sets `stop` then."""
        found = None if self.account is None else self.account.find_exceeded()
        if found is None and self.parent is not None and self.parent.is_out_of_time():
            found = self.parent.stop_reason
        if found is not None:
            self.stop = Ending.from_others(found)
        return found is not None

    def take_elapsed(self, before: float = 0.0) -> float:
        """Seconds since the last call of this method; the runner adds them to ``active_seconds``.

        Args:
            before: seconds of work that count as if they were passing now: those before a pause.
        """
        now = self._monotonic()
        passed, self._mark = now - self._mark, now - before
        return passed

    def count_elapsed(self) -> float:
        """What `take_elapsed` would give."""
        return self._monotonic() - self._mark

    def enter_node(self, state: AgentState) -> None:
        """A node begins: what counts within a node starts afresh, so that a resumed node counts the same."""
        self.state, self._asked, self._retry = state, {}, False
        self.attempt, self.retry_reason, self.why = 0, "", ""

    def take_retry(self) -> bool:
        """Whether a hook asked for another try since the last time this was asked."""
        asked, self._retry = self._retry, False
        return asked

    def retries(self, attempt: int) -> bool:
        """Whether a hook asked for another try after the attempt of that number (from 0), now or before a crash."""
        asked, host = self.take_retry(), self.host
        if not asked and not host.retried_steps:
            return False
        step_id = StepId(self.state.iteration, THINK, 0, attempt)
        if step_id in host.retried_steps:
            return True
        if asked:
            host.record_retry(step_id, self.retry_reason)
        return asked

    # -- events -----------------------------------------------------------------------------------

    def show_to(self, sink: Channel | None) -> None:
        """Hand every event to a consumer from now on, or to none any more."""
        self.sink = sink
        self.has_listener = self._listeners.__getitem__ if sink is None else sink.hears(self._listeners)

    def hold_back(self) -> None:
        """Keep events until `begin`: a filter of the prompt causes some before the first one can tell it."""
        self._early = [] if self._early is None else self._early

    async def begin(self, start: RunStartEvent | None) -> None:
        """Tell the first event of the segment, None where it has no listener, and then what was held back."""
        self.began = True
        early, self._early = self._early, None
        if start is not None:
            await self.emit(start)
        for event, those in early or ():
            with with_suppressions(those):
                await self.emit(event)

    async def emit(self, event: Event) -> Directive | None:
        """See `RunContext.emit`; a listener's Cancel and Retry are noted already."""
        if self._early is not None:
            if event.seq or any(each is event for each, _ in self._early):
                raise ValueError(f"this {type(event).__name__} was emitted already; make a new one")
            self._early.append((event, suppressions()))
            return None
        self._stamp(event)
        impls = self._listeners[type(event)]
        if self.sink is None:
            return await self._notify(impls, event) if impls else None
        above = _EMITTING.get()
        if not impls and above is None:
            await self.sink(event)
            return None
        directive, mine = None, _Emission(self)
        if impls:
            _EMITTING.set(mine)
            try:
                directive = await self._notify(impls, event)
            finally:
                _EMITTING.set(above)
        # What hooks emit while they hear of an event comes after it for the consumer, as its number says.
        emitted, mine.later = (event, *(mine.later or ())), None
        if above is not None and above.run is self and above.later is not None:
            above.later += emitted
            return directive
        for each in emitted:
            if self.sink is not None:
                await self.sink(each)
        return directive

    def emit_chunk(self, text: str, kind: str, purpose: str) -> Awaitable[Any]:
        """`emit` a piece of an answer; one for a consumer alone goes there at once, because there are thousands."""
        attempt = self.attempt if purpose == "think" else 0
        event = _chunk_event(text=text, kind=kind, purpose=purpose, attempt=attempt)
        if self.sink is None or self._early is not None or _EMITTING.get() or self._listeners[ModelChunkEvent]:
            return self.emit(event)
        self._stamp(event)
        return self.sink(event)

    def _stamp(self, event: Event) -> None:
        self._seq = seq = self._seq + 1
        host, iteration, stop = self.host, self.state.iteration, self.stop
        if stop is None or not stop.iteration_finished:
            iteration += 1
        stamp(event, (host.run_id, self.thread_id, self.parent_run_id, iteration, host.segment, self.clock.now(), seq))

    async def _emit_failure(self, event: HookFailedEvent) -> None:
        if self.host.stop_error is not None and not self.ended:
            # A hook cannot keep to itself that this worker must not go on.
            raise self.host.stop_error
        await self.emit(event)

    async def _notify(self, impls: tuple[Impl, ...], event: Event) -> Directive | None:
        directive = await notify(impls, event, self, self.health)
        if type(directive) is Cancel:
            self.cancel(directive.reason)
        elif type(directive) is Retry and getattr(event, "purpose", "think") == "think":
            self._retry, self.retry_reason = True, directive.reason
        return directive

    # -- tools ------------------------------------------------------------------------------------

    async def decide(self, call: ToolCall, *, is_answered: bool = False) -> Allow | Reject | Cancel | Interrupt:
        """Ask the deciders about a call; where a person has given it, nothing is asked of a person again."""
        asked = call.with_trace(lambda: trace_call(call, self.registry.get(call.name), self))
        impls = self.runtime.hooks.impls("locus_decide_tool_call")
        return await decide_tool_call(impls, asked, self, self.health, is_answered=is_answered)

    async def label_result(self, call: ToolCall, outcome: CallOutcome, own: Label) -> CallOutcome:
        """The outcome with the label that hooks give it."""
        impls = self.runtime.hooks.impls("locus_label_result")
        return await label_result(impls, call, outcome, own, self, self.health) if impls else outcome

    async def shorten_result(self, text: str, call: ToolCall, limit: int) -> str:
        """What is kept of the text of a result."""
        impls = self.runtime.hooks.impls("locus_shorten_result")
        return await shorten_result(impls, text, call, limit, self, self.health)

    async def filter_progress(self, message: str, call: ToolCall) -> str:
        """What a body says of its progress, as it may be told."""
        impls = self.runtime.hooks.impls("locus_filter_progress")
        return await filter_progress(impls, message, call, self, self.health)

    def wrap_tool_call(
        self, core: Callable[[ToolCall], Awaitable[CallOutcome]]
    ) -> Callable[[ToolCall], Awaitable[CallOutcome]]:
        """The onion around a tool body."""
        impls = self.runtime.hooks.impls("locus_wrap_tool_call")
        return onion(impls, core, after=(self,), returns=CallOutcome, health=self.health)

    def reserve(self, ordinals: Sequence[int]) -> list[Account]:
        """Split what is left among the calls of a turn that may start a child; gives each one's account."""
        if self.account is None:
            self.account = Account().limit(self.bounds)
        self.account.catch_up(self.with_charges(self.state, take=False).usage)
        return self.account.split(self.host, self.state.iteration, ordinals)

    async def run_child(
        self,
        agent: Any,
        prompt: Any,
        budget: Any,
        step_id: StepId,
        account: Account | None,
        answers: Any = None,
        without_guards: Collection[str] = (),
        given: Label = CLEAN,
    ) -> Any:
        """Run or resume a child; its journal is its own thread, named after this one and the step."""
        thread_id = child_thread(self.host, step_id)
        replayed = self.host.find_unchecked(step_id) is not None
        try:
            result = await agent.run_as_child(
                prompt,
                thread_id=thread_id,
                parent=self,
                budget=budget,
                account=account,
                answers=answers,
                without_guards=without_guards,
                given=given,
            )
        except (Fenced, StepMismatch, StoreError, ThreadBusy) as e:
            # The child is left open, and so is its parent: an error of the tool would give the child up. Who holds
            # the thread of a child can only be a worker that held this run as well, and has not noticed its loss.
            self.host.stop(e)
            raise
        if account is not None and not replayed:
            account.catch_up(result.usage)
        if not result.is_open and not replayed:
            self.charge(result.usage)
            await self.host.settle(step_id, ChildUsage(result.usage, thread_id))
        return result

    # -- models -----------------------------------------------------------------------------------

    async def think(self, state: AgentState, given: Message | None = None) -> AgentState:
        """The kernel's own Think, on a state and maybe with an answer that a plugin has found."""
        if given is not None and given.role != "assistant":
            raise ValueError(f"{given!r:.80} is not an answer; give a message with the role assistant")
        return await self.runtime.think(state, self, given)

    def ask(self, messages: tuple[Message, ...], attempt: int) -> Awaitable[tuple[ModelResponse, Usage, bool]]:
        """Think's model call: the answer, the usage of all attempts at it, and whether the journal gave it.

        Raises:
            ModelError: it failed. Its usage so far is charged.
        """
        output = self.output.spec if self.output is not None else None
        request = _request(
            messages=messages, tools=self.registry.specs, settings=self.settings, output=output, deadline=self.deadline
        )
        step_id = _step_id(self.state.iteration, THINK, 0, attempt)
        return model_step(
            self, request, self.runtime.model, step_id=step_id, request_fingerprint=self.request_fingerprint
        )

    async def call_model(
        self, request: ModelRequest, *, model: Model | str | None = None, purpose: str, parent: StepId | None = None
    ) -> ModelResponse:
        """See `RunContext.call_model`; in the body of a step, that is the parent."""
        if purpose == "think":
            raise ValueError("purpose 'think' is the loop's own; name what the call is for")
        check_quarantined(request, purpose)
        if (exceeded := self.find_exceeded()) is not None:
            raise BudgetExceeded(exceeded)
        chosen = self.model_for(model)
        step_id = self.call_id(request, purpose, parent)
        self._asked[evolve(step_id, ordinal=0)] = step_id.ordinal + 1
        with suppress_own_events(self):
            response, usage, replayed = await model_step(self, request, chosen, purpose=purpose, step_id=step_id)
        if not replayed:
            self.charge(usage)
        return response if purpose != QUARANTINED else evolve(response, label=taint(QUARANTINED))

    def model_for(self, model: Model | str | None) -> Model:
        """The model that a plugin means.

        Raises:
            ModelError: nothing is known of a provider of that name.
        """
        if not isinstance(model, str):
            return self.runtime.model if model is None else model
        if self.runtime.resolve is None:
            raise ModelError(f"no provider for {model!r}: pass the model as an object")
        return self.runtime.resolve(model)

    def call_id(self, request: ModelRequest, purpose: str, parent: StepId | None = None) -> StepId:
        """The step of a plugin's call: by what it asks, as a resumed node asks less, and others ask in any order."""
        first = StepId.of_call(self.state.iteration, purpose, hash_request(request), 0, parent)
        return evolve(first, ordinal=self._asked.get(first, 0))

    def model_onion(self, core: ModelCore) -> tuple[ModelCore, bool]:
        """The wrappers around a Think call, or the call itself, and whether one must see the whole answer."""
        hooks = self.runtime.hooks
        wraps = hooks.hooks.get("locus_wrap_model_call")
        if not wraps:
            return core, False
        return onion(wraps, core, after=(self,), returns=ModelResponse, health=self.health), hooks.buffers

    async def emit_restart(self) -> None:
        """Say that what the Think under way has streamed is void."""
        self.attempt += 1
        if self.has_listener(ModelRestartEvent):
            await self.emit(ModelRestartEvent(attempt=self.attempt, reason=self.retry_reason))

    # -- charges, reports, steps ------------------------------------------------------------------

    def charge(self, usage: Usage) -> None:
        """Charge tokens and dollars to the run; they enter the state with the node under way."""
        self.uncharged = usage if self.uncharged is None else self.uncharged + usage

    def with_charges(self, state: AgentState, *, take: bool = True) -> AgentState:
        """The state with what was charged since."""
        usage = self.uncharged
        if usage is None:
            return state
        if take:
            self.uncharged = None
        return state.with_usage(usage)

    def because(self, why: str) -> None:
        """Say why the node under way is followed by what follows it, where the run goes on."""
        self.why = why

    def report(self, plugin: str, value: Any) -> None:
        """Put something into ``AgentResult.reports``; a second report of a plugin replaces the first."""
        self.reports[plugin] = value

    async def step(self, name: str, fn: Callable[[], Awaitable[T]], *, effect: str = "once") -> T:
        """Run an effect once per node; after a crash its recorded result counts."""
        step_id = StepId(self.state.iteration, STEP, name=name)
        result: T = await self.host.step(step_id, fn, effect)  # type: ignore[arg-type]
        return result

    async def hook_step(self, name: str, fn: Callable[[], Awaitable[Any]]) -> Any:
        """A step of the review and filter families."""
        return await self.host.step(StepId(self.state.iteration, REVIEW, name=name), fn, "pure")
