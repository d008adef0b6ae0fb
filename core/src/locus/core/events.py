"""Every event of the kernel: frozen, deep-frozen inside, with a JSON form that round-trips.

A plugin's own events derive from `Event` too and decode like these once `register_event` knows them. The
envelope (`run_id` to `parent_run_id`) is filled in by `run.emit`; code that makes an event gives only its payload.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from attrs import field

from locus.core.data import tag_of
from locus.core.directives import Choice
from locus.core.errors import CheckpointError, StepFailed
from locus.core.frozen import EMPTY, FrozenDict, fast_init, freeze, frozen
from locus.core.lazy import Lazy
from locus.core.messages import ANSWER_FAULTS, RawBlock, ToolCall, Usage

if TYPE_CHECKING:
    from locus.core import codec
    from locus.core.termination import Satisfied
else:
    codec = Lazy("locus.core.codec")

__all__ = [
    "EPOCH",
    "CheckpointEvent",
    "Ending",
    "Event",
    "HookFailedEvent",
    "InterruptEvent",
    "IterationEvent",
    "ModelChunkEvent",
    "ModelCompleteEvent",
    "ModelErrorEvent",
    "ModelRestartEvent",
    "ReflectEvent",
    "RunStartEvent",
    "TerminateEvent",
    "ThinkEvent",
    "ToolCacheHitEvent",
    "ToolCompleteEvent",
    "ToolProgressEvent",
    "ToolStartEvent",
    "event_from_json",
    "event_to_json",
    "event_types",
    "register_event",
]

#: The timestamp of an event that was not emitted yet.
EPOCH = datetime.fromtimestamp(0, UTC)

#: The run waits for the answer to a question.
INTERRUPTED = "Interrupted"
#: The segment made room for others, or the run sleeps; the run is left open.
YIELDED = "Yielded"
#: A plugin led the run to its end.
DIVERTED = "Diverted"
#: This worker could not go on; the run is left open.
JOURNAL_ERROR = "JournalError"

MODEL_ERROR = "ModelError"
NODE_ERROR = "NodeError"
CONDITION_ERROR = "ConditionError"

_CANCELLED = "Cancelled"
_OTHERS = "used up together with what other runs of the tree have spent"
_FAILURES = frozenset({MODEL_ERROR, NODE_ERROR, CONDITION_ERROR})


@frozen
class Ending:
    """Why a run, or a segment of one, ended. Texts of reasons are written and compared here and nowhere else.

    A reason is the name of what ended the run: a condition (``"NoToolCalls"``, ``"ToolCalled AND ConfidenceMet"``), a
    plugin's diversion, an error's kind, what is wrong with the answer, a cancel with what its caller gave as the
    reason, or a question to a person. It is text because events and journals record it, and the conditions of plugins
    have names that cannot be listed here.

    Args:
        reason: as in `TerminateEvent`.
        satisfied: the names of the condition's leaves that decided.
        detail: the numbers behind it, for people.
        error: what went wrong, or None.
        iteration_finished: it ended where Think would have run again: `AgentState.iteration`, the number of finished
            iterations, is the number of those that were begun.
    """

    reason: str
    satisfied: tuple[str, ...] = ()
    detail: str = ""
    error: BaseException | None = field(default=None, eq=False)
    iteration_finished: bool = False

    @classmethod
    def of(cls, found: Satisfied, *, iteration_finished: bool = False) -> Ending:
        """The ending of a run whose condition is satisfied."""
        return cls(found.reason, found.leaves, found.detail, iteration_finished=iteration_finished)

    @classmethod
    def from_cancel(cls, reason: str | None = "", error: BaseException | None = None) -> Ending:
        """``"Cancelled"``, followed by the caller's reason when there is one."""
        return cls(f"{_CANCELLED}: {reason}" if reason else _CANCELLED, (_CANCELLED,), error=error)

    @classmethod
    def from_others(cls, limit: str) -> Ending:
        """The ending of a run for a limit that other runs of its tree used up: its own state does not show that."""
        return cls(limit, (limit,), _OTHERS)

    @property
    def is_from_others(self) -> bool:
        """Whether it is such an ending."""
        return self.detail == _OTHERS

    @property
    def is_cancelled(self) -> bool:
        """Whether the run was ended from outside."""
        return self.reason == _CANCELLED or self.reason.startswith(f"{_CANCELLED}: ")

    @property
    def is_interrupted(self) -> bool:
        """Whether the run waits for the answer to a question."""
        return self.reason == INTERRUPTED

    @property
    def is_failure(self) -> bool:
        """Whether something went wrong: an error, or an answer that cannot be used.

        A limit or a cancel is not a failure.
        """
        return self.reason in _FAILURES or self.has_answer_fault

    @property
    def has_answer_fault(self) -> bool:
        """Whether the run ended with an answer that is cut, filtered, refused, empty, or not what was asked for."""
        return any(leaf in ANSWER_FAULTS for leaf in self.satisfied)

    @property
    def error_text(self) -> str | None:
        """The error as events and journals show it; None without one."""
        if self.error is None:
            return None
        # One that was read from the journal is shown as it was recorded.
        return str(self.error) if isinstance(self.error, StepFailed) else f"{type(self.error).__name__}: {self.error}"


@frozen(kw_only=True)
class Event:
    """What every event carries.

    Args:
        run_id: the run it belongs to.
        thread_id: the thread of that run.
        parent_run_id: the run that started this one as a child, or None.
        iteration: the iteration it belongs to, counted from 1.
        segment: which call of ``run`` or ``resume`` this is, counted from 0.
        seq: position within the segment, counted from 1; 0 means not emitted.
        timestamp: UTC, when it was emitted.
        replayed: it shows what is in the journal; nothing happened now.
    """

    type: ClassVar[str] = "event"

    run_id: str = ""
    thread_id: str = ""
    parent_run_id: str | None = None
    iteration: int = 0
    segment: int = 0
    seq: int = 0
    timestamp: datetime = EPOCH
    replayed: bool = False

    @property
    def event_id(self) -> str:
        """Unique over all runs. Events without a listener are not made and not counted."""
        return f"{self.run_id}/{self.segment}/{self.seq}"


_TYPES: dict[str, type[Event]] = {}
E = TypeVar("E", bound=type[Event])


def register_event(cls: E) -> E:
    """Make an event class decodable; usable as a decorator. Its `type` is its name in snake case, less "Event".

    Raises:
        ValueError: another class has the same `type`.
    """
    if "type" not in cls.__dict__:
        cls.type = tag_of(cls, "Event")
    known = _TYPES.get(cls.type)
    if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ValueError(f"the event type {cls.type!r} is taken by {known.__module__}.{known.__qualname__}")
    _TYPES[cls.type] = cls
    return cls


def event_types() -> dict[str, type[Event]]:
    """The registered event classes by type tag."""
    return dict(_TYPES)


def event_to_json(event: Event) -> dict[str, Any]:
    """A plain, JSON-safe dict with the event's type tag."""
    cls = type(event)
    if cls not in _TAGGED:
        codec.register_tagged(cls, cls.type)
        _TAGGED.add(cls)
    form: dict[str, Any] = codec.converter.unstructure(event, cls)
    return form


def event_from_json(form: dict[str, Any]) -> Event:
    """The event that `event_to_json` was given.

    Raises:
        CheckpointError: no registered event has that type, or the form is damaged.
    """
    tag = form.get("type") if isinstance(form, dict) else None
    if not isinstance(tag, str) or tag not in _TYPES:
        raise CheckpointError("type", f"unknown event type {tag!r}; import the plugin that defines it")
    return codec.decode({k: v for k, v in form.items() if k != "type"}, _TYPES[tag])


# Generating a converter takes about a millisecond a class: done at the first use, not at import.
_TAGGED: set[type[Event]] = set()


@register_event
@frozen(kw_only=True)
class RunStartEvent(Event):
    """A segment of a run begins.

    Args:
        prompt: the text of the user's turn; empty when the run is resumed.
        resumed: this segment continues an open run.
        plugins: ``name -> version`` of the active plugins.
    """

    prompt: str = ""
    agent_id: str | None = None
    model: str = ""
    resumed: bool = False
    plugins: FrozenDict[str, str] = field(default=EMPTY, converter=freeze)


@register_event
@frozen(kw_only=True)
class IterationEvent(Event):
    """An iteration begins, right before its model call.

    Args:
        token_total: tokens the run has used so far.
        cost: dollars the run has spent so far, where prices are known.
    """

    token_total: int = 0
    cost: float = 0.0


@register_event
@frozen(kw_only=True)
class ThinkEvent(Event):
    """Think has an answer.

    Args:
        reasoning: what the provider exposed of the model's reasoning, or None.
        text: the text of the answer.
        tool_calls: the calls it asks for.
        hosted: what is written in the provider's own form: the calls of tools that the provider runs, such as a web
            search, and their results.
    """

    reasoning: str | None = None
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = field(default=(), converter=tuple[ToolCall, ...])
    hosted: tuple[RawBlock, ...] = field(default=(), converter=tuple[RawBlock, ...])


@register_event
@fast_init
@frozen(kw_only=True)
class ModelChunkEvent(Event):
    """A piece of the answer as it streams; transient, never journalled.

    Args:
        kind: ``"text"``, ``"reasoning"`` or ``"tool_call"`` (a piece of a call's arguments as JSON text).
        text: the piece.
        attempt: 0-based; a higher one makes what earlier attempts streamed void.
        purpose: ``"think"``, or what the plugin that called the model said.
    """

    text: str = ""
    kind: str = "text"
    attempt: int = 0
    purpose: str = "think"


@register_event
@frozen(kw_only=True)
class ModelCompleteEvent(Event):
    """A model call ended.

    Args:
        stop_reason: why the model stopped: ``"stop"``, ``"tool_calls"``, ``"length"``, ``"filter"``,
            ``"refusal"``.
        duration_ms: milliseconds, all attempts included.
        attempts: how many calls it took.
        notes: what the provider's plugin says about the call, such as what of the conversation could not be sent.
        response_id: what the provider calls the answer, or ``""``.
        first_chunk_ms: milliseconds until the first piece of the answer; None where it did not stream.
        address: where the request went, or ``""`` where the model does not say.
    """

    model: str = ""
    purpose: str = "think"
    usage: Usage = Usage()
    stop_reason: str = ""
    duration_ms: float = 0.0
    attempts: int = 1
    notes: tuple[str, ...] = field(default=(), converter=tuple[str, ...])
    response_id: str = ""
    first_chunk_ms: float | None = None
    address: str = ""


@register_event
@frozen(kw_only=True)
class ModelErrorEvent(Event):
    """A model call failed."""

    model: str = ""
    purpose: str = "think"
    error: str = ""
    error_type: str = ""
    retryable: bool = False
    attempt: int = 0


@register_event
@frozen(kw_only=True)
class ModelRestartEvent(Event):
    """The model is asked again: discard what attempts before ``attempt`` streamed."""

    attempt: int = 0
    reason: str = ""
    purpose: str = "think"


@register_event
@frozen(kw_only=True)
class ToolStartEvent(Event):
    """A tool body is about to run; every decision about the call has been made."""

    tool_name: str = ""
    arguments: FrozenDict[str, Any] = field(default=EMPTY, converter=freeze)
    call_id: str = ""


@register_event
@frozen(kw_only=True)
class ToolProgressEvent(Event):
    """A running tool reports progress.

    Args:
        progress: how much is done, in the tool's own unit.
        total: how much there is to do, or None.
    """

    tool_name: str = ""
    call_id: str = ""
    progress: float | None = None
    total: float | None = None
    message: str = ""


@register_event
@frozen(kw_only=True)
class ToolCompleteEvent(Event):
    """A tool call ended.

    Args:
        result: the text the model gets, or None when it failed.
        error: ``"<Type>: <message>"``, or None.
    """

    tool_name: str = ""
    arguments: FrozenDict[str, Any] = field(default=EMPTY, converter=freeze)
    call_id: str = ""
    result: str | None = None
    error: str | None = None
    duration_ms: float = 0.0


@register_event
@frozen(kw_only=True)
class ToolCacheHitEvent(Event):
    """An idempotent call was answered from an earlier execution, in place of start and complete."""

    tool_name: str = ""
    arguments: FrozenDict[str, Any] = field(default=EMPTY, converter=freeze)
    call_id: str = ""
    result: str | None = None
    error: str | None = None


@register_event
@frozen(kw_only=True)
class ReflectEvent(Event):
    """A self-evaluation was made.

    Args:
        judgment: what the judge says.
        confidence: the new confidence, 0.0 to 1.0.
        assessment: ``"on_track"``, ``"stuck"``, ``"new_findings"`` or ``"loop_detected"``.
        guidance: what to do next.
    """

    judgment: str = ""
    confidence: float = 0.0
    assessment: str = ""
    guidance: str = ""


@register_event
@frozen(kw_only=True)
class InterruptEvent(Event):
    """A tool, or a hook that decides about a call, asks a person.

    Args:
        interrupt_id: what an answer names when several questions are open.
    """

    interrupt_id: str = ""
    question: str = ""
    options: tuple[Choice, ...] = field(default=(), converter=tuple[Choice, ...])
    tool_name: str = ""
    call_id: str = ""


@register_event
@frozen(kw_only=True)
class CheckpointEvent(Event):
    """A transition is committed: the run can be resumed from here.

    Args:
        node: the node that finished.
        next_node: the node that follows.
        head: number of the journal entry.
    """

    node: str = ""
    next_node: str = ""
    why: str = ""
    head: int = 0


@register_event
@frozen(kw_only=True)
class HookFailedEvent(Event):
    """A hook raised, exceeded its timeout, or returned an invalid result. The hook itself does not get it.

    Args:
        plugin: whose hook it was.
        hook: the hook's name.
        quarantined: it failed for the third time and is not called again in this run.
    """

    plugin: str = ""
    hook: str = ""
    error: str = ""
    quarantined: bool = False


@register_event
@frozen(kw_only=True)
class TerminateEvent(Event):
    """The end of a segment; exactly one each.

    Args:
        reason: the condition's name, such as ``"NoToolCalls"`` or ``"ToolCalled AND ConfidenceMet"``;
            ``"JournalError"`` when this worker must not go on: the run is left open and raises the ``error``.
        satisfied: the leaves that were satisfied.
        final_message: the text of the answer, or ``""``.
        error: what went wrong, or None.
        usage: of the whole run so far, dollars included where known.
    """

    reason: str = ""
    detail: str = ""
    satisfied: tuple[str, ...] = field(default=(), converter=tuple[str, ...])
    final_message: str = ""
    iterations_used: int = 0
    total_tool_calls: int = 0
    final_confidence: float = 0.0
    usage: Usage = Usage()
    error: str | None = None

    @property
    def ending(self) -> Ending:
        """The reason, to be asked whether it is a cancel, a question or a failure."""
        return Ending(self.reason, self.satisfied, self.detail)


def stamp(event: Event, envelope: tuple[Any, ...]) -> None:
    """Fill in the envelope of an event that was not emitted yet: for `run.emit` alone.

    Raises:
        ValueError: the event was emitted before; an event is emitted once.
    """
    if event.seq:
        raise ValueError(f"this {type(event).__name__} was emitted already; make a new one")
    for put, value in zip(_ENVELOPE, envelope, strict=True):
        put(event, value)


_ENVELOPE = tuple(
    getattr(Event, name).__set__
    for name in ("run_id", "thread_id", "parent_run_id", "iteration", "segment", "timestamp", "seq")
)
