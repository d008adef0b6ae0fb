"""The hook that writes every event in full to a file."""

from __future__ import annotations

import json
import logging
import os

from attrs import asdict, frozen

from locus import ModelChunkEvent, TerminateEvent
from locus.core.events import event_to_json
from locus.plugin import Event, Hook, RunContext, StashKey
from locus_plugin_logging.runfile import RunFile
from locus_plugin_logging.usage import RunUsage, Tally
from locus_plugin_logging.worker import Worker, prepare

__all__ = ["FORMAT", "RunLogHook"]

#: The format of a line; `read_run_log` refuses newer ones.
FORMAT = 1

_LOG = logging.getLogger("locus.logging")


@frozen
class _Progress:
    event: Event
    spent: RunUsage


class RunLogHook(Hook):
    """Writes one line of JSON an event to a file, with everything that is in it, and what the run has spent by then.

    Writing happens in a thread, in order; the end of a segment waits for it, a cancelled one too. What cannot be
    written is counted, logged once as a warning of the logger ``locus.logging``, and reported; the run continues.

    Args:
        path: the file; it is made with the mode 0600.
        max_bytes: the file is set aside as ``.1``, ``.2``, ... before it would grow beyond this.
        backups: how many of those are kept.
        chunks: write streamed chunks as well.
        fsync: wait at the end of a segment until the disk has it.
    """

    #: `on_model_chunk` gets them.
    hears_chunks = False

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_bytes: int = 50_000_000,
        backups: int = 5,
        chunks: bool = True,
        fsync: bool = False,
    ) -> None:
        self._file = RunFile(path, max_bytes, backups)
        self._fsync = fsync
        self._warned = False
        self._tally: StashKey[Tally] = StashKey("run_log")
        self._worker = Worker(self._write, self._file.close)
        if not chunks:
            self.on_model_chunk = None  # type: ignore[method-assign,assignment]

    def on_model_chunk(self, event: ModelChunkEvent, run: RunContext) -> None:
        """Write a chunk."""
        self._tell(event, run)

    async def on_event(self, event: Event, run: RunContext) -> None:
        """Write any other event; after the last one of a segment everything is written."""
        self._tell(event, run)
        if not isinstance(event, TerminateEvent):
            await self._worker.room()
            return
        if self._fsync:
            self._worker.put(None)
        await self._worker.flush()
        if self._worker.failed:
            run.report("logging", f"{self._worker.failed} events are not in {self._file.path}: {self._worker.error}")
            if not self._warned:
                self._warned = True
                _LOG.warning("the run log %s cannot be written: %s", self._file.path, self._worker.error)

    def _tell(self, event: Event, run: RunContext) -> None:
        tally = run.stash.get(self._tally, None)
        if tally is None:
            tally = run.stash.setdefault(self._tally, Tally())
        prepare(event)
        self._worker.put(_Progress(event, tally.hear(event, run)))

    # -- in the thread --------------------------------------------------------------------------------

    def _write(self, told: _Progress | None) -> None:
        if told is None:
            self._file.sync()
            return
        line = {"format": FORMAT, "event": event_to_json(told.event), "spent": asdict(told.spent)}
        self._file.write(json.dumps(line, separators=(",", ":")).encode("ascii") + b"\n")
