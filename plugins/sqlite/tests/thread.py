"""The store's own thread, stopped where a test wants it: what is done by then, and what waits, is no matter of luck."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from locus_plugin_sqlite import SqliteStore
from locus_plugin_sqlite.operation import Operation
from locus_plugin_sqlite.session import Session

#: Seconds after which a thread that does not come is taken for stuck.
_STUCK = 60


class _Stop(Operation[None]):
    grouped = writes = False

    def __init__(self) -> None:
        super().__init__(None)
        self.reached, self.go_on = threading.Event(), threading.Event()

    def apply(self, session: Session) -> None:
        self.reached.set()
        assert self.go_on.wait(_STUCK)


@contextmanager
def stopped(store: SqliteStore) -> Iterator[None]:
    """The thread has done all that was begun, and does nothing meanwhile; no turn of the loop is needed for that."""
    stop = _Stop()
    store._queue(stop)
    assert stop.reached.wait(_STUCK)
    try:
        yield
    finally:
        stop.go_on.set()
