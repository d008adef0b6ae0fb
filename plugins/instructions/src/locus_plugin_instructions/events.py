"""The plugin's event."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from locus.plugin import Event, register_event

__all__ = ["InstructionsReadEvent"]


def _texts(value: Iterable[str]) -> tuple[str, ...]:
    return tuple(value)


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class InstructionsReadEvent(Event):
    """Files of instructions were read: at the beginning of a run, or of a resume, which looks for changes alone.

    Args:
        paths: the files that the run uses, in the order of the prompt.
        changed: the files that are not as they were when the thread used them last: other text, new, or gone.
        in_use: whether the run uses what was read now. A resumed run goes on with what it had read before.
    """

    paths: tuple[str, ...] = field(default=(), converter=_texts)
    changed: tuple[str, ...] = field(default=(), converter=_texts)
    in_use: bool = True
