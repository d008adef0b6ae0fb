"""What a run is made of: a journal of entries, and the state as the fold over it.

A *step* is an effect: its `Intent` (it is about to happen) and its `Outcome`. A *transition* is what a node
did to the state, with the node that follows. Only transitions make the state; steps make a crash harmless: they
say what happened in a node that did not get as far as its transition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from attrs import field

from locus.core.errors import CheckpointError
from locus.core.frozen import freeze, frozen
from locus.core.lazy import Lazy
from locus.core.state import GROWING, AgentState

if TYPE_CHECKING:
    from locus.core import codec
else:
    codec = Lazy("locus.core.codec")

__all__ = [
    "BLANK",
    "END",
    "FORK",
    "START",
    "Answered",
    "Asked",
    "Body",
    "Entry",
    "Intent",
    "Outcome",
    "Paused",
    "Policy",
    "Resumed",
    "StateDelta",
    "Transition",
    "advance",
    "apply",
    "delta",
    "entry_from_json",
    "entry_to_json",
    "fold",
]

#: What may happen to an effect after a crash in its middle. ``"model"``: asked again, without an intent.
Policy = Literal["pure", "keyed", "once", "model"]

#: Pseudo-nodes: before the first node of a run, after Terminate, and where a fork of an open run goes its own way.
START, END, FORK = "start", "end", "fork"

_EPOCH = datetime.fromtimestamp(0, UTC)

#: What the first transition of a thread is relative to.
BLANK = AgentState(run_id="", started_at=_EPOCH, updated_at=_EPOCH)

_GROWING = frozenset(GROWING)


def _texts(value: Iterable[str]) -> tuple[str, ...]:
    return tuple(value)


@frozen
class StateDelta:
    """The difference between two states, of the size of what changed.

    Args:
        changed: new values of fields.
        grown: field -> (how many items of the old value stay, what follows them).
    """

    changed: Mapping[str, Any] = field(factory=dict)
    grown: Mapping[str, tuple[int, tuple[Any, ...]]] = field(factory=dict)


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
        if before is after or name[0] == "_":
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
        elif name == "metadata" or before != after:
            # Free-form data can be equal and still be other data: 1 == True, 1 == 1.0.
            changed[name] = after
    return StateDelta(changed, grown)


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
    return StateDelta(changed, change.grown), state


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
    # No builder made it, so it proves nothing about what it starts with.
    return state._with(**changes, _base=None, _committed=False, _steps_kept=None)


@frozen(kw_only=True)
class Intent:
    """An effect is about to happen (written first for policy ``"once"`` and ``"keyed"``)."""

    run_id: str
    step_id: str
    digest: str = ""
    policy: Policy = "once"


@frozen(kw_only=True)
class Outcome:
    """An effect happened.

    Args:
        value: its result, data with a JSON form.
        error: what it raised, as text, or None.
    """

    run_id: str
    step_id: str
    digest: str = ""
    value: Any = field(default=None, converter=freeze)
    error: str | None = None


@frozen(kw_only=True)
class Asked:
    """A call asks a person; the run is suspended until every question has its answer."""

    run_id: str
    interrupt_id: str
    step_id: str
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
    """A segment ended and the run did not: it waits for a person, or its caller went away."""

    run_id: str
    segment: int
    reason: str


@frozen(kw_only=True)
class Resumed:
    """Another segment of the run begins, after a pause or a crash."""

    run_id: str
    segment: int


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


Body = Intent | Outcome | Asked | Answered | Paused | Resumed | Transition


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


def fold(state: AgentState, bodies: Iterable[Body]) -> AgentState:
    """The state after some entries; steps change nothing."""
    for body in bodies:
        if type(body) is Transition:
            state = apply(state, body.delta)
    return state


def entry_to_json(body: Body) -> dict[str, Any]:
    """The JSON form of what happened."""
    form: dict[str, Any] = codec.converter.unstructure(body, type(body))
    return form


def entry_from_json(form: Mapping[str, Any]) -> Body:
    """What happened, from its JSON form.

    Raises:
        CheckpointError: it is damaged, or needs a package that is not imported.
    """
    try:
        body: Body = codec.converter.structure(dict(form), Body)  # type: ignore[arg-type]
    except CheckpointError:
        raise
    except Exception as e:
        raise CheckpointError("entry", f"cannot be read: {e!r}") from e
    return body
