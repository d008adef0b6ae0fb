"""What a command needs of a view, and the views that need no screen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TextIO

import click

from locus.core.events import Event, TerminateEvent, event_to_json

__all__ = ["JsonView", "QuietView", "View"]


class View(Protocol):
    """Shows events as they come."""

    def show(self, event: Event) -> None:
        """Show one event.

        Raises:
            BrokenPipeError: whoever read the output is gone.
        """
        ...

    def note(self, text: str) -> None:
        """Say something that is no event, where people read it."""
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
        self._out.write(json.dumps(event_to_json(event)) + "\n")
        self._out.flush()

    def note(self, text: str) -> None:
        """To standard error: the output holds events only."""
        click.echo(f"locus: {text}", err=True)

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
            self._out.write(event.final_message.rstrip("\n") + "\n")
            self._out.flush()

    def note(self, text: str) -> None:
        """To standard error: the output holds the answer only."""
        click.echo(f"locus: {text}", err=True)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Nothing to prepare."""
        yield
