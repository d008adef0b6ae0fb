"""A program that runs one agent after another on a disk until it is ended, and keeps its logs on another one.

``python -m tests.durability.writer '{"folder": ..., "logs": ...}'``
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, ClassVar

import anyio
from attrs import frozen
from tests.durability.case import Program, Segment, segment, whole
from tests.durability.explore import SCRIPT
from tests.durability.log import Log
from tests.durability.points import Points
from tests.durability.subjects import Sqlite
from tests.durability.unsynced import Unsynced, connect_through

from locus_plugin_sqlite.settings import Sync

__all__ = ["PROGRAM", "Full", "Order", "log_of", "main"]

PROGRAM = Program(SCRIPT)


class Full(Sqlite):
    """Journals that survive a power cut."""

    name = "sqlite: full"
    sync: ClassVar[Sync] = "full"


@frozen
class Order:
    """What to do.

    Args:
        folder: where the journals go.
        logs: where the logs go.
        synced: whether the store's wish to have its writes synced is heard.
    """

    folder: str
    logs: str
    synced: bool = True


def log_of(logs: Path, thread: str) -> Path:
    """Where the log of a thread is."""
    return logs / f"{thread}.log"


async def _write(order: Order) -> None:
    subject = Full(Path(order.folder))
    store = subject.open(Points())
    for number in range(1000):
        thread = f"t{number}"
        log = Log(log_of(Path(order.logs), thread))

        async def step(answers: dict[str, Any] | None, thread: str = thread, log: Log = log) -> Segment:
            return await segment(PROGRAM, store, log, Points(), thread=thread, answers=answers)

        await whole(step)
        log.close()


def main(order: Order) -> None:
    """Write until the end."""
    if not order.synced:
        connect_through(Unsynced)
    anyio.run(_write, order)


if __name__ == "__main__":
    main(Order(**json.loads(sys.argv[1])))
