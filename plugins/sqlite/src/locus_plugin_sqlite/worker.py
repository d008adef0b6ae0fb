"""One thread a store: SQLite blocks, an event loop must not. What has queued up meanwhile is committed together."""

from __future__ import annotations

import atexit
import os
import sqlite3
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from locus.core.errors import LocusError
from locus_plugin_sqlite.failures import problem
from locus_plugin_sqlite.retention import Pruning

if TYPE_CHECKING:
    from locus_plugin_sqlite.job import Job
    from locus_plugin_sqlite.session import Session

__all__ = ["Worker"]

#: Jobs in one transaction: more would only keep the first of them waiting.
_GROUP = 128

#: Seconds that the end of the program waits for a worker to give its threads back.
_PATIENCE = 2.0


class Worker:
    """Runs jobs in their order until it is stopped. It knows nothing of its store, so a store can be dropped."""

    def __init__(self, session: Session) -> None:
        self.pid = os.getpid()
        self._session = session
        self._inbox: SimpleQueue[Job[Any] | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._lock = Lock()
        self.stopped = False

    def post(self, job: Job[Any]) -> bool:
        """Queue a job; False when the worker was stopped."""
        with self._lock:
            if self.stopped:
                return False
            if self._thread is None:
                # A daemon, so that a store that nobody closes does not keep the program from ending.
                self._thread = Thread(target=_work, args=(self._inbox, self._session), name="locus sqlite", daemon=True)
                _running.add(self)
                self._thread.start()
            self._inbox.put(job)
            return True

    def stop(self) -> None:
        """Do what is queued, give everything back, close the file. Returns at once; may be called by any thread."""
        with self._lock:
            if not self.stopped:
                self.stopped = True
                self._inbox.put(None)

    def join(self, timeout: float | None = None) -> None:
        """Wait for the end of the thread."""
        if self._thread is not None:
            self._thread.join(timeout)


_running: WeakSet[Worker] = WeakSet()


@atexit.register
def _leave() -> None:
    mine = [worker for worker in _running if worker.pid == os.getpid()]
    for worker in mine:
        worker.stop()
    for worker in mine:
        worker.join(_PATIENCE)


def _work(inbox: SimpleQueue[Job[Any] | None], session: Session) -> None:
    going = True
    while going:
        group: list[Job[Any]] = []
        try:
            job = inbox.get(timeout=session.wait())
            while job is not None and len(group) < _GROUP:
                group.append(job)
                job = inbox.get_nowait()
            going = job is not None
        except Empty:
            pass
        if group:
            _serve(session, group)
        del group  # an idle worker keeps nobody's values alive
        while session.is_to_prune and (inbox.empty() or not going):
            _serve(session, [Pruning()])
        session.tick()
    session.close()


def _serve(session: Session, group: Sequence[Job[Any]]) -> None:
    try:
        _do(session, group)
    except BaseException as e:  # noqa: BLE001 - a thread that ends here would leave everybody waiting for ever
        for job in group:
            job.error = job.error or e
    for job in group:
        if job.error is not None:
            job.failed(session)
    # All of them, before the first is woken: a task often waits for the next one right away.
    for waiter in [job.waiter for job in group if job.waiter is not None and job.waiter.finish()]:
        waiter.wake()


def _do(session: Session, group: Sequence[Job[Any]]) -> None:
    todo: list[Job[Any]] = []
    for job in group:
        if not (todo and todo[-1].join(job)):
            todo.append(job)
    todo = [job for job in todo if _prepared(job)]
    if not todo or not (session.exists or any(job.writes for job in todo)):
        return
    session.ready()
    _commit(session, [job for job in todo if job.grouped and job.writes])
    # Apart, because they need not wait for another process that writes.
    _commit(session, [job for job in todo if job.grouped and not job.writes])
    for job in todo:
        if not job.grouped:
            _alone(session, job)


def _prepared(job: Job[Any]) -> bool:
    try:
        job.prepare()
    except Exception as e:  # noqa: BLE001 - it belongs to whoever asked
        job.error = e
    return job.error is None


def _commit(session: Session, jobs: Sequence[Job[Any]]) -> None:
    """One transaction, of jobs that write or of jobs that read."""
    if not jobs:
        return
    try:
        if len(jobs) == 1 and jobs[0].atomic:
            jobs[0].apply(session)
        else:
            with session.transaction(writes=jobs[0].writes, durable=any(job.durable for job in jobs)):
                for job in jobs:
                    job.error = None
                    try:
                        job.apply(session)
                    except LocusError as e:
                        job.error = e
    except Exception as e:  # noqa: BLE001 - it belongs to whoever asked
        if len(jobs) > 1:
            # One of them, or all of them together: each on its own tells.
            for job in jobs:
                _commit(session, [job])
        else:
            session.doubt()
            jobs[0].error = _translated(e, session)
        return
    for job in jobs:
        _finish(session, job)


def _alone(session: Session, job: Job[Any]) -> None:
    try:
        job.apply(session)
    except Exception as e:  # noqa: BLE001 - it belongs to whoever asked
        job.error = _translated(e, session)
    _finish(session, job)


def _finish(session: Session, job: Job[Any]) -> None:
    if job.error is None:
        try:
            job.finish(session)
        except Exception as e:  # noqa: BLE001 - it belongs to whoever asked
            job.error = e


def _translated(error: Exception, session: Session) -> Exception:
    if not isinstance(error, sqlite3.Error):
        return error
    made = problem(error, session.path, session.settings.busy_timeout)
    made.__cause__ = error
    return made
