"""What a command needs of a view, and the views that need no screen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from locus.core.events import Event, TerminateEvent, event_to_json
from locus_plugin_cli.output import print_json, say, write_whole

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

    def show(self, event: Event) -> None:
        """Write one line."""
        print_json(event_to_json(event), indent=None)

    def note(self, text: str) -> None:
        """To standard error: the output holds events only."""
        say(text)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Nothing to prepare."""
        yield


class QuietView:
    """The final answer and nothing else."""

    def show(self, event: Event) -> None:
        """Write the answer when the run ends with one."""
        if isinstance(event, TerminateEvent) and event.parent_run_id is None and event.final_message:
            write_whole(event.final_message.rstrip("\n") + "\n")

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
