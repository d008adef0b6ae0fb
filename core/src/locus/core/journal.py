"""What a run is made of: a journal of entries, and the state as the fold over it.

A *step* is an effect: its `Intent` (it is about to happen) and its `Outcome`, or `ModelFailed`. A *transition* is what
a node did to the state, with the node that follows. Only transitions make the state; steps make a crash harmless: they
say what happened in a node that did not get as far as its transition. What a hook, a caller or a person decided is an
entry as well (`Retried`, `Cancelled`, `Answered`), so that a reader of a journal need not guess it.

An entry names the version of the format that it was written in (`FORMAT`). A later version adds fields with defaults,
or a step to `UPGRADES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, get_args

from attrs import field

from locus.core.data import declare_forms, tag_of
from locus.core.delta import TOTALS, Fold, StateDelta, advance, apply, delta
from locus.core.directives import Choice
from locus.core.errors import CheckpointError, CheckpointTooNew, CheckpointTooOld
from locus.core.frozen import EMPTY, FrozenDict, fast_init, freeze, frozen
from locus.core.labels import UNKNOWN
from locus.core.lazy import Lazy
from locus.core.messages import Message, Usage
from locus.core.state import AgentState
from locus.core.step_id import CALL, CHILD, EXECUTE, REVIEW, SEGMENT, STEP, THINK, StepId

if TYPE_CHECKING:
    from types import ModuleType

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
    "TOTALS",
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
#: attempts, it made room for others, or a node failed that can be entered again.
PauseKind = Literal["interrupted", "cancelled", "dead_letter", "yielded", "failed"]

#: Pseudo-nodes: before the first node of a run, after Terminate, and where a fork of an open run goes its own way.
START, END, FORK = "start", "end", "fork"

_EPOCH = datetime.fromtimestamp(0, UTC)

#: What the first transition of a thread is relative to. Its label is not clean: a journal that says nothing of labels
#: was written before there were any.
BLANK = AgentState(run_id="", label=UNKNOWN, started_at=_EPOCH, updated_at=_EPOCH)


@fast_init
@frozen(kw_only=True)
class Intent:
    """An effect is about to happen (written first for policy ``"once"`` and ``"keyed"``).

    Args:
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
        digest: of what was asked, as in an `Outcome`.
        error_type: the class of the error, by its name.
        error: its text.
        retryable: whether the same call may succeed later.
        usage: what the attempts have used nevertheless, or None.
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
        request_id: what the caller named the turn by, or ``""``.
    """

    run_id: str
    prompt: Message
    metadata: FrozenDict[str, Any] = field(default=EMPTY, converter=freeze)
    agent: str = ""
    version: str = ""
    queue: str = ""
    request_id: str = ""


@frozen(kw_only=True)
class Asked:
    """A call asks a person; the run is suspended until every question is answered.

    Args:
        interrupt_id: what an answer names when several questions are open.
        step_id: the call.
        question: what the person reads.
        options: the answers to choose from; empty for a free answer.
        tool_name: of the call.
        call_id: of the call.
        digest: of the call that the question is about. An answer counts for no other: where the conversation was
            edited since, the person is asked again.
    """

    run_id: str
    interrupt_id: str
    step_id: StepId
    question: str
    options: tuple[Choice, ...] = field(default=(), converter=tuple[Choice, ...])
    tool_name: str = ""
    call_id: str = ""
    digest: str = ""


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
        segment: which call of ``run`` or ``resume`` ended.
        kind: why.
        reason: the reason of a cancel, or the cause for which the run was given up; may be ``""``.
        not_before: when it is to go on, or None: when it is resumed.
        active_seconds: how long the run had been at work since the last transition.
    """

    run_id: str
    segment: int
    kind: PauseKind
    reason: str = ""
    not_before: datetime | None = None
    active_seconds: float = 0.0


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
        iteration_finished: the run ends where Think would have run again, so the iteration is finished.
    """

    run_id: str
    node: str
    next_node: str
    delta: StateDelta
    why: str = ""
    satisfied: tuple[str, ...] = field(default=(), converter=tuple[str, ...])
    segment: int = 0
    error: str | None = None
    not_before: datetime | None = None
    detail: str = ""
    instead_of: str = ""
    uncharged: Usage | None = None
    request_id: str = ""
    iteration_finished: bool = False


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


def fold(state: AgentState, bodies: Iterable[Body]) -> AgentState:
    """The state after some entries; steps change nothing."""
    changes = [body.delta for body in bodies if type(body) is Transition]
    if len(changes) < 2:
        return apply(state, changes[0]) if changes else state
    folded = Fold(state)
    for change in changes:
        folded.add(change)
    return folded.state()


def _declare(codec: ModuleType) -> None:
    codec.register_union(Body, {tag_of(cls): cls for cls in get_args(Body)}, "entry")


declare_forms(_declare)


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
            plain = _upgrade(plain, version)
        body: Body = codec.converter.structure(plain, Body)  # type: ignore[arg-type]
    except CheckpointError:
        raise
    except Exception as e:
        raise CheckpointError("entry", f"cannot be read: {e!r}") from e
    return body


def _upgrade(form: dict[str, Any], version: Any) -> dict[str, Any]:
    if type(version) is not int or version < 1:
        raise CheckpointError("v", f"expected the version of an entry, got {version!r:.60}")
    if version > FORMAT:
        raise CheckpointTooNew(version, FORMAT)
    for each in range(version, FORMAT):
        if each not in UPGRADES:
            raise CheckpointTooOld(version, FORMAT)
        form = UPGRADES[each](form)
    return form
