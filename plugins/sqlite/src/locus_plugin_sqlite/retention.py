"""Threads that ended long ago are deleted without being asked for, where `SqliteSettings.keep_ended_days` says so."""

from __future__ import annotations

import contextlib
import logging

from locus.core.errors import ThreadBusy
from locus_kit.retention import prunable
from locus_plugin_sqlite.liveness import from_micros
from locus_plugin_sqlite.operation import Operation
from locus_plugin_sqlite.session import Session
from locus_plugin_sqlite.threads import Deleting, Listing

__all__ = ["Pruning"]

_MICROS_A_DAY = 24 * 3600 * 1_000_000

#: How often it is done in the span of `SqliteSettings.keep_ended_days`, by all the processes of a file together.
_TIMES = 24

_LOG = logging.getLogger("locus.sqlite")

#: Threads in one transaction: what is asked of the store meanwhile waits for it, and so do other processes.
_AT_ONCE = 64


class Pruning(Operation[None]):
    """Choose the threads that ended long ago, if that was not done lately, and delete the first of them.

    The worker repeats it while `Session.is_to_prune` and nothing else waits. What fails is tried again after the next
    release; no caller asked for it, so the failure is not reported. A damaged thread stops it, which is logged.
    """

    __slots__ = ()
    grouped = False

    def __init__(self) -> None:
        super().__init__(None)

    def apply(self, session: Session) -> None:
        """Delete each in the state in which it was chosen: what went on meanwhile has another head."""
        if not session.forgettable:
            self._choose(session)
        some, session.forgettable = session.forgettable[:_AT_ONCE], session.forgettable[_AT_ONCE:]
        session.is_to_prune = bool(session.forgettable)
        if not some:
            return
        with session.transaction(durable=False):
            for info in some:
                with contextlib.suppress(ThreadBusy):
                    Deleting(info.thread_id, info.head).apply(session)

    def _choose(self, session: Session) -> None:
        now, span = session.now(), int((session.settings.keep_ended_days or 0) * _MICROS_A_DAY)
        (last,) = session.db.execute("SELECT pruned FROM file").fetchone()
        if abs(now - last) < span // _TIMES:  # in both directions: a clock may have been set back
            return
        with session.transaction(durable=False):
            session.db.execute("UPDATE file SET pruned=?", (now,))
        infos = list(Listing(None).select(session))
        damaged = [info.thread_id for info in infos if info.status == "damaged"]
        if damaged:  # which threads share entries with others is not known for certain
            _LOG.warning(
                "%s: no thread was forgotten (keep_ended_days), because %r is damaged: delete it, or write what can be "
                "read into a new file with SqliteStore.salvage()",
                session.path,
                damaged[0],
            )
            return
        session.forgettable = list(prunable(infos, from_micros(now - span)))

    def on_failure(self, session: Session) -> None:
        """Leave it until the next release."""
        session.is_to_prune, session.forgettable = False, []
