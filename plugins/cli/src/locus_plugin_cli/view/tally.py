"""`Tally`: what a command has done so far, counted from events, so that it can be said however the run ends."""

from __future__ import annotations

from collections import Counter

from locus.core.events import (
    Event,
    IterationEvent,
    ModelCompleteEvent,
    TerminateEvent,
    ToolCompleteEvent,
    ToolStartEvent,
)
from locus.core.messages import Usage
from locus_plugin_cli.text import format_tokens

__all__ = ["Tally", "count_of"]


def count_of(number: int, noun: str) -> str:
    """``"1 tool call"``, ``"2 tool calls"``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


class Tally:
    """Counts the events of the runs of one command."""

    def __init__(self) -> None:
        self.iterations = 0
        #: Tool bodies that came to their end, by name.
        self.ran: Counter[str] = Counter()
        self.usage = Usage()
        #: Whether anything happened at all.
        self.began = False
        self._running: dict[tuple[str, str, str], str] = {}
        #: Runs whose model is asked and has not answered.
        self._asking: set[str] = set()

    def see(self, event: Event) -> None:
        """Count one event; those of child runs count as well, but for their iterations."""
        self.began = True
        if isinstance(event, IterationEvent):
            self.iterations += event.parent_run_id is None
            self._asking.add(event.run_id)
        elif isinstance(event, ModelCompleteEvent):
            self.usage += event.usage
            self._asking.discard(event.run_id)
        elif isinstance(event, ToolStartEvent):
            self._running[(event.run_id, event.tool_name, event.call_id)] = event.tool_name
        elif isinstance(event, ToolCompleteEvent):
            if self._running.pop((event.run_id, event.tool_name, event.call_id), None) is not None:
                self.ran[event.tool_name] += 1
        elif isinstance(event, TerminateEvent):
            self._asking.discard(event.run_id)
            if event.ending.is_interrupted:
                self._running.clear()  # those that ask were left, not broken off

    @property
    def under_way(self) -> tuple[str, ...]:
        """What was started and has not come to its end: answers of models, and tools by name."""
        return (*("an answer of the model" for _ in self._asking), *self._running.values())

    def sentence(self) -> str:
        """What was done, in one line."""
        parts = [count_of(self.iterations, "iteration")]
        if self.ran:
            names = ", ".join(name if n == 1 else f"{name} x{n}" for name, n in self.ran.items())
            parts.append(f"{count_of(self.ran.total(), 'tool call')} ran ({names})")
        else:
            parts.append("no tool ran")
        if self.under_way:
            parts.append(f"broken off: {', '.join(self.under_way)}")
        parts.append(format_tokens(self.usage))
        return ", ".join(parts)
