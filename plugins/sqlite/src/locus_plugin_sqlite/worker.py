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
from locus_plugin_sqlite.errors import DiskFull
from locus_plugin_sqlite.failures import problem
from locus_plugin_sqlite.retention import Pruning

if TYPE_CHECKING:
    from locus_plugin_sqlite.operation import Operation
    from locus_plugin_sqlite.session import Session

__all__ = ["Worker"]

#: Operations in one transaction: more would only keep the first of them waiting.
_GROUP = 128

#: Seconds that the end of the program waits for a worker to give its threads back.
_PATIENCE = 2.0


class Worker:
    """Runs operations in their order until it is stopped. It knows nothing of its store, so a store can be dropped."""

    def __init__(self, session: Session) -> None:
        self.pid = os.getpid()
        self._session = session
        self._inbox: SimpleQueue[Operation[Any] | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._lock = Lock()
        self.stopped = False

    def post(self, operation: Operation[Any]) -> bool:
        """Queue an operation; False when the worker was stopped."""
        with self._lock:
            if self.stopped:
                return False
            if self._thread is None:
                # A daemon, so that a store that is not closed does not keep the program from ending.
                self._thread = Thread(target=_work, args=(self._inbox, self._session), name="locus sqlite", daemon=True)
                _running.add(self)
                self._thread.start()
            self._inbox.put(operation)
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


def _work(inbox: SimpleQueue[Operation[Any] | None], session: Session) -> None:
    going = True
    while going:
        group: list[Operation[Any]] = []
        try:
            operation = inbox.get(timeout=session.wait())
            while operation is not None:
                group.append(operation)
                if len(group) == _GROUP:
                    break  # before another one is taken out, which would be lost
                operation = inbox.get_nowait()
            going = operation is not None
        except Empty:
            pass
        if group:
            _serve(session, group)
        del group  # an idle worker keeps no values alive
        while session.is_to_prune and (inbox.empty() or not going):
            _serve(session, [Pruning()])
        session.tick()
    session.close()


def _serve(session: Session, group: Sequence[Operation[Any]]) -> None:
    try:
        _do(session, group)
    except BaseException as e:  # noqa: BLE001 - a thread that ends here would leave everybody waiting for ever
        for operation in group:
            operation.error = operation.error or e
    for operation in group:
        if operation.error is not None:
            operation.on_failure(session)
    session.let_others_in()
    # All of them, before the first is woken: a task often waits for the next one right away.
    for waiter in [
        operation.waiter for operation in group if operation.waiter is not None and operation.waiter.finish()
    ]:
        waiter.wake()


def _do(session: Session, group: Sequence[Operation[Any]]) -> None:
    todo: list[Operation[Any]] = []
    for operation in group:
        if not (todo and todo[-1].join(operation)):
            todo.append(operation)
    todo = [operation for operation in todo if _prepare(operation)]
    if not todo or not (session.exists or any(operation.writes for operation in todo)):
        return
    session.ready()
    _commit(session, [operation for operation in todo if operation.grouped and operation.writes])
    # Apart, because they need not wait for another process that writes.
    _commit(session, [operation for operation in todo if operation.grouped and not operation.writes])
    for operation in todo:
        if not operation.grouped:
            _alone(session, operation)


def _prepare(operation: Operation[Any]) -> bool:
    try:
        operation.prepare()
    except Exception as e:  # noqa: BLE001 - it belongs to the caller
        operation.error = e
    return operation.error is None


def _commit(session: Session, operations: Sequence[Operation[Any]]) -> None:
    """One transaction, of operations that write or of operations that read."""
    if not operations:
        return
    try:
        if len(operations) == 1 and operations[0].atomic:
            operations[0].apply(session)
        else:
            with session.transaction(
                writes=operations[0].writes, durable=any(operation.durable for operation in operations)
            ):
                for operation in operations:
                    operation.error = None
                    try:
                        operation.apply(session)
                    except LocusError as e:
                        operation.error = e
    except Exception as e:  # noqa: BLE001 - it belongs to the caller
        if len(operations) > 1:
            # One of them, or all of them together: each on its own tells.
            for operation in operations:
                _commit(session, [operation])
            return
        session.doubt()
        operations[0].error = _translate(e, session)
        if not (isinstance(operations[0].error, DiskFull) and _squeeze(session, operations[0])):
            return
    for operation in operations:
        _finish(session, operation)


def _squeeze(session: Session, operation: Operation[Any]) -> bool:
    """Do on a full disk what can be done there."""
    full, operation.error = operation.error, None
    try:
        operation.squeeze(session)
    except Exception as e:  # noqa: BLE001 - it belongs to the caller
        session.doubt()
        found = _translate(e, session)
        operation.error = full if isinstance(found, DiskFull) else found
    return operation.error is None


def _alone(session: Session, operation: Operation[Any]) -> None:
    try:
        operation.apply(session)
    except Exception as e:  # noqa: BLE001 - it belongs to the caller
        operation.error = _translate(e, session)
    _finish(session, operation)


def _finish(session: Session, operation: Operation[Any]) -> None:
    if operation.error is None:
        try:
            operation.finish(session)
        except Exception as e:  # noqa: BLE001 - it belongs to the caller
            operation.error = e


def _translate(error: Exception, session: Session) -> Exception:
    if not isinstance(error, sqlite3.Error):
        return error
    made = problem(error, session.path, session.settings.busy_timeout)
    made.__cause__ = error
    return made
