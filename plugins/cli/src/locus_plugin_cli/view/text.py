"""`TextView`: a run as it happens, for people; plain when the output is not a terminal."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from attrs import fields

from locus.core.events import (
    Event,
    HookFailedEvent,
    IterationEvent,
    ModelChunkEvent,
    ModelCompleteEvent,
    ModelErrorEvent,
    ModelRestartEvent,
    ReflectEvent,
    RunStartEvent,
    TerminateEvent,
    ThinkEvent,
    ToolCacheHitEvent,
    ToolCompleteEvent,
    ToolProgressEvent,
    ToolStartEvent,
)
from locus_plugin_cli.text import escape_controls, format_call, format_ms, format_tokens, one_line, shorten
from locus_plugin_cli.view.screen import Screen
from locus_plugin_cli.view.tally import count_of

__all__ = ["TextView"]

_DIM, _CALL, _GOOD, _BAD, _WARN = "dim", "cyan", "green", "bold red", "yellow"

#: Why a run stops, for those who do not know the conditions by name.
_REASONS = {
    "NoToolCalls": "the model answered",
    "MaxIterations": "as many model calls as allowed",
    "ToolCalled": "the tool that ends the run was called",
    "TokenLimit": "the token budget is used up",
    "TimeLimit": "the time is up",
    "CostLimit": "the money is spent",
    "Interrupted": "a person is asked",
}

#: Events that a person need not see.
_SILENT = frozenset({"checkpoint", "interrupt", "model_error"})

_ENVELOPE = frozenset(field.name for field in fields(Event))


class TextView:
    """Writes a run as text.

    Args:
        header: say at the start which model it is.
    """

    def __init__(self, *, header: bool = True) -> None:
        self._screen = Screen()
        self._header = header
        self._arrow, self._back = ("→", "←") if self._screen.can("→←") else ("->", "<-")
        self._started: set[tuple[str, str, str]] = set()
        #: Nesting of child runs by run id.
        self._depth: dict[str, int] = {}
        self._streamed = ""
        self._last: ModelCompleteEvent | None = None
        self._error = ""
        self._show: dict[type[Event], Callable[[Any], None]] = {
            RunStartEvent: self._run_start,
            IterationEvent: self._iteration,
            ModelChunkEvent: self._chunk,
            ModelCompleteEvent: self._model_complete,
            ModelErrorEvent: self._model_error,
            ModelRestartEvent: self._restart,
            ThinkEvent: self._think,
            ToolStartEvent: self._tool_start,
            ToolProgressEvent: self._tool_progress,
            ToolCompleteEvent: self._tool_complete,
            ToolCacheHitEvent: self._cache_hit,
            ReflectEvent: self._reflect,
            HookFailedEvent: self._hook_failed,
            TerminateEvent: self._terminate,
        }

    def running(self) -> AbstractContextManager[None]:
        """Keep the terminal while a run is under way."""
        return self._screen.running()

    def note(self, text: str) -> None:
        """One line between the events."""
        self._screen.wipe()
        self._screen.line(text, _WARN)

    def show(self, event: Event) -> None:
        """Show one event; those of plugins in a general form."""
        known = self._show.get(type(event))
        if known is not None:
            known(event)
        elif event.type not in _SILENT:
            self._other(event)

    # -- the model --------------------------------------------------------------------------------

    def _run_start(self, event: RunStartEvent) -> None:
        if event.parent_run_id is not None:
            self._depth[event.run_id] = self._depth.get(event.parent_run_id, 0) + 1
            self._line(event, "child run", _DIM)
        elif self._header and not event.resumed:
            self._line(event, event.model, _DIM)
        self._screen.status("starting")

    def _iteration(self, event: IterationEvent) -> None:
        self._streamed = ""
        self._line(event, f"iteration {event.iteration}", _DIM)
        used = f" ({event.token_total:,} tokens so far)" if event.token_total else ""
        self._screen.status(f"thinking{used}")

    def _chunk(self, event: ModelChunkEvent) -> None:
        if event.purpose != "think" or event.run_id in self._depth:
            return  # several of them may stream at once; they are shown when they are whole
        if event.kind == "tool_call":
            if not self._streamed:
                self._screen.status("writing a tool call")
            return
        if self._streamed and self._streamed != event.kind:
            self._screen.end_line()
        self._streamed = event.kind
        self._screen.status("")
        self._screen.write(event.text, _DIM if event.kind == "reasoning" else "")

    def _model_complete(self, event: ModelCompleteEvent) -> None:
        if event.purpose == "think":
            self._last = event
            return
        self._line(event, f"{event.purpose}: {format_tokens(event.usage)}, {format_ms(event.duration_ms)}", _DIM)

    def _model_error(self, event: ModelErrorEvent) -> None:
        self._error = f"{event.error_type}: {event.error}"

    def _restart(self, event: ModelRestartEvent) -> None:
        self._streamed = ""
        why = one_line(event.reason or self._error)
        self._line(event, f"asked again (attempt {event.attempt + 1}){': ' if why else ''}{why}", _WARN)
        self._screen.status("thinking")

    def _think(self, event: ThinkEvent) -> None:
        if event.text and self._streamed != "text":
            self._line(event, event.text)
        for block in event.hosted:
            self._line(event, f"{block.provider}: {one_line(str(block.data.get('type', 'a block')))}", _CALL)
        self._streamed = ""
        self._screen.status("")
        done = self._last
        if done is not None and done.run_id == event.run_id:
            self._last = None
            use = done.usage
            cached = f" ({use.cached_tokens:,} cached)" if use.cached_tokens else ""
            cut = ", cut at the limit" if done.stop_reason == "length" else ""
            text = (
                f"{use.prompt_tokens:,} tokens in{cached}, {use.completion_tokens:,} out, {format_ms(done.duration_ms)}"
            )
            self._line(event, f"  {text}{cut}", _DIM)

    # -- tools ------------------------------------------------------------------------------------

    def _tool_start(self, event: ToolStartEvent) -> None:
        self._started.add((event.run_id, event.tool_name, event.call_id))
        self._line(event, f"{self._arrow} {format_call(event.tool_name, event.arguments)}", _CALL)
        self._screen.status(f"{event.tool_name} is running")

    def _tool_progress(self, event: ToolProgressEvent) -> None:
        total = "" if event.total is None else f" of {event.total:g}"
        amount = "" if event.progress is None else f" {event.progress:g}{total}"
        self._screen.status(f"{event.tool_name}:{amount} {one_line(event.message)}".rstrip())

    def _tool_complete(self, event: ToolCompleteEvent) -> None:
        key = (event.run_id, event.tool_name, event.call_id)
        began = key in self._started
        self._started.discard(key)
        # A call that was refused never started, so its arguments have not been shown.
        name = event.tool_name if began else format_call(event.tool_name, event.arguments)
        took = f" ({format_ms(event.duration_ms)})" if began else ""
        if event.error is not None:
            self._line(event, f"{self._back} {name} failed{took}: {shorten(event.error)}", _BAD)
        else:
            self._line(event, f"{self._back} {name}{took}: {shorten(event.result or '')}", _GOOD)
        self._screen.status("tools are running" if self._started else "")

    def _cache_hit(self, event: ToolCacheHitEvent) -> None:
        said = event.error if event.error is not None else event.result or ""
        text = f"{format_call(event.tool_name, event.arguments)} (not run again): {shorten(said)}"
        self._line(event, f"{self._back} {text}", _BAD if event.error is not None else _GOOD)

    # -- the rest ---------------------------------------------------------------------------------

    def _reflect(self, event: ReflectEvent) -> None:
        text = f"reflect: {event.assessment}, confidence {event.confidence:.2f}"
        said = event.guidance or event.judgment
        self._line(event, f"{text}{': ' if said else ''}{one_line(said)}", _DIM)

    def _hook_failed(self, event: HookFailedEvent) -> None:
        rest = "; it is not called again in this run" if event.quarantined else ""
        self._line(event, f"{event.plugin}: {event.hook} failed: {one_line(event.error)}{rest}", _WARN)

    def _other(self, event: Event) -> None:
        shown = getattr(event, "shown", None)
        if isinstance(shown, str):
            if shown:
                self._line(event, escape_controls(shown), _DIM)
            return  # "" = what it says is in the lines of other events
        detail = getattr(event, "detail", "")
        if getattr(event, "status", "") == "failed" and isinstance(detail, str) and detail:
            # Why something could not be used is worth its lines.
            self._line(event, f"{event.type}: {escape_controls(detail)}", _BAD)
            return
        values = {
            field.name: getattr(event, field.name) for field in fields(type(event)) if field.name not in _ENVELOPE
        }
        self._line(event, format_call(event.type, values), _DIM)

    def _terminate(self, event: TerminateEvent) -> None:
        self._screen.status("")
        if event.parent_run_id is not None:
            self._line(event, f"child run ended: {event.reason}", _DIM)
            return
        why = event.detail or _REASONS.get(event.reason, "")
        if event.error is not None:
            why = event.error
        parts = [
            f"{event.reason}{f' ({one_line(why)})' if why else ''}",
            count_of(event.iterations_used, "iteration"),
            count_of(event.total_tool_calls, "tool call"),
            format_tokens(event.usage),
        ]
        self._line(event, f"stopped: {', '.join(parts)}", _BAD if event.ending.is_failure else _DIM)

    def _line(self, event: Event, text: str, style: str = "") -> None:
        indent = "  " * self._depth.get(event.run_id, 0)
        self._screen.line("\n".join(indent + line for line in text.split("\n")), style)
