"""The hooks that log one line an event through `logging` of the standard library.

Not through structlog: its users configure it behind a handler of the standard library, as do all collectors,
and get these lines there with their values in ``record.locus``. So it need not be installed.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from datetime import UTC
from typing import Any, Literal

from attrs import evolve, frozen

from locus import ModelChunkEvent, TerminateEvent
from locus.plugin import Event, Hook, RunContext
from locus_plugin_logging.fields import event_fields
from locus_plugin_logging.levels import level_number, level_of
from locus_plugin_logging.rendering import json_line, text_line
from locus_plugin_logging.settings import LoggingSettings
from locus_plugin_logging.worker import Worker, prepare

__all__ = ["LoggingHook", "StructuredLoggingHook"]


@frozen
class _Line:
    """A line that is to be written."""

    event: Event
    level: int
    agent: str | None


class LoggingHook(Hook):
    """Logs one line of text an event: ``tool_complete run_id=... tool_name=add success=true``.

    Writing happens in a thread, in order; the end of a segment waits for it.

    Args:
        level: what is less important is not logged: a name, in any case, or a number.
        payloads: log prompts, arguments, results and answers as well.
        max_chars: how much of a text a line shows, in characters.
        levels: by type of event, the level it has in place of the usual one.
        logger: the logger that gets the lines, or its name. While neither it nor one above it has a handler, they go to
            standard error.

    Raises:
        ValueError: the level is unknown.
    """

    #: `on_model_chunk` gets them.
    hears_chunks = False
    _format: Literal["json", "text"] = "text"

    def __init__(
        self,
        level: str | int = "INFO",
        *,
        payloads: bool = False,
        max_chars: int = 1_000,
        levels: Mapping[str, str | int] | None = None,
        logger: str | logging.Logger = "locus.run",
    ) -> None:
        self.settings = LoggingSettings(
            level=level, format=self._format, payloads=payloads, max_chars=max_chars, levels=levels or {}
        )
        self._logger = logging.getLogger(logger) if isinstance(logger, str) else logger
        self.settings = evolve(self.settings, logger=self._logger.name)
        self._least = level_number(level)
        self._levels = {kind: level_number(level) for kind, level in self.settings.levels.items()}
        self._worker = Worker(self._write)
        if self._levels.get(ModelChunkEvent.type, logging.DEBUG) < self._least:
            # A hook without chunks does not make the model stream.
            self.on_model_chunk = None  # type: ignore[method-assign,assignment]
        if max(logging.ERROR, *self._levels.values(), 0) < self._least:
            self.on_event = None  # type: ignore[method-assign,assignment]

    def on_model_chunk(self, event: ModelChunkEvent, run: RunContext) -> None:
        """Log a chunk."""
        self._log(event, run)

    async def on_event(self, event: Event, run: RunContext) -> None:
        """Log any other event; after the last one of a segment everything is written."""
        self._log(event, run)
        if not isinstance(event, TerminateEvent):
            await self._worker.room()
            return
        await self._worker.flush()
        if self._worker.failed:
            run.report("logging", f"{self._worker.failed} lines could not be written: {self._worker.error!r}")

    def _log(self, event: Event, run: RunContext) -> None:
        level = level_of(event, self._levels)
        if level < self._least:
            return
        if self.settings.payloads:
            prepare(event)
        self._worker.put(_Line(event, level, run.state.agent_id))

    # -- in the thread --------------------------------------------------------------------------------

    def _write(self, line: _Line) -> None:
        event, name = line.event, logging.getLevelName(line.level)
        values = {
            "run_id": event.run_id,
            "thread_id": event.thread_id,
            "agent": line.agent,
            "iteration": event.iteration,
            "seq": event.seq,
            **({"segment": event.segment} if event.segment else {}),
            **({"parent_run_id": event.parent_run_id} if event.parent_run_id else {}),
            **({"replayed": True} if event.replayed else {}),
            **event_fields(event, payloads=self.settings.payloads, max_chars=self.settings.max_chars),
        }
        at = event.timestamp.astimezone(UTC).isoformat(timespec="milliseconds")
        if self.settings.format == "json":
            text = alone = json_line({"time": at, "level": name, "event": event.type, **values})
        else:
            text = f"{event.type} {text_line(values)}"
            alone = f"{at} {name} {text}"
        self._hand_over(text, alone, line, {"event": event.type, **values})

    def _hand_over(self, text: str, alone: str, line: _Line, values: dict[str, Any]) -> None:
        logger = self._logger
        if not logger.hasHandlers():
            stream = sys.stderr
            stream.write(f"{alone}\n")
            stream.flush()
            return
        record = logger.makeRecord(logger.name, line.level, "(locus)", 0, "%s", (text,), None, extra={"locus": values})
        # When it happened, not when the thread came to it.
        record.created = line.event.timestamp.timestamp()
        record.msecs = int(record.created * 1000) % 1000
        logger.handle(record)


class StructuredLoggingHook(LoggingHook):
    """The same, each line an object of JSON.

    Args:
        level, payloads, max_chars, levels, logger: as of `LoggingHook`.
    """

    _format = "json"
