"""Asks the person at a command line about tools that are held back, before the model hears of them.

In a library, the report lists tools that are held back, and the run goes on without them. The user of ``locus run`` or
``locus chat`` does not read reports. There, such a run does not begin: on a terminal the changes are shown and the user
is asked, and elsewhere it is an error that names the command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from locus.plugin import Lazy
from locus_plugin_mcp.errors import McpToolsChanged

if TYPE_CHECKING:
    from locus_plugin_mcp.lock import ToolChange

# The command line is another distribution; it is there when a command is called.
cli: Any = Lazy("locus.cli")

__all__ = ["Review", "command_session", "current_review", "print_changes"]


class Review:
    """The decisions about changed tools during one command."""

    def __init__(self) -> None:
        self._declined: set[tuple[str, tuple[ToolChange, ...]]] = set()

    def is_declined(self, server: str, changes: tuple[ToolChange, ...]) -> bool:
        """Whether the user has declined exactly these changes, so that the run goes on without the tools."""
        return (server, changes) in self._declined

    def recover(self, error: Exception) -> bool:
        """Show the changes that kept a run from beginning, and ask about them.

        Args:
            error: why the run did not begin.

        Returns:
            Whether to try again: the changes were accepted, or the run may go on without the tools.
        """
        if not isinstance(error, McpToolsChanged) or error.accept is None:
            return False
        if self.is_declined(error.server, error.changes):
            return False
        name = cli.one_line(error.server)
        cli.print_text(f"{name}: these tools are new or have changed since its tools were accepted\n")
        print_changes(error.changes)
        if not cli.confirm(f"Accept these tools of {name}?"):
            self._declined.add((error.server, error.changes))
            return True
        try:
            error.accept()
        except OSError as e:
            cli.say(f"the lock cannot be written: {e}")
            return False
        return True


#: The reviews of the commands under way, the innermost last.
_reviews: list[Review] = []


def current_review() -> Review | None:
    """The review of the command under way; None in a library."""
    return _reviews[-1] if _reviews else None


@contextmanager
def command_session(say: Callable[[str], None]) -> Iterator[Callable[[Exception], bool]]:
    """Keep runs with changed tools from beginning, and ask about the tools, for as long as the command runs.

    Args:
        say: prints a line for the user.
    """
    review = Review()
    _reviews.append(review)
    try:
        yield review.recover
    finally:
        _reviews.remove(review)


def print_changes(changes: Sequence[ToolChange]) -> None:
    """Print what differs, for a person."""
    for change in changes:
        cli.print_text(f"  {cli.one_line(change.tool)}: {change.reason}\n")
        cli.print_text("".join(f"    {line}\n" for line in change.diff.split("\n")))
