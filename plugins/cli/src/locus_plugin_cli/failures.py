"""From an exception to what the user reads: one line, and the exit status that goes with it."""

from __future__ import annotations

import traceback
from typing import Any

from locus import AgentResult
from locus.core.errors import (
    ConfigError,
    InputError,
    InterruptMismatch,
    LocusError,
    NothingToResume,
    PluginError,
    SettingsError,
    UnknownName,
)
from locus.plugins import scrub
from locus_plugin_cli import status
from locus_plugin_cli.distributions import install_hint
from locus_plugin_cli.streams import print_error
from locus_plugin_cli.text import escape_controls, one_line

__all__ = ["explain_error", "explain_result", "name_commands", "show_trace"]

#: What is wrong before anything ran, and can be corrected by the user of the command.
_USAGE = (ConfigError, PluginError, InputError, NothingToResume, InterruptMismatch)

#: Kinds of names that a plugin answers to.
_INSTALLABLE = ("plugin", "model provider", "checkpointer provider", "backend provider", "option of Agent")

#: What the kernel says to programs, and what is typed instead.
_TYPED = (
    ("call resume(thread_id)", "type `locus threads resume`"),
    (
        "write what can be read into a new file with SqliteStore.salvage()",
        "save what can be read with `locus threads salvage NEW.db`",
    ),
)


def name_commands(text: str) -> str:
    """A text of the library with the commands that are typed in place of its calls."""
    for said, typed in _TYPED:
        text = text.replace(said, typed)
    return text


def explain_error(error: BaseException) -> tuple[int, str]:
    """The exit status and the text for an exception; several lines only for several wrong settings."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, SettingsError):
        return status.USAGE, "\n".join(scrub(one_line(problem)) for problem in error.problems)
    # What a store or a provider says of an address that it got is its own text, and may have the password in it.
    written = getattr(error, "__notes__", ())
    notes = "".join(f" ({one_line(note)})" for note in written if "\n" not in note)
    notes += "".join(f"\n{escape_controls(note)}" for note in written if "\n" in note)
    if isinstance(error, LocusError):
        code = status.USAGE if isinstance(error, _USAGE) else status.FAILED
        hint = install_hint(error.name) if isinstance(error, UnknownName) and error.kind in _INSTALLABLE else ""
        return code, scrub(f"{name_commands(one_line(str(error)))}{hint}{notes}")
    kind = type(error).__name__
    return status.FAILED, scrub(f"{kind}: {one_line(str(error))}{notes}; --debug shows where")


def explain_result(result: AgentResult[Any]) -> str:
    """Why a run failed, in one line."""
    error = result.error
    if error is None:
        return one_line(f"{result.stop_reason}: {result.detail}" if result.detail else result.stop_reason)
    # A run that was resumed may know the error only as the journal has it: as text.
    kind = type(error).__name__ if isinstance(error, BaseException) else ""
    text = scrub(one_line(f"{kind}: {error}" if kind else str(error)))
    return text if text.startswith(result.stop_reason) else f"{result.stop_reason}, {text}"


def show_trace(error: object) -> None:
    """Write the traceback of an exception to standard error; a text has none."""
    if isinstance(error, BaseException):
        print_error(scrub("".join(traceback.format_exception(error))))
