"""`Worker`: takes runs from queues, so many at once, and gives back what it cannot finish.

What holds at every moment:

- An offer is taken into a free slot and never before: nothing waits in a worker that another one could run.
- While a job is in its slot its offer is extended, three times in a lease, by the event loop. A loop that does not turn
  extends nothing, and others get what this worker had when the lease is over.
- An offer is ended last, when everything else is stored: a worker that dies before that costs a second look at the
  thread. The claim of the thread decides who writes, the offer does not.
- Whatever was taken is ended or given back, also when the worker is cancelled.

To drain is to take no more, and to ask each run to yield at its next transition: it is released and offered again at
once. What has not yielded after ``drain`` seconds is cancelled, and given back as well.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import anyio

from locus import Agent
from locus.core.errors import ConfigError, LocusError
from locus_kit.loop_watch import LoopWatch
from locus_plugin_worker.agents import AgentJobs
from locus_plugin_worker.intake import Intake
from locus_plugin_worker.jobs import Back, Done, Job, Verdict
from locus_plugin_worker.notices import Notice, NoticeKind
from locus_plugin_worker.presence import present
from locus_plugin_worker.rota import Rota
from locus_plugin_worker.stores import add_up
from locus_plugin_worker.work import Work, agents_of, store_of

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from locus.core.errors import StoreError
    from locus.core.events import Event
    from locus.journal import JournalStore, Offer, QueueDepth

__all__ = ["Worker"]

#: Seconds of one look into the queues, after which a worker that is to leave has left off looking.
_LOOK: Final = 1.0

#: Seconds in which an offer is ended or given back, whatever happens.
_SHIELD: Final = 5.0

#: Seconds until a job is offered again whose handler failed: the first time, and at most.
_AGAIN, _AT_MOST = 1.0, 60.0


class Worker:
    """Runs what is offered in some queues.

    Args:
        agents_or_handlers: an agent, several, or a mapping from the names of queues to agents and `Handler` functions.
            An agent needs a name; it is offered what was submitted for it.
        store: where threads and queues are; None = the checkpointer of the agents.
        queues: more queues, by name or pattern (``"tenant:*"``); each run in them goes to the agent that it was
            submitted for.
        slots: how many runs at once.
        drain: seconds in which runs may yield when the worker leaves.
        stuck_after: seconds after which an event loop that does not turn is stuck: then no lease is renewed. None = 10
            lease times.
        name: of the worker, in errors and listings; None = host, process and a few letters.
        deps: what tools get as ``ctx.deps``.
        max_attempts: after so many attempts that died in one place a run is set aside.
        on_notice: is called with each `Notice`, in the event loop; with ``"stuck"`` in another thread.
        on_event: hears the events of the agents' runs, but for the chunks of answers.

    Raises:
        ConfigError: an agent has no name, two have the same one, or there is nothing to run; the store is missing, or
            keeps no queues; a number is out of range.
    """

    def __init__(
        self,
        agents_or_handlers: Work,
        store: JournalStore | None = None,
        *,
        queues: Iterable[str] = (),
        slots: int = 4,
        drain: float = 30.0,
        stuck_after: float | None = None,
        name: str | None = None,
        deps: Any = None,
        max_attempts: int = 5,
        on_notice: Callable[[Notice], object] | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        if slots < 1:
            raise ConfigError(f"slots must be an integer of at least 1, got {slots!r}")
        # Written so that "not a number" is refused, too: it is neither below nor above anything.
        if not drain >= 0:
            raise ConfigError(f"drain must be 0 or more seconds, got {drain!r}")
        if stuck_after is not None and not stuck_after > 0:
            raise ConfigError(f"stuck_after must be more than 0 seconds, got {stuck_after!r}")
        self.name = name or f"{socket.gethostname()}.{os.getpid()}.{uuid4().hex[:4]}"
        self.slots, self._drain = slots, drain
        given = agents_or_handlers if isinstance(agents_or_handlers, Mapping) else {}
        agents = agents_of(agents_or_handlers)
        self._handlers = {queue: each for queue, each in given.items() if not isinstance(each, Agent)}
        self.store = store_of(agents, store)
        self._agents = AgentJobs(agents, self.store, deps=deps, max_attempts=max_attempts, on_event=on_event)
        self.rota = Rota([*self._agents.queues, *given, *queues])
        #: Knows when the event loop turned last.
        self.watch = LoopWatch(stuck_after, self._on_stuck)
        self._on_notice = on_notice
        self._jobs: dict[Job, float] = {}
        self._failures: dict[str, int] = {}
        self._leaving, self._changed = anyio.Event(), anyio.Event()

    @property
    def busy(self) -> int:
        """How many slots are in use."""
        return len(self._jobs)

    @property
    def is_leaving(self) -> bool:
        """Whether it takes no more."""
        return self._leaving.is_set()

    async def depths(self) -> dict[str, QueueDepth]:
        """What is in its queues; those that a pattern has found are one, under the pattern.

        Raises:
            StoreError: the store failed.
        """
        return {each: add_up([await self.store.depth(name) for name in names]) for each, names in self.rota.group()}

    def drain(self) -> None:
        """Take no more, let each run yield at its next transition, and leave. Call it in the event loop."""
        if not self.is_leaving:
            self._leaving.set()
            self._change()
            self._tell("draining", text=f"{self.busy} under way")

    async def run(self, *, until_idle: bool = False) -> None:
        """Work until `drain` is called, once. Cancelled, it cancels its runs and gives them back.

        Args:
            until_idle: leave as soon as nothing is ready and nothing is under way.

        Raises:
            StoreError: the store cannot be used at all. One that fails later is asked again.
        """
        intake = Intake(self.store, self.rota, self.name, self._on_queue, self._on_store_error)
        await intake.begin()
        renew_while = getattr(self.store, "renew_while", None)
        with self.watch:
            if renew_while is not None:
                renew_while(self.watch.is_alive)
            async with anyio.create_task_group() as around:
                around.start_soon(self.watch.keep_turning)
                async with present(self.store, self.name, self.slots, self.rota.wanted):
                    self._tell("started", text=", ".join(self.rota.wanted))
                    async with anyio.create_task_group() as jobs:
                        around.start_soon(self._cancel_after_drain, jobs.cancel_scope)
                        await self._take_jobs(intake, jobs, until_idle=until_idle)
                around.cancel_scope.cancel()
        self._tell("stopped")

    # -- taking -----------------------------------------------------------------------------------

    async def _take_jobs(self, intake: Intake, jobs: TaskGroup, *, until_idle: bool) -> None:
        while not self.is_leaving:
            if self.busy == self.slots:
                await self._wait_for_change()
                continue
            offer = await intake.look(0.0 if until_idle else _LOOK)
            if offer is not None and self.is_leaving:
                # The look was under way. It is not cancelled, because an offer that is on its way would be lost.
                await self._give_back(offer)
            elif offer is not None:
                job = self._begin(offer)
                jobs.start_soon(self._work, offer, job)
            elif until_idle and not intake.failures:
                if not self.busy:
                    return
                with anyio.move_on_after(_LOOK):
                    await self._wait_for_change()

    def _begin(self, offer: Offer) -> Job:
        job = Job(
            thread_id=offer.thread_id,
            queue=offer.queue,
            delivered=offer.delivered,
            lease=offer.lease,
            worker=self.name,
            store=self.store,
            leaving=self._leaving,
        )
        self._jobs[job] = anyio.current_time()
        self.watch.set_lease(offer.lease)
        self._tell("taken", job)
        return job

    async def _work(self, offer: Offer, job: Job) -> None:
        verdict: Verdict = Back(text="the worker leaves")
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._extend, offer, job)
                verdict = await self._handle(job)
                group.cancel_scope.cancel()
        finally:
            with anyio.move_on_after(_SHIELD, shield=True):
                await self._end(offer, job, verdict)
            self._jobs.pop(job, None)
            self._change()

    async def _give_back(self, offer: Offer) -> None:
        try:
            await offer.back()
        except LocusError as e:  # it is offered again when its lease is over
            self._tell("error", text=f"the offer of {offer.thread_id} could not be given back: {e}", is_failure=True)

    async def _handle(self, job: Job) -> Verdict:
        handler = self._handlers.get(job.queue, self._agents)
        try:
            verdict = await handler(job) or Done()
        except Exception as e:  # noqa: BLE001  a handler is foreign code
            failures = self._failures[job.thread_id] = self._failures.get(job.thread_id, -1) + 1
            delay = min(_AGAIN * 2.0 ** min(failures, 10), _AT_MOST)
            return Back(delay=delay, text=f"{type(e).__name__}: {e}", is_failure=True)
        self._failures.pop(job.thread_id, None)
        return verdict

    async def _extend(self, offer: Offer, job: Job) -> None:
        """Keep the offer, as long as this task runs."""
        while True:
            await anyio.sleep(offer.lease / 3)
            try:
                if not await offer.extend():
                    # Another worker has the offer. Whether it gets the thread is for the claim to say.
                    self._tell("lost", job, text="the offer was made to another worker")
                    return
            except LocusError as e:
                self._tell("error", job, text=f"the offer could not be extended: {e}", is_failure=True)

    async def _end(self, offer: Offer, job: Job, verdict: Verdict) -> None:
        """End the offer, last of all."""
        took = anyio.current_time() - self._jobs[job]
        try:
            if isinstance(verdict, Done):
                await offer.done()
                self._tell("done", job, text=verdict.text, is_failure=verdict.is_failure, seconds=took)
            else:
                await offer.back(verdict.delay, queue=verdict.queue)
                why = f"{verdict.text}, to queue {verdict.queue}" if verdict.queue else verdict.text
                self._tell("back", job, text=why, is_failure=verdict.is_failure, seconds=verdict.delay)
        except LocusError as e:  # it is offered again when its lease is over
            self._tell("error", job, text=f"the offer could not be ended: {e}", is_failure=True)

    # -- leaving ----------------------------------------------------------------------------------

    async def _cancel_after_drain(self, scope: anyio.CancelScope) -> None:
        await self._leaving.wait()
        await anyio.sleep(self._drain)
        scope.cancel()

    # -- notices ----------------------------------------------------------------------------------

    def _change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def _wait_for_change(self) -> None:
        await self._changed.wait()

    def _on_queue(self, name: str) -> None:
        self._tell("queue", queue=name)

    def _on_store_error(self, error: StoreError) -> None:
        self._tell("error", text=str(error), is_failure=True)

    def _on_stuck(self) -> None:
        text = f"the event loop has not turned for {self.watch.stuck_after:g} s; leases are not renewed meanwhile"
        self._tell("stuck", text=text, is_failure=True)

    def _tell(self, kind: NoticeKind, job: Job | None = None, *, queue: str = "", **about: Any) -> None:
        if self._on_notice is None:
            return
        if job is not None:
            about |= {"thread_id": job.thread_id, "delivered": job.delivered}
            queue = job.queue
        self._on_notice(Notice(kind=kind, worker=self.name, queue=queue, busy=self.busy, **about))
