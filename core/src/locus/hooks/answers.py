"""The plain data form of what hooks answer, so that an answer can be journalled and a replay need not ask again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from locus.core.directives import Accept, Allow, Cancel, Continue, Interrupt, Reject, Retry, Revise
from locus.core.errors import CheckpointError

__all__ = ["Answer", "from_data", "to_data"]

Answer = Continue | Cancel | Retry | Reject | Allow | Interrupt | Accept | Revise

_TEXT: dict[str, tuple[type[Any], str]] = {
    "cancel": (Cancel, "reason"),
    "retry": (Retry, "reason"),
    "reject": (Reject, "reason"),
    "revise": (Revise, "feedback"),
}
_BARE: dict[str, Any] = {"continue": Continue(), "allow": Allow(), "accept": Accept()}
_NAMES = {cls: name for name, (cls, _) in _TEXT.items()} | {type(v): name for name, v in _BARE.items()}


def to_data(answer: Answer) -> dict[str, Any]:
    """A JSON-safe dict; `from_data` gives an equal answer back."""
    if isinstance(answer, Interrupt):
        return {"type": "interrupt", "question": answer.question, "options": list(answer.options)}
    name = _NAMES[type(answer)]
    if name in _BARE:
        return {"type": name}
    field = _TEXT[name][1]
    return {"type": name, field: getattr(answer, field)}


def from_data(data: Mapping[str, Any]) -> Answer:
    """The answer that `to_data` was given.

    Raises:
        CheckpointError: it is not the form of an answer.
    """
    name = data.get("type")
    if name == "interrupt":
        return Interrupt(data["question"], tuple(data["options"]))
    if name in _BARE:
        answer: Answer = _BARE[name]
        return answer
    if name in _TEXT:
        cls, field = _TEXT[name]
        made: Answer = cls(data[field])
        return made
    raise CheckpointError("type", f"{name!r} is no answer of a hook; known: {', '.join(sorted({*_BARE, *_TEXT}))}")
