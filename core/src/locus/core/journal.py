"""What a run is made of: a journal of entries, and the state as the fold over it.

A *step* is an effect: its `Intent` (it is about to happen) and its `Outcome`, or `ModelFailed`. A *transition* is what
a node did to the state, with the node that follows. Only transitions make the state; steps make a crash harmless: they
say what happened in a node that did not get as far as its transition. What a hook, a caller or a person decided is an
entry as well (`Retried`, `Cancelled`, `Answered`), so that nobody who reads a journal has to guess it.

An entry names the version of the format that it was written in (`FORMAT`). A later version adds fields with defaults,
or a step to `UPGRADES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from operator import is_
from typing import TYPE_CHECKING, Any, Literal

from attrs import field

from locus.core.errors import CheckpointError, CheckpointTooNew, CheckpointTooOld
from locus.core.frozen import EMPTY, FrozenDict, fast_init, freeze, frozen
from locus.core.lazy import Lazy
from locus.core.messages import Message, Usage
from locus.core.state import GROWING, AgentState
from locus.core.step_id import CALL, CHILD, EXECUTE, REVIEW, SEGMENT, STEP, THINK, StepId

if TYPE_CHECKING:
    from locus.core import codec
else:
    codec = Lazy("locus.core.codec")

__all__ = [
    "BLANK",
    "CALL",
    "CHILD",
    "END",
    "EXECUTE",
    "FORK",
    "FORMAT",
    "REVIEW",
    "SEGMENT",
    "START",
    "STEP",
    "THINK",
    "UPGRADES",
    "Answered",
    "Asked",
    "Body",
    "Cancelled",
    "Entry",
    "Fold",
    "Intent",
    "ModelFailed",
    "Outcome",
    "PauseKind",
    "Paused",
    "Policy",
    "Resumed",
    "Retried",
    "StateDelta",
    "Step",
    "StepId",
    "Submitted",
    "Transition",
    "advance",
    "apply",
    "delta",
    "entry_from_json",
    "entry_to_json",
    "fold",
]

#: The version of the format in which entries are written.
FORMAT = 2

#: Version -> what makes the JSON form of an entry of that version one of the next. Version 1 was never released.
UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}

#: What may happen to an effect after a crash in its middle. ``"model"``: asked again, without an intent.
Policy = Literal["pure", "keyed", "once", "model"]

#: Why a segment ended and its run did not: it waits for a person, its caller went away, it was given up after too many
#: attempts, or it made room for others.
PauseKind = Literal["interrupted", "cancelled", "dead_letter", "yielded"]

#: Pseudo-nodes: before the first node of a run, after Terminate, and where a fork of an open run goes its own way.
START, END, FORK = "start", "end", "fork"

_EPOCH = datetime.fromtimestamp(0, UTC)

#: What the first transition of a thread is relative to.
BLANK = AgentState(run_id="", started_at=_EPOCH, updated_at=_EPOCH)

_GROWING = frozenset(GROWING)
_MISSING = object()


def _texts(value: Iterable[str]) -> tuple[str, ...]:
    return tuple(value)


@frozen
class StateDelta:
    """The difference between two states, of the size of what changed.

    Args:
        changed: new values of fields, metadata apart.
        grown: field -> (how many items of the old value stay, what follows them).
        entries: metadata key -> its new value.
        extended: metadata key whose value is a tuple that grew -> the items that were added at its end.
        dropped: metadata keys that are gone.
    """

    changed: Mapping[str, Any] = field(factory=dict)
    grown: Mapping[str, tuple[int, tuple[Any, ...]]] = field(factory=dict)
    entries: Mapping[str, Any] = EMPTY
    extended: Mapping[str, tuple[Any, ...]] = EMPTY
    dropped: tuple[str, ...] = ()


def delta(old: AgentState, new: AgentState) -> StateDelta:
    """What makes ``new`` out of ``old``: ``apply(old, delta(old, new)) == new``.

    For a state built from ``old.marked()`` this reads what was added and nothing else; for two states without
    such a bond it compares them.
    """
    changed: dict[str, Any] = {}
    grown: dict[str, tuple[int, tuple[Any, ...]]] = {}
    before_all, after_all = old.__dict__, new.__dict__
    bound = new._base is old
    for name, after in after_all.items():
        before = before_all[name]
        if before is after or name[0] == "_" or name == "metadata":
            continue
        if name in _GROWING:
            if not bound:
                keep = _common(before, after)
            elif name == "reasoning_steps" and new._steps_kept is not None:
                keep = new._steps_kept
            else:
                keep = len(before)
            if keep != len(before) or keep != len(after):
                grown[name] = (keep, after[keep:])
        elif before != after:
            changed[name] = after
    if old.metadata is new.metadata:
        return StateDelta(changed, grown)
    return StateDelta(changed, grown, *_metadata_delta(old.metadata, new.metadata))


def _metadata_delta(
    old: Mapping[str, Any], new: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Mapping[str, tuple[Any, ...]], tuple[str, ...]]:
    """The entries that are new, those that grew, and those that are gone."""
    entries, extended = {}, {}
    for key, after in new.items():
        before = old.get(key, _MISSING)
        if before is after:
            continue
        # Free-form data can be equal and still be other data, 1 == True == 1.0: only what is the same object stays.
        if type(after) is tuple and type(before) is tuple and before and len(before) < len(after):
            kept = after[: len(before)]
            if all(map(is_, before, kept)):
                extended[key] = after[len(before) :]
                continue
        entries[key] = after
    return entries, extended, tuple([key for key in old if key not in new])


def advance(
    old: AgentState, new: AgentState, *, updated_at: datetime, active_seconds: float, iteration: int
) -> tuple[StateDelta, AgentState]:
    """A transition: what to write, and the state that it makes, marked for the next one."""
    change = delta(old, new)
    changed = dict(change.changed)
    changed["updated_at"] = updated_at
    changed["active_seconds"] = active_seconds
    if iteration != new.iteration:
        changed["iteration"] = iteration
    state = new.marked(updated_at=updated_at, active_seconds=active_seconds, iteration=iteration)
    return StateDelta(changed, change.grown, change.entries, change.extended, change.dropped), state


def _common(before: tuple[Any, ...], after: tuple[Any, ...]) -> int:
    n = 0
    for a, b in zip(before, after, strict=False):
        if a is not b and a != b:
            break
        n += 1
    return n


def apply(state: AgentState, change: StateDelta) -> AgentState:
    """The state after a transition."""
    changes = dict(change.changed)
    for name, (keep, items) in change.grown.items():
        changes[name] = getattr(state, name)[:keep] + items
    grown = change.grown.get("tool_executions")
    if grown is not None:
        index = state._index if grown[0] == len(state.tool_executions) else None
        for i, execution in enumerate(grown[1] if index is not None else ()):
            index = index.extended(grown[0] + i, execution) if index is not None else None
        changes["_index"] = index
    if change.entries or change.extended or change.dropped:
        changes["metadata"] = _changed_metadata(state.metadata, change)
    # No builder made it, so it proves nothing about what it starts with.
    return state._with(**changes, _base=None, _committed=False, _steps_kept=None)


def _changed_metadata(old: Mapping[str, Any], change: StateDelta) -> FrozenDict[str, Any]:
    metadata = {**old, **change.entries}
    try:
        for key, items in change.extended.items():
            metadata[key] = metadata[key] + items
        for key in change.dropped:
            del metadata[key]
    except (KeyError, TypeError) as e:
        raise CheckpointError("metadata", f"the change does not fit the state before it: {e!r}") from e
    return FrozenDict(metadata)


@fast_init
@frozen(kw_only=True)
class Intent:
    """An effect is about to happen (written first for policy ``"once"`` and ``"keyed"``).

    Args:
        run_id: the run.
        step_id: the step.
        digest: of its arguments as the model gave them, defaults not filled in.
        policy: what may happen to it after a crash; this counts then, whatever the code says by that time.
        key: the hash in the idempotency key that the body is given, ``""`` for a key that follows from the step's id.
    """

    run_id: str
    step_id: StepId
    digest: str = ""
    policy: Policy = "once"
    key: str = ""


@fast_init
@frozen(kw_only=True)
class Outcome:
    """An effect happened.

    Args:
        value: its result, data with a JSON form.
        error: what it raised, as text, or None.
    """

    run_id: str
    step_id: StepId
    digest: str = ""
    value: Any = field(default=None, converter=freeze)
    error: str | None = None


@frozen(kw_only=True)
class ModelFailed:
    """A model call failed, in all the attempts that the wrappers around it made.

    Args:
        run_id: the run.
        step_id: the step.
        digest: of what was asked, as in an `Outcome`.
        error_type: the class of the error, by its name.
        error: its text.
        retryable: whether the same call may succeed later.
        usage: what the attempts have used all the same, or None.
    """

    run_id: str
    step_id: StepId
    digest: str = ""
    error_type: str = ""
    error: str = ""
    retryable: bool = False
    usage: Usage | None = None


@frozen(kw_only=True)
class Retried:
    """A hook asked for another try: what came of this attempt does not count.

    Args:
        run_id: the run.
        step_id: the attempt: Think's model call, or a tool call that runs again.
        reason: the hook's.
    """

    run_id: str
    step_id: StepId
    reason: str = ""


@frozen(kw_only=True)
class Cancelled:
    """The run was cancelled, and the node under way was the last before its end."""

    run_id: str
    reason: str = ""


@frozen(kw_only=True)
class Submitted:
    """A turn was handed in for a worker to run.

    Args:
        run_id: of the run that it will be.
        prompt: the user's turn.
        metadata: entries to set on the state before the first node.
        agent: the name of the agent that is to run it.
        version: the version of that agent, or ``""``.
        queue: where it waits, or ``""``.
    """

    run_id: str
    prompt: Message
    metadata: FrozenDict[str, Any] = field(default=EMPTY, converter=freeze)
    agent: str = ""
    version: str = ""
    queue: str = ""


@frozen(kw_only=True)
class Asked:
    """A call asks a person; the run is suspended until every question has its answer."""

    run_id: str
    interrupt_id: str
    step_id: StepId
    question: str
    options: tuple[str, ...] = field(default=(), converter=_texts)
    tool_name: str = ""
    call_id: str = ""


@frozen(kw_only=True)
class Answered:
    """A person's answer."""

    run_id: str
    interrupt_id: str
    answer: Any = field(default=None, converter=freeze)


@frozen(kw_only=True)
class Paused:
    """A segment ended and the run did not.

    Args:
        run_id: the run.
        segment: which call of ``run`` or ``resume`` ended.
        kind: why.
        reason: the reason of a cancel, or the cause for which the run was given up; may be ``""``.
        not_before: when it is to go on, or None: when somebody resumes it.
    """

    run_id: str
    segment: int
    kind: PauseKind
    reason: str = ""
    not_before: datetime | None = None


@frozen(kw_only=True)
class Resumed:
    """Another segment of the run begins, after a pause or a crash."""

    run_id: str
    segment: int


@fast_init
@frozen(kw_only=True)
class Transition:
    """A node finished: the state's difference and the node that follows, committed together.

    Args:
        node: the node that finished, or `START`, or `FORK`.
        next_node: the node that follows, or `END`.
        why: why the router chose it; for `END` the reason the run ended.
        satisfied: the leaves of the condition that ended the run.
        segment: which call of ``run`` or ``resume`` made it.
        error: what ended the run, when an error did.
        not_before: when the next node may start, or None.
        detail: what the reason for the end says further.
        instead_of: the node that the router chose, where a hook named another one.
        uncharged: what was spent in the node and enters the state with the next one, or None.
        request_id: what the caller named the turn by, in the first transition of a turn, or ``""``.
    """

    run_id: str
    node: str
    next_node: str
    delta: StateDelta
    why: str = ""
    satisfied: tuple[str, ...] = field(default=(), converter=_texts)
    segment: int = 0
    error: str | None = None
    not_before: datetime | None = None
    detail: str = ""
    instead_of: str = ""
    uncharged: Usage | None = None
    request_id: str = ""


#: What the journal says about a step.
Step = Outcome | Intent | ModelFailed

Body = (
    Intent | Outcome | ModelFailed | Retried | Cancelled | Submitted | Asked | Answered | Paused | Resumed | Transition
)


@frozen
class Entry:
    """One accepted entry of a thread's journal.

    Args:
        n: position in the thread, from 1.
        writer: token of the claim that wrote it.
        parent: ``"<n>:<writer>"`` of the entry before, or ``""``; what does not continue the tip is ignored.
        body: what happened.
    """

    n: int
    writer: str
    parent: str
    body: Body

    @property
    def id(self) -> str:
        """``"<n>:<writer>"``."""
        return f"{self.n}:{self.writer}"


class Fold:
    """Makes one state of many transitions, at the cost of what they add: what grows is copied once, at the end.

    Args:
        state: the state before the first of them.
    """

    __slots__ = ("_base", "_changed", "_extended", "_grown", "_metadata")

    def __init__(self, state: AgentState) -> None:
        self._base = state
        self._changed: dict[str, Any] = {}
        #: Field -> how many items of the base stay, and what follows them.
        self._grown: dict[str, tuple[int, list[Any]]] = {}
        self._metadata: dict[str, Any] | None = None
        #: The metadata that grew, as lists.
        self._extended: dict[str, list[Any]] = {}

    def length(self, name: str) -> int:
        """How many items a growing field has by now."""
        keep, items = self._grown.get(name, (len(getattr(self._base, name)), ()))
        return keep + len(items)

    def add(self, change: StateDelta) -> None:
        """One more transition.

        Raises:
            CheckpointError: the change does not fit the state before it.
        """
        for name, value in change.changed.items():
            if name not in _GROWING:
                self._changed[name] = value
            elif name not in change.grown:
                self._grown[name] = (0, list(value))
        for name, (keep, added) in change.grown.items():
            kept, items = self._grown.get(name) or (len(getattr(self._base, name)), [])
            if keep < kept:
                self._grown[name] = (keep, list(added))
                continue
            if keep - kept < len(items):
                del items[keep - kept :]
            items += added
            self._grown[name] = (kept, items)
        if change.entries or change.extended or change.dropped:
            self._change_metadata(change)

    def _change_metadata(self, change: StateDelta) -> None:
        if self._metadata is None:
            self._metadata = dict(self._base.metadata)
        metadata, extended = self._metadata, self._extended
        for key in change.entries:
            extended.pop(key, None)
        metadata.update(change.entries)
        try:
            for key, items in change.extended.items():
                if key in extended:
                    extended[key] += items
                else:
                    extended[key] = list(metadata[key] + items)
            for key in change.dropped:
                extended.pop(key, None)
                del metadata[key]
        except (KeyError, TypeError) as e:
            raise CheckpointError("metadata", f"the change does not fit the state before it: {e!r}") from e

    def state(self) -> AgentState:
        """The state after all of them."""
        changed = dict(self._changed)
        if self._metadata is not None:
            grown = {key: tuple(items) for key, items in self._extended.items()}
            changed["metadata"] = FrozenDict({**self._metadata, **grown})
        return apply(self._base, StateDelta(changed, {k: (kept, tuple(v)) for k, (kept, v) in self._grown.items()}))


def fold(state: AgentState, bodies: Iterable[Body]) -> AgentState:
    """The state after some entries; steps change nothing."""
    changes = [body.delta for body in bodies if type(body) is Transition]
    if len(changes) < 2:
        return apply(state, changes[0]) if changes else state
    folded = Fold(state)
    for change in changes:
        folded.add(change)
    return folded.state()


def entry_to_json(body: Body) -> dict[str, Any]:
    """The JSON form of what happened, with the version of the format."""
    form: dict[str, Any] = codec.converter.unstructure(body, type(body))
    form["v"] = FORMAT
    return form


def entry_from_json(form: Mapping[str, Any]) -> Body:
    """What happened, from its JSON form.

    Raises:
        CheckpointTooNew: it was written by a newer version.
        CheckpointTooOld: it was written by a version whose journals cannot be read any more.
        CheckpointError: it is damaged, or needs a package that is not imported.
    """
    try:
        plain = dict(form)
        version = plain.pop("v", 1)
        if version != FORMAT:
            plain = _upgraded(plain, version)
        body: Body = codec.converter.structure(plain, Body)  # type: ignore[arg-type]
    except CheckpointError:
        raise
    except Exception as e:
        raise CheckpointError("entry", f"cannot be read: {e!r}") from e
    return body


def _upgraded(form: dict[str, Any], version: Any) -> dict[str, Any]:
    if type(version) is not int or version < 1:
        raise CheckpointError("v", f"expected the version of an entry, got {version!r:.60}")
    if version > FORMAT:
        raise CheckpointTooNew(version, FORMAT)
    for each in range(version, FORMAT):
        if each not in UPGRADES:
            raise CheckpointTooOld(version, FORMAT)
        form = UPGRADES[each](form)
    return form
