"""What a command needs of a view, and the views that need no screen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TextIO

from locus.core.events import Event, TerminateEvent, event_to_json
from locus_plugin_cli.output import OutputClosed, say

__all__ = ["JsonView", "QuietView", "SilentView", "View"]


class View(Protocol):
    """Shows events as they come."""

    def show(self, event: Event) -> None:
        """Show one event.

        Raises:
            OutputClosed: the reader of the output is gone.
        """
        ...

    def note(self, text: str) -> None:
        """Show a text that is not an event."""
        ...

    def running(self) -> AbstractContextManager[None]:
        """Around a run that is under way: the view may keep the terminal to itself."""
        ...


class JsonView:
    """One event a line, as JSON in ASCII, flushed; nothing else goes to the output."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def show(self, event: Event) -> None:
        """Write one line."""
        # ASCII: no encoding of a pipe and no lone surrogate can break a line.
        _write(self._out, json.dumps(event_to_json(event)) + "\n")

    def note(self, text: str) -> None:
        """To standard error: the output holds events only."""
        say(text)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Nothing to prepare."""
        yield


class QuietView:
    """The final answer and nothing else."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def show(self, event: Event) -> None:
        """Write the answer when the run ends with one."""
        if isinstance(event, TerminateEvent) and event.parent_run_id is None and event.final_message:
            _write(self._out, event.final_message.rstrip("\n") + "\n")

    def note(self, text: str) -> None:
        """To standard error: the output holds the answer only."""
        say(text)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Nothing to prepare."""
        yield


class SilentView:
    """Nothing of the run itself, for a command that says afterwards how it ended."""

    def show(self, event: Event) -> None:
        """Show nothing."""

    def note(self, text: str) -> None:
        """To standard error."""
        say(text)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Nothing to prepare."""
        yield


def _write(out: TextIO, text: str) -> None:
    try:
        out.write(text)
        out.flush()
    except BrokenPipeError as e:
        raise OutputClosed from e
