"""The labels of a thread that comes from an untrusted file: whatever labels the file has, anybody may have written it.

The state becomes untrusted, and so does each result: of finished calls, of calls of the unfinished node, and of calls
that are kept for later turns. The user turns in it do not count as the user's, and its answers not as a person's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from locus.core import EMPTY
from locus.core.journal import BLANK, Body, Outcome, StateDelta
from locus.core.labels import Label, taint
from locus.core.messages import Message, Role
from locus.core.state import ToolExecution

__all__ = ["Tainting"]

#: The source that a label names.
_LABEL = taint("import")

#: Under this key of the metadata the kernel finds how many messages, the system prompt not counted, were imported.
_COUNT = "locus.imported"

#: Under this one it keeps what came of calls that are made once in a thread; the label is the last part of each.
_KEPT = "locus.idempotent"
_LABEL_AT = 4


class Tainting:
    """Makes the entries of one thread untrusted, in order; what they say of labels themselves can only add to that."""

    def __init__(self) -> None:
        self._label: Label | None = None
        self._messages = 0
        self._has_system = False

    def step(self, body: Body) -> Body:
        """A step as it is taken in; the same object where nothing in it has a label."""
        if isinstance(body, Outcome):
            execution = getattr(body.value, "execution", None)
            if isinstance(execution, ToolExecution):
                return evolve(body, value=evolve(body.value, execution=_taint(execution)))
        return body

    def delta(self, change: StateDelta) -> StateDelta:
        """The difference that a transition makes, as it is taken in."""
        changed, grown = dict(change.changed), dict(change.grown)
        for name in ("messages", "tool_executions"):
            if name in changed:
                grown.setdefault(name, (0, changed.pop(name)))
        before = self._label
        declared = changed.pop("label", BLANK.label if before is None else before)
        self._label = declared | (_LABEL if before is None else before)
        if self._label != before:
            changed["label"] = self._label
        if "tool_executions" in grown:
            keep, made = grown["tool_executions"]
            grown["tool_executions"] = keep, tuple(map(_taint, made))
        entries = {key: _drop_labels(value) if key == _KEPT else value for key, value in change.entries.items()}
        dropped = tuple(key for key in change.dropped if key != _COUNT)
        extended = {key: value for key, value in change.extended.items() if key != _COUNT}
        entries.pop(_COUNT, None)
        if "messages" in grown and self._adds_turn(*grown["messages"]):
            entries[_COUNT] = self._messages - self._has_system
        return StateDelta(changed, grown, entries or EMPTY, extended or EMPTY, dropped)

    def _adds_turn(self, keep: int, added: tuple[Message, ...]) -> bool:
        """Count the messages; whether a turn of the user's is among those that are new."""
        if not keep:
            self._has_system = bool(added) and added[0].role is Role.SYSTEM
        self._messages = keep + len(added)
        return any(message.role is Role.USER for message in added)


def _taint(execution: ToolExecution) -> ToolExecution:
    # It was answered elsewhere, if at all: an "always" in the file would let calls run without a question.
    return evolve(execution, label=execution.known_label | _LABEL, fields=EMPTY, answer=None)


def _drop_labels(kept: Any) -> Any:
    if not isinstance(kept, Mapping):
        return kept
    label = (_LABEL.reads, *_LABEL.sources)
    return {
        key: (*value[:_LABEL_AT], label) if isinstance(value, tuple) and len(value) > _LABEL_AT else value
        for key, value in kept.items()
    }
