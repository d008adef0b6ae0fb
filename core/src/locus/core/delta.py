"""The difference between two states, what it makes of a state, and its JSON form: what a journal keeps of a node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from operator import is_
from typing import TYPE_CHECKING, Any

from attrs import field, fields, resolve_types

from locus.core.data import declare_forms, decode_data, encode_data
from locus.core.errors import CheckpointError
from locus.core.frozen import EMPTY, FrozenDict, frozen
from locus.core.lazy import Lazy
from locus.core.state import GROWING, AgentState

if TYPE_CHECKING:
    from types import ModuleType

    from locus.core import codec
else:
    codec = Lazy("locus.core.codec")

#: The fields of a state that add up what the run has spent.
TOTALS = ("prompt_tokens_used", "completion_tokens_used", "cached_tokens_used", "estimated_tokens_used", "cost")

_GROWING = frozenset(GROWING)
_MISSING = object()


@frozen
class StateDelta:
    """The difference between two states, of the size of what changed.

    Args:
        changed: new values of fields, metadata apart.
        grown: field -> (how many items of the old value stay, what follows them).
        entries: metadata key -> its new value.
        extended: metadata key whose value is a tuple that grew -> the items that were added at its end.
        dropped: metadata keys that are gone; one that is in ``entries``, too, has moved to the end.
    """

    changed: Mapping[str, Any] = field(factory=dict)
    grown: Mapping[str, tuple[int, tuple[Any, ...]]] = field(factory=dict)
    entries: Mapping[str, Any] = EMPTY
    extended: Mapping[str, tuple[Any, ...]] = EMPTY
    dropped: tuple[str, ...] = ()


def delta(old: AgentState, new: AgentState) -> StateDelta:
    """What makes ``new`` out of ``old``: ``apply(old, delta(old, new)) == new``.

    For a state built from ``old.commit()`` this reads what was added and nothing else; for two states without
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
    """The entries that are new, those that grew, and those that are gone; one that moved is gone and new."""
    entries, extended, dropped = {}, {}, [key for key in old if key not in new]
    # What is set anew comes last, and so it does in the state that a resume folds. Looking for a key takes the iterator
    # behind it: one that comes too late, or behind a new one, is not found any more.
    in_order = iter(old)
    for key, after in new.items():
        before = old.get(key, _MISSING)
        if key not in in_order:
            if before is not _MISSING:
                dropped.append(key)
        elif before is after:
            continue
        # Free-form data can be equal and still be other data, 1 == True == 1.0: only what is the same object stays.
        elif type(after) is tuple and type(before) is tuple and before and len(before) < len(after):
            kept = after[: len(before)]
            if all(map(is_, before, kept)):
                extended[key] = after[len(before) :]
                continue
        entries[key] = after
    return entries, extended, tuple(dropped)


def advance(
    old: AgentState,
    new: AgentState,
    *,
    updated_at: datetime,
    active_seconds: float,
    iteration: int,
    is_last: bool = False,
) -> tuple[StateDelta, AgentState]:
    """A transition: what to write, and the state that it makes, marked for the next one.

    The last one of a run says what the run has spent, changed or not: the run need not be folded to know that.
    """
    change = delta(old, new)
    changed = dict(change.changed)
    if is_last:
        changed.update((name, getattr(new, name)) for name in TOTALS)
    changed["updated_at"] = updated_at
    changed["active_seconds"] = active_seconds
    if iteration != new.iteration:
        changed["iteration"] = iteration
    state = new.commit(updated_at=updated_at, active_seconds=active_seconds, iteration=iteration)
    return StateDelta(changed, change.grown, change.entries, change.extended, change.dropped), state


def _common(before: tuple[Any, ...], after: tuple[Any, ...]) -> int:
    n = 0
    for a, b in zip(before, after, strict=False):
        if a is not b and a != b:
            break
        n += 1
    return n


def apply(state: AgentState, change: StateDelta) -> AgentState:
    """The state after a transition.

    Raises:
        CheckpointError: the change does not fit the state before it.
    """
    folded = Fold(state)
    folded.add(change)
    return folded.state()


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
        try:
            for key in change.dropped:
                extended.pop(key, None)
                del metadata[key]
            for key, items in change.extended.items():
                if key in extended:
                    extended[key] += items
                else:
                    extended[key] = list(metadata[key] + items)
        except (KeyError, TypeError) as e:
            raise CheckpointError("metadata", f"the change does not fit the state before it: {e!r}") from e
        for key in change.entries:
            extended.pop(key, None)
        metadata.update(change.entries)

    def state(self) -> AgentState:
        """The state after all of them."""
        base, changes = self._base, dict(self._changed)
        for name, (keep, items) in self._grown.items():
            changes[name] = getattr(base, name)[:keep] + tuple(items)
        if "tool_executions" in self._grown:
            keep, added = self._grown["tool_executions"]
            index = base._index if keep == len(base.tool_executions) else None
            for i, execution in enumerate(added if index is not None else ()):
                index = index.with_execution(keep + i, execution) if index is not None else None
            changes["_index"] = index
        if self._metadata is not None:
            grown = {key: tuple(items) for key, items in self._extended.items()}
            changes["metadata"] = FrozenDict({**self._metadata, **grown})
        # No builder made it, so it proves nothing about what it starts with.
        return base._with(**changes, _base=None, _committed=False, _steps_kept=None)


# -- JSON -----------------------------------------------------------------------------------------

_CHANGING = frozenset(a.name for a in fields(AgentState) if a.init) - {"metadata"}
_PARTS = frozenset(a.name for a in fields(StateDelta))


@cache
def _types() -> dict[str, Any]:
    # With the annotations resolved: as they are in the class they are text.
    return {a.name: a.type for a in fields(resolve_types(AgentState))}


@cache
def _to_json_of(name: str) -> Callable[[Any], Any]:
    """How a field of the state is written."""
    write: Callable[[Any], Any] = codec.converter.get_unstructure_hook(_types()[name])
    return write


@cache
def _from_json_of(name: str) -> Callable[[Any], Any]:
    """How it is read."""
    return codec.reader_of(_types()[name])


def _delta_to_json(change: StateDelta) -> dict[str, Any]:
    form: dict[str, Any] = {
        "changed": {k: _to_json_of(k)(v) for k, v in change.changed.items()},
        "grown": {k: [keep, _to_json_of(k)(v)] for k, (keep, v) in change.grown.items()},
    }
    if change.entries:
        form["entries"] = _pairs_to_json(change.entries)
    if change.extended:
        form["extended"] = _pairs_to_json(change.extended)
    if change.dropped:
        form["dropped"] = encode_data(change.dropped)
    return form


def _pairs_to_json(metadata: Mapping[str, Any]) -> Any:
    # As one mapping: what its keys may be is the same here as in a checkpoint.
    return encode_data(FrozenDict(metadata), "metadata")


def _delta_from_json(form: Mapping[str, Any], _: Any) -> StateDelta:
    unknown = (set(form["changed"]) - _CHANGING) | (set(form["grown"]) - _GROWING) | (set(form) - _PARTS)
    if unknown:
        raise CheckpointError("delta", f"unknown field(s) {', '.join(sorted(unknown))}")
    return StateDelta(
        {k: _from_json_of(k)(v) for k, v in form["changed"].items()},
        {k: (keep, _from_json_of(k)(v)) for k, (keep, v) in form["grown"].items()},
        _mapping(form.get("entries"), "entries"),
        _mapping(form.get("extended"), "extended", tuple),
        decode_data(form.get("dropped", [])),
    )


def _mapping(form: Any, name: str, of: type = object) -> FrozenDict[str, Any]:
    if form is None:
        return EMPTY
    found = decode_data(form)
    if not isinstance(found, FrozenDict) or not all(isinstance(value, of) for value in found.values()):
        raise CheckpointError(f"delta.{name}", f"expected a mapping of {of.__name__}, got {form!r:.60}")
    return found


def _declare(codec: ModuleType) -> None:
    codec.converter.register_unstructure_hook(StateDelta, _delta_to_json)
    codec.converter.register_structure_hook(StateDelta, _delta_from_json)


declare_forms(_declare)
