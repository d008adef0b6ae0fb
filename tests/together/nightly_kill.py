"""The nightly job of `contrib/examples`, in a process that is killed: ``python -m tests.together.nightly_kill MOMENT``.

Behind the moment come the ledger and the journal. The moments are "model": while the model is asked for its third turn;
"before" and "after": in the body of the second booking, before its commit and after it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

from contrib.examples import nightly_job

from locus.models import ModelRequest
from locus_testkit import ScriptedModel, call

DAY = date(2026, 3, 31)
#: The turns of the model, by how much of the conversation there is.
SCRIPT: list[Any] = [
    call("list_payments", day="2026-03-31"),
    [call("book", payment=1, account="rent"), call("book", payment=2, account="travel")],
    call("book", payment=3, account="unclear"),
    "Three payments are booked.",
]


def fill_ledger(path: Path) -> None:
    """Three payments of the day, and one of another."""
    with closing(nightly_job.Ledger(str(path)).open()) as db, db:
        payments = [("2026-03-31", text, 100) for text in ("flat", "train", "?")] + [("2026-04-01", "late", 5)]
        db.executemany("INSERT INTO payments (day, text, cents) VALUES (?, ?, ?)", payments)


def die(*_: object) -> Any:
    """End this process as the kernel does when memory is short."""
    os.kill(os.getpid(), signal.SIGKILL)


class Dying(sqlite3.Connection):
    """A connection in whose use the process dies."""

    moment = ""

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        """Die when the second payment was booked, and its transaction is open."""
        made = super().execute(sql, parameters)
        if sql.startswith("INSERT INTO bookings") and parameters[1] == 2:
            if Dying.moment == "before":
                die()
            self.booked = True
        return made

    def close(self) -> None:
        """Die when the second payment was booked, and its transaction is committed."""
        if Dying.moment == "after" and getattr(self, "booked", False):
            die()
        super().close()


class DyingLedger(nightly_job.Ledger):
    """The ledger, over such connections."""

    def open(self) -> sqlite3.Connection:
        """Connect."""
        super().open().close()
        return sqlite3.connect(self.path, factory=Dying)


def script(request: ModelRequest) -> list[Any]:
    """The turns, with a death in place of the third."""
    return [*SCRIPT[:2], die, SCRIPT[3]]


if __name__ == "__main__":
    Dying.moment, ledger, journal = sys.argv[1:]
    agent = nightly_job.build(ScriptedModel(script=script), f"sqlite:{journal}")
    asyncio.run(nightly_job.run_job(agent, DAY, DyingLedger(ledger)))
