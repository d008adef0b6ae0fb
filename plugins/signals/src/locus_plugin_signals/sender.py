"""`emit` and `emit_sync`: send a signal of the run that this code is part of, or do nothing where no run is.

A signal tells; it must never change what it tells about. So nothing raises here but a cancellation, and nothing is
emitted once the run has ended.

- **In a task** of the run, `emit` waits until all listeners have heard, as every event of a run does.
- **In a worker thread**, such as the body of a synchronous tool, `emit_sync` goes to the event loop and waits there.
- **In the thread of the event loop** it cannot wait: the signal is kept, and goes before the run's next one, or at the
  end of the node under way where `Agent(signals=True)`. A task of its own was rejected: no scope would own it, and it
  could come after the end of the run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import anyio
from anyio import from_thread
from attrs import fields

from locus.plugin import Event, RunContext, StashKey, current_run
from locus_plugin_signals import events

__all__ = [
    "EV_DEEPAGENT_FS_READ",
    "EV_DEEPAGENT_FS_WRITE",
    "EV_DEEPAGENT_SUBAGENT_COMPLETED",
    "EV_DEEPAGENT_SUBAGENT_SPAWNED",
    "EV_DEEPAGENT_TODO_ADDED",
    "EV_DEEPAGENT_TODO_COMPLETED",
    "EV_RESEARCH_CAUSAL_BUILT",
    "EV_RESEARCH_EXECUTE_COMPLETED",
    "EV_RESEARCH_EXECUTE_STARTED",
    "EV_RESEARCH_GROUNDING_EVALUATED",
    "EV_RESEARCH_REGENERATE_COMPLETED",
    "EV_RESEARCH_REGENERATE_STARTED",
    "EV_RESEARCH_REPLAN",
    "EV_RESEARCH_SUMMARIZE_COMPLETED",
    "SIGNALS",
    "deliver",
    "emit",
    "emit_sync",
]

EV_RESEARCH_EXECUTE_STARTED = "research.execute.started"
EV_RESEARCH_EXECUTE_COMPLETED = "research.execute.completed"
EV_RESEARCH_CAUSAL_BUILT = "research.causal.built"
EV_RESEARCH_SUMMARIZE_COMPLETED = "research.summarize.completed"
EV_RESEARCH_GROUNDING_EVALUATED = "research.grounding.evaluated"
EV_RESEARCH_REGENERATE_STARTED = "research.regenerate.started"
EV_RESEARCH_REGENERATE_COMPLETED = "research.regenerate.completed"
EV_RESEARCH_REPLAN = "research.replan"
EV_DEEPAGENT_SUBAGENT_SPAWNED = "deepagent.subagent.spawned"
EV_DEEPAGENT_SUBAGENT_COMPLETED = "deepagent.subagent.completed"
EV_DEEPAGENT_TODO_ADDED = "deepagent.todo.added"
EV_DEEPAGENT_TODO_COMPLETED = "deepagent.todo.completed"
EV_DEEPAGENT_FS_WRITE = "deepagent.fs.write"
EV_DEEPAGENT_FS_READ = "deepagent.fs.read"

#: The event of each signal.
SIGNALS: dict[str, type[Event]] = {
    EV_RESEARCH_EXECUTE_STARTED: events.ResearchExecuteStartedEvent,
    EV_RESEARCH_EXECUTE_COMPLETED: events.ResearchExecuteCompletedEvent,
    EV_RESEARCH_CAUSAL_BUILT: events.ResearchCausalBuiltEvent,
    EV_RESEARCH_SUMMARIZE_COMPLETED: events.ResearchSummarizeCompletedEvent,
    EV_RESEARCH_GROUNDING_EVALUATED: events.ResearchGroundingEvaluatedEvent,
    EV_RESEARCH_REGENERATE_STARTED: events.ResearchRegenerateStartedEvent,
    EV_RESEARCH_REGENERATE_COMPLETED: events.ResearchRegenerateCompletedEvent,
    EV_RESEARCH_REPLAN: events.ResearchReplanEvent,
    EV_DEEPAGENT_SUBAGENT_SPAWNED: events.DeepagentSubagentSpawnedEvent,
    EV_DEEPAGENT_SUBAGENT_COMPLETED: events.DeepagentSubagentCompletedEvent,
    EV_DEEPAGENT_TODO_ADDED: events.DeepagentTodoAddedEvent,
    EV_DEEPAGENT_TODO_COMPLETED: events.DeepagentTodoCompletedEvent,
    EV_DEEPAGENT_FS_WRITE: events.DeepagentFsWriteEvent,
    EV_DEEPAGENT_FS_READ: events.DeepagentFsReadEvent,
}

#: What every event carries, which is filled in when it is emitted.
_ENVELOPE = frozenset(each.name for each in fields(Event))

#: How much of a name, and of what is wrong with a payload, an event shows, in characters.
_SHOWN = 300

#: Signals that were sent where nothing could wait.
_KEPT: StashKey[deque[Event]] = StashKey("signals: what is still to be emitted")


async def emit(name: str, /, **payload: Any) -> None:
    """Send a signal.

    Outside of a run nothing happens. A signal with another payload than its event has, or with a name that is not
    known, is not sent; a `SignalRefusedEvent` says what is wrong with it.

    Args:
        name: which one, such as `EV_RESEARCH_REPLAN`.
        payload: its fields. Texts that are previews are cut to their length, so they can be given whole.
    """
    try:
        run = current_run()
        if run is not None:
            await deliver(run)
            await run.emit(_event_of(name, payload))
    except Exception:  # noqa: BLE001, S110 - a signal never fails who sends it
        pass


def emit_sync(name: str, /, **payload: Any) -> None:
    """`emit` where nothing can be awaited; see the module for when listeners hear of it."""
    try:
        run = current_run()
        if run is None:
            return
        event = _event_of(name, payload)
        if _is_in_event_loop() or not _send_from_thread(run, event):
            run.stash.setdefault(_KEPT, deque()).append(event)
    except Exception:  # noqa: BLE001, S110 - as above
        pass


async def deliver(run: RunContext) -> None:
    """Emit what is kept, oldest first."""
    kept = run.stash.get(_KEPT, None)
    while kept:
        await run.emit(kept.popleft())


def _event_of(name: Any, payload: dict[str, Any]) -> Event:
    kind = SIGNALS.get(name) if isinstance(name, str) else None
    if kind is None:
        return events.SignalRefusedEvent(signal=_shorten(name), problem="expected one of the EV_ constants")
    wanted = {each.name for each in fields(kind)} - _ENVELOPE
    if payload.keys() != wanted:
        problem = f"expected the fields {_join(wanted)}, got {_join(payload)}"
        return events.SignalRefusedEvent(signal=name, problem=problem[:_SHOWN])
    try:
        return kind(**payload)
    except Exception as e:  # noqa: BLE001 - values may raise anything when they are looked at
        return events.SignalRefusedEvent(signal=name, problem=_shorten(e))


def _join(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _shorten(value: object) -> str:
    try:
        return str(value)[:_SHOWN]
    except Exception:  # noqa: BLE001 - as above
        return f"<{type(value).__name__}>"


def _is_in_event_loop() -> bool:
    try:
        anyio.get_cancelled_exc_class()
    except RuntimeError:
        return False
    return True


def _send_from_thread(run: RunContext, event: Event) -> bool:
    """Emit from a worker thread; False in any other thread."""
    has_begun = False

    async def send() -> None:
        nonlocal has_begun
        has_begun = True
        await deliver(run)
        await run.emit(event)

    try:
        from_thread.run(send)
    except (KeyboardInterrupt, SystemExit):
        raise
    except RuntimeError:
        return has_begun
    except BaseException:  # noqa: BLE001, S110 - a cancellation ends the task that waits for this thread by itself
        pass
    return True
