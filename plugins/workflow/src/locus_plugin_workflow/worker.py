"""`Worker`: takes what is due of workflows from a store, and runs it with the handlers that it has.

One offer is one dispatch: of a run that was started, or of one iteration of a step. An offer is taken into a free slot,
extended while its handler runs, and ended last, when everything else is stored.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol, Self, TypeVar
from uuid import uuid4

import anyio

from locus import Agent
from locus.core.errors import ConfigError, Fenced, LocusError, StoreError, ThreadBusy, UnknownName
from locus.journal import Clock, Effects, InProcess, Offer, QueueStore
from locus.plugin import Lazy
from locus_plugin_workflow.agents import handler_of
from locus_plugin_workflow.client import WorkflowRun, check_store, show, start
from locus_plugin_workflow.definition import Duration, WorkflowDef, seconds_of
from locus_plugin_workflow.events import Observers
from locus_plugin_workflow.iteration import Iteration
from locus_plugin_workflow.runs import RUNS, Runs, queue_of
from locus_plugin_workflow.sleeping import SHORT_SLEEP

__all__ = ["Worker"]

#: Another distribution, which is there where its workers run these steps.
queue_workers: Any = Lazy("locus.worker")

_LOG = logging.getLogger("locus.workflow")

_Function = TypeVar("_Function", bound=Callable[[Any], Any])

#: Seconds: of one look into the queues, between two tries at a store that fails, and to end an offer when cancelled.
_LOOK, _AGAIN, _SHIELD = 1.0, 1.0, 5.0

#: Seconds after which the end of a run is looked at again that another worker was writing.
_SOON = 0.05


class Dispatched(Protocol):
    """What a dispatch is about: an offer, or a job of another worker."""

    @property
    def thread_id(self) -> str:
        """The thread of a run or of a step."""

    @property
    def queue(self) -> str:
        """Where it was offered."""

    @property
    def lease(self) -> float:
        """Seconds after which it is offered to another worker."""


class Worker:
    """Runs the steps of workflows.

    Args:
        store: where runs are kept: a journal store that is a queue.
        workflows: definitions whose handlers were given as functions or agents.
        handlers: handlers by name, as `handle` adds them.
        slots: how many dispatches at once.
        hooks: functions of a `StepEvent`, and wrappers of iterations, see `Observers`.
        name: of the worker, in errors and listings; None = host, process and a few letters.
        clock: its source of time; None = the machine's.
        max_attempts: after so many workers that died in one attempt the step fails.
        short_sleep: seconds up to which ``ctx.sleep`` keeps its slot; a longer one gives the step back meanwhile.

    Raises:
        ConfigError: the store keeps no queues, or another argument cannot be used.
    """

    def __init__(
        self,
        store: QueueStore,
        workflows: Iterable[WorkflowDef] | WorkflowDef = (),
        *,
        handlers: Mapping[str, Any] | None = None,
        slots: int = 4,
        hooks: Iterable[Any] = (),
        name: str | None = None,
        clock: Clock | None = None,
        max_attempts: int = 5,
        short_sleep: Duration = SHORT_SLEEP,
    ) -> None:
        check_store(store)
        if type(slots) is not int or slots < 1:
            raise ConfigError(f"slots: expected an integer greater than 0, got {slots!r}")
        self.store: Any = store
        self.name = name or f"{socket.gethostname()}.{os.getpid()}.{uuid4().hex[:4]}"
        self.slots = slots
        self._handlers: dict[str, Any] = {}
        self._busy, self._turn = 0, 0
        self._leaving, self._changed = anyio.Event(), anyio.Event()
        effects: Effects = InProcess(None if clock is None else clock.now)
        observers = Observers(hooks)
        self._runs = Runs(store=store, worker=self.name, effects=effects, observers=observers)
        self._iteration = Iteration(
            store=store,
            worker=self.name,
            effects=effects,
            find=self._find,
            observers=observers,
            reopen_run=self._runs.reopen,
            max_attempts=max_attempts,
            short_sleep=seconds_of("short_sleep", short_sleep),
        )
        for each in (workflows,) if isinstance(workflows, WorkflowDef) else workflows:
            self.add(each)
        for known, handler in (handlers or {}).items():
            self.handle(known, handler)

    # -- handlers ---------------------------------------------------------------------------------

    def handle(self, name: str, handler: Callable[[Any], Any] | Agent[Any, Any]) -> Self:
        """Say what runs the steps whose handler has this name.

        Args:
            name: as in the workflow.
            handler: an async function of a `TaskContext`, a plain one of a `SyncTaskContext`, or an agent.

        Raises:
            ConfigError: the name is taken, or the handler is neither.
        """
        if not isinstance(name, str) or not name:
            raise ConfigError(f"name: expected the name of a handler, got {name!r}")
        if self._handlers.get(name, handler) is not handler:
            raise ConfigError(f"this worker has another handler with the name {name!r}; choose another name")
        if not isinstance(handler, Agent) and not callable(handler):
            raise ConfigError(f"handler {name!r}: expected a function or an agent, got {handler!r:.80}")
        handler_of(handler)
        self._handlers[name] = handler
        return self

    def handler(self, name: str) -> Callable[[_Function], _Function]:
        """The same as `handle`, as a decorator."""

        def register(function: _Function) -> _Function:
            self.handle(name, function)
            return function

        return register

    def add(self, workflow: WorkflowDef) -> Self:
        """Know the handlers that a workflow was given as functions or agents."""
        for name, handler in workflow.local.items():
            self.handle(name, handler)
        return self

    def _find(self, name: str) -> Any:
        if name not in self._handlers:
            raise UnknownName("handler", name, self._handlers)
        return handler_of(self._handlers[name])

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues that it takes from: that of started runs, and one for each handler."""
        return (RUNS, *map(queue_of, self._handlers))

    # -- working ----------------------------------------------------------------------------------

    async def run(self, *, until_idle: bool = False) -> None:
        """Work until `drain` is called. Cancelled, it gives back what it has.

        Args:
            until_idle: leave as soon as nothing is ready and nothing is under way.
        """
        async with anyio.create_task_group() as group:
            while not self._leaving.is_set():
                if self._busy == self.slots:
                    await self._changed.wait()
                    continue
                offer = await self._take(0.0 if until_idle else _LOOK)
                if offer is not None:
                    self._busy += 1
                    group.start_soon(self._work, offer)
                elif until_idle:
                    if not self._busy:
                        return
                    with anyio.move_on_after(_SOON):
                        await self._changed.wait()

    async def run_workflow(
        self,
        workflow: WorkflowDef,
        input: Any = None,  # noqa: A002  the word of the source
        *,
        run_id: str | None = None,
        poll: float = 0.02,
    ) -> WorkflowRun:
        """Start a run, and work until it has ended: for programs of one process, and tests.

        Raises:
            StoreError: the store failed.
        """
        self.add(workflow)
        name = await start(self.store, workflow, input, run_id=run_id)
        async with self.at_work():
            while not (found := await show(self.store, name)).has_ended:
                with anyio.move_on_after(poll):
                    await self._changed.wait()
        return found

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[Self]:
        """Work in the background of an ``async with`` block; what is under way at its end is given back."""
        async with anyio.create_task_group() as group:
            group.start_soon(self.run)
            try:
                yield self
            finally:
                group.cancel_scope.cancel()

    def jobs(self) -> dict[str, Callable[[Any], Awaitable[Any]]]:
        """For ``locus.worker.Worker``, to run these steps beside agents: the queues, each with what runs a job."""

        async def run(job: Any) -> Any:
            with anyio.CancelScope() as cut:
                delay = await self._dispatch(job, cut)
                return None if delay is None else queue_workers.Back(delay=delay)
            return None

        return dict.fromkeys(self.queues, run)

    def drain(self) -> None:
        """Take no more, and leave when what is under way has ended its iteration. Call it in the event loop."""
        self._leaving.set()
        self._change()

    async def _take(self, wait: float) -> Offer | None:
        queues = self.queues
        self._turn = (self._turn + 1) % len(queues)
        try:
            found: Offer | None = await self.store.take((*queues[self._turn :], *queues[: self._turn]), self.name, wait)
        except StoreError:
            _LOG.exception("worker %s cannot take from its queues", self.name)
            await anyio.sleep(_AGAIN)
            return None
        return found

    async def _work(self, offer: Offer) -> None:
        """Do what an offer is about, and end it last."""
        delay: float | None = 0.0
        is_ours = True
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._extend, offer, group.cancel_scope)
                delay = await self._dispatch(offer, group.cancel_scope)
                group.cancel_scope.cancel()
        except* Fenced:
            is_ours = False  # another worker has the step, and an offer of its own
        except* LocusError as errors:
            _LOG.warning("worker %s gives %s back: %s", self.name, offer.thread_id, errors.exceptions[0])
            delay = offer.lease / 4
        finally:
            if is_ours:
                with anyio.move_on_after(_SHIELD, shield=True), contextlib.suppress(LocusError):
                    await (offer.done() if delay is None else offer.back(delay))
            self._busy -= 1
            self._change()

    async def _dispatch(self, offer: Dispatched, cut: anyio.CancelScope) -> float | None:
        """Run what is due; gives the seconds until it is due again, or None when nothing is left to do."""
        if offer.queue == RUNS:
            await self._runs.begin(offer.thread_id)
            return None
        try:
            record, state, left = await self._iteration.run(offer.thread_id, cut)
        except ThreadBusy:
            return offer.lease / 4
        if left is None:
            try:
                await self._runs.follow(record, state)
            except ThreadBusy:
                return _SOON
        return left

    async def _extend(self, offer: Offer, cut: anyio.CancelScope) -> None:
        """Keep the offer while its handler runs; when it is lost, the claim says whether the step is."""
        while True:
            await anyio.sleep(offer.lease / 3)
            with contextlib.suppress(LocusError):
                if not await offer.extend():
                    cut.cancel()

    def _change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    Handle = handle
