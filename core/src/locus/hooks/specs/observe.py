"""Observe: every event, as it is emitted.

Sync or async; `locus_on_model_chunk` sync only, and an async `locus_on_event` does not hear chunks. Return
None, or a directive: Cancel beats Reject beats Retry beats Continue, the first of equals wins. `Reject` answers
`locus_on_tool_start` alone, where it is final for that call. A failing observer is skipped and reported to
everybody else; after its third failure in a run it is not called again. A failing guard cancels the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus.hooks.markers import Lifetime, spec

if TYPE_CHECKING:
    from locus.core.directives import Directive
    from locus.core.events import (
        CheckpointEvent,
        Event,
        HookFailedEvent,
        InterruptEvent,
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
    from locus.hooks.context import RunContext

_SINCE = Lifetime(since=(1, 0))


@spec(_SINCE)
def locus_on_event(event: Event, run: RunContext) -> Directive | None:
    """Any event. Of one hook, the method for the event's own kind is called before this one."""


@spec(_SINCE)
def locus_on_run_start(event: RunStartEvent, run: RunContext) -> Directive | None:
    """A segment of a run begins."""


@spec(_SINCE)
def locus_on_iteration(event: IterationEvent, run: RunContext) -> Directive | None:
    """An iteration begins, right before its model call."""


@spec(_SINCE)
def locus_on_think(event: ThinkEvent, run: RunContext) -> Directive | None:
    """Think has an answer."""


@spec(_SINCE)
def locus_on_model_chunk(event: ModelChunkEvent, run: RunContext) -> Directive | None:
    """A piece of the answer as it streams. Sync only."""


@spec(_SINCE)
def locus_on_model_complete(event: ModelCompleteEvent, run: RunContext) -> Directive | None:
    """A model call ended."""


@spec(_SINCE)
def locus_on_model_error(event: ModelErrorEvent, run: RunContext) -> Directive | None:
    """A model call failed."""


@spec(_SINCE)
def locus_on_model_restart(event: ModelRestartEvent, run: RunContext) -> Directive | None:
    """The model is asked again; what the attempts before streamed is void."""


@spec(_SINCE)
def locus_on_tool_start(event: ToolStartEvent, run: RunContext) -> Directive | None:
    """A tool body is about to run. `Reject` refuses this one call, as a decider would; no `Retry` undoes it."""


@spec(_SINCE)
def locus_on_tool_progress(event: ToolProgressEvent, run: RunContext) -> Directive | None:
    """A running tool reports progress."""


@spec(_SINCE)
def locus_on_tool_complete(event: ToolCompleteEvent, run: RunContext) -> Directive | None:
    """A tool call ended."""


@spec(_SINCE)
def locus_on_tool_cache_hit(event: ToolCacheHitEvent, run: RunContext) -> Directive | None:
    """An idempotent call was answered from an earlier execution."""


@spec(_SINCE)
def locus_on_reflect(event: ReflectEvent, run: RunContext) -> Directive | None:
    """A self-evaluation was made."""


@spec(_SINCE)
def locus_on_interrupt(event: InterruptEvent, run: RunContext) -> Directive | None:
    """A tool, or a hook that decides about a call, asks a person."""


@spec(_SINCE)
def locus_on_checkpoint(event: CheckpointEvent, run: RunContext) -> Directive | None:
    """A transition is committed."""


@spec(_SINCE)
def locus_on_hook_failed(event: HookFailedEvent, run: RunContext) -> Directive | None:
    """A hook failed; not told to the plugin whose hook it is."""


@spec(_SINCE)
def locus_on_terminate(event: TerminateEvent, run: RunContext) -> Directive | None:
    """The segment ends."""
