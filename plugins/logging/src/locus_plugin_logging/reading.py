"""Reading a run log back."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import frozen

from locus.core.errors import CheckpointError
from locus.core.events import event_from_json
from locus.plugin import Event
from locus_plugin_logging.runfile import rotated_path
from locus_plugin_logging.runlog import FORMAT
from locus_plugin_logging.usage import RunUsage

__all__ = ["RunLog", "RunLogEntry", "read_run_log"]


@frozen
class RunLogEntry:
    """One line.

    Args:
        event: equal to the one that was emitted.
        spent: what its run had spent by then.
    """

    event: Event
    spent: RunUsage


@frozen
class RunLog:
    """What a run log holds.

    Args:
        entries: in the order in which they were written. Those of runs that went on at the same time alternate.
        problems: what could not be read, and why, such as a line that a crash has cut off.
    """

    entries: tuple[RunLogEntry, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def events(self) -> tuple[Event, ...]:
        """The events of all entries."""
        return tuple(entry.event for entry in self.entries)

    def of_run(self, run_id: str) -> RunLog:
        """The entries of one run. Problems belong to no run, and all stay."""
        return RunLog(tuple(entry for entry in self.entries if entry.event.run_id == run_id), self.problems)


def read_run_log(path: str | os.PathLike[str], *, rotated: bool = True) -> RunLog:
    """Read a run log, and the files that were set aside before it.

    Args:
        path: the file that `RunLogHook` writes.
        rotated: read ``.1``, ``.2``, ... as well, the oldest first.

    Raises:
        FileNotFoundError: the file does not exist.
    """
    newest = Path(path).expanduser()
    files = [newest]
    number = 1
    while rotated and rotated_path(newest, number).exists():
        files.append(rotated_path(newest, number))
        number += 1
    if len(files) > 1 and not newest.exists():
        files = files[1:]  # set aside, and nothing written since
    entries: list[RunLogEntry] = []
    problems: list[str] = []
    for file in reversed(files):
        for number, line, whole in _lines(file):
            try:
                entries.append(_entry(line))
            except (ValueError, KeyError, TypeError, CheckpointError) as e:
                cut = "" if whole else ", which is cut off in the middle"
                problems.append(f"{file}: line {number}{cut}: {e or type(e).__name__}")
    return RunLog(tuple(entries), tuple(problems))


def _lines(file: Path) -> Iterator[tuple[int, bytes, bool]]:
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            yield number, line, line.endswith(b"\n")


def _entry(line: bytes) -> RunLogEntry:
    form: Any = json.loads(line)
    if not isinstance(form, dict):
        raise ValueError("not an object")
    if form["format"] != FORMAT:
        raise ValueError(f"has the format {form['format']!r}; this version reads {FORMAT}")
    return RunLogEntry(event_from_json(form["event"]), RunUsage(**form["spent"]))
