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
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

import anyio

from locus.core.errors import ConfigError, Fenced, LocusError, StoreError, ThreadBusy
from locus.journal import Clock, Effects, InProcess, Offer, QueueDepth, QueueStore
from locus.plugin import Lazy
from locus_kit.loop_watch import LoopWatch
from locus_plugin_workflow.client import WorkflowRun, check_store, show, start
from locus_plugin_workflow.definition import Duration, WorkflowDef, seconds_of
from locus_plugin_workflow.dispatches import Dispatched, DispatchNotice, Ended, NoticeKind
from locus_plugin_workflow.events import Observers
from locus_plugin_workflow.iteration import Iteration
from locus_plugin_workflow.records import read_run
from locus_plugin_workflow.registry import HandlerTable
from locus_plugin_workflow.runs import RUNS, Runs, queue_of
from locus_plugin_workflow.sleeping import SHORT_SLEEP

if TYPE_CHECKING:
    from locus.core.events import Event

__all__ = ["Worker"]

#: Another distribution, which is there where its workers run these steps.
queue_workers: Any = Lazy("locus.worker")

_LOG = logging.getLogger("locus.workflow")

#: Seconds: of one look into the queues, between two tries at a store that fails, and to end an offer when cancelled.
_LOOK, _AGAIN, _SHIELD = 1.0, 1.0, 5.0

#: Seconds after which the end of a run is looked at again that another worker was writing.
_SOON = 0.05


class Worker(HandlerTable):
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
        stay: seconds for which it goes on with a step, iteration after iteration, before the step goes through its
            queue again; 0: each iteration goes through the queue. None = half a second with a step that is an agent,
            and 0 with all others.
        stuck_after: seconds after which an event loop that does not turn is stuck: then no lease is renewed, and
            others get its steps. None = 10 lease times.
        on_notice: is called with each `DispatchNotice`, in the event loop; with ``"stuck"`` in another thread.
        on_event: hears the events of the runs of agents, but for the chunks of answers.

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
        stay: Duration | None = None,
        stuck_after: float | None = None,
        on_notice: Callable[[DispatchNotice], object] | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        check_store(store)
        if type(slots) is not int or slots < 1:
            raise ConfigError(f"slots: expected an integer greater than 0, got {slots!r}")
        self.store: Any = store
        self.name = name or f"{socket.gethostname()}.{os.getpid()}.{uuid4().hex[:4]}"
        self.slots = slots
        #: Knows when the event loop turned last.
        self.watch = LoopWatch(stuck_after, self._on_stuck)
        self._on_notice = on_notice
        super().__init__(on_event)
        self._busy, self._turn = 0, 0
        self._leaving, self._changed = anyio.Event(), anyio.Event()
        effects: Effects = InProcess(None if clock is None else clock.now)
        observers = Observers(hooks)
        self._runs = Runs(store=store, worker=self.name, effects=effects, observers=observers)
        self._iteration = Iteration(
            store=store,
            worker=self.name,
            effects=effects,
            find=self.find,
            observers=observers,
            reopen_run=self._runs.reopen,
            max_attempts=max_attempts,
            short_sleep=seconds_of("short_sleep", short_sleep),
            stay=None if stay is None else seconds_of("stay", stay),
            is_leaving=self._leaving.is_set,
        )
        for each in (workflows,) if isinstance(workflows, WorkflowDef) else workflows:
            self.add(each)
        for known, handler in (handlers or {}).items():
            self.handle(known, handler)

    # -- what it is ------------------------------------------------------------------------------

    @property
    def busy(self) -> int:
        """How many slots are in use."""
        return self._busy

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
        renew_while = getattr(self.store, "renew_while", None)
        with self.watch:
            if renew_while is not None:
                renew_while(self.watch.is_alive)
            async with anyio.create_task_group() as around:
                around.start_soon(self.watch.keep_turning)
                await self._take_offers(until_idle=until_idle)
                around.cancel_scope.cancel()

    async def _take_offers(self, *, until_idle: bool) -> None:
        async with anyio.create_task_group() as group:
            while not self._leaving.is_set():
                if self._busy == self.slots:
                    await self._changed.wait()
                    continue
                offer = await self._take(0.0 if until_idle else _LOOK)
                if offer is not None and self._leaving.is_set():  # it came while this worker was told to leave
                    with contextlib.suppress(LocusError):
                        await offer.back()
                elif offer is not None:
                    self._busy += 1
                    self.watch.set_lease(offer.lease)
                    self._tell("taken", offer)
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
            UnknownName: this worker has no handler for one of the steps, so that the run would not end.
            InputError: another workflow has a run of this id.
            NotSerialisable: the input has no JSON form.
            StoreError: the store failed.
        """
        self.add(workflow)
        self.check_handlers(workflow.steps)
        name = await start(self.store, workflow, input, run_id=run_id)
        run = await show(self.store, name)
        # A run of this id that is on record has a definition of its own, which it goes on with.
        open_steps = [s for s in run.workflow.steps if s.name not in run.steps or not run.steps[s.name].is_final]
        self.check_handlers(() if run.has_ended else open_steps)
        async with self.at_work():
            # Its own thread says whether it has ended; that of a step is as long as the step has iterations.
            while (found := await read_run(self.store, name)) is None or not found.state.is_final:
                with anyio.move_on_after(poll):
                    await self._changed.wait()
        return await show(self.store, name)

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
                delay = (await self._dispatch(job, cut)).delay
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
        began, delay = anyio.current_time(), 0.0
        kind: NoticeKind = "back"
        failure = ""
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._extend, offer, group.cancel_scope)
                ended = await self._dispatch(offer, group.cancel_scope)
                kind, delay = ("done", 0.0) if ended.delay is None else ("back", ended.delay)
                failure = ended.error
                group.cancel_scope.cancel()
        except* Fenced:
            kind = "lost"  # another worker has the step, and an offer of its own
        except* LocusError as errors:
            kind, failure, delay = "error", str(errors.exceptions[0]), offer.lease / 4
            _LOG.warning("worker %s gives %s back: %s", self.name, offer.thread_id, failure)
        except* Exception as errors:  # a mistake of a store or of the engine, which ends this worker
            _LOG.error("worker %s ends, in %s: %r", self.name, offer.thread_id, errors.exceptions[0])
            raise
        finally:
            if kind != "lost":
                with anyio.move_on_after(_SHIELD, shield=True), contextlib.suppress(LocusError):
                    await (offer.done() if kind == "done" else offer.back(delay))
            self._busy -= 1
            self._change()
            self._tell(kind, offer, text=failure, seconds=anyio.current_time() - began)

    async def _dispatch(self, offer: Dispatched, cut: anyio.CancelScope) -> Ended:
        """Run what is due."""
        if offer.queue == RUNS:
            await self._runs.begin(offer.thread_id)
            return Ended()
        try:
            record, state, left = await self._iteration.run(offer.thread_id, cut)
        except ThreadBusy:
            return Ended(offer.lease / 4)
        if left is None:
            try:
                await self._runs.follow(record, state)
            except ThreadBusy:
                return Ended(_SOON)
        return Ended(left, state.error if left is None and state.status == "failed" else "")

    async def _extend(self, offer: Offer, cut: anyio.CancelScope) -> None:
        """Keep the offer while its handler runs; when it is lost, the claim says whether the step is."""
        while True:
            await anyio.sleep(offer.lease / 3)
            with contextlib.suppress(LocusError):
                if not await offer.extend():
                    cut.cancel()

    async def depths(self) -> dict[str, QueueDepth]:
        """What is in its queues.

        Raises:
            StoreError: the store failed.
        """
        return {name: await self.store.depth(name) for name in self.queues}

    def _on_stuck(self) -> None:
        text = f"the event loop has not turned for {self.watch.stuck_after:g} s; leases are not renewed meanwhile"
        _LOG.error("worker %s: %s", self.name, text)
        self._tell("stuck", text=text)

    def _tell(self, kind: NoticeKind, offer: Offer | None = None, *, text: str = "", seconds: float = 0.0) -> None:
        if self._on_notice is not None:
            about = ("", 0) if offer is None else (offer.thread_id, offer.delivered)
            self._on_notice(DispatchNotice(kind, *about, text, bool(text), seconds))

    def _change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
