"""A worker: ``python -m plugins.temporal.tests.worker ADDRESS QUEUE FOLDER``; it runs until it is killed."""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from pathlib import Path

from temporalio.client import Client
from temporalio.worker import Worker
from temporalio.workflow import ActivityConfig

from locus_plugin_temporal import LocusPlugin

from .shop import Sell, Shop

#: Soon enough for a test that waits for it, and late enough for a machine that is slow.
SOON = ActivityConfig(heartbeat_timeout=timedelta(seconds=5))


async def main(address: str, queue: str, folder: str) -> None:
    """Work."""
    options = dict.fromkeys(("locus.model", "pay", "look", "ship"), SOON)
    plugin = LocusPlugin([Shop(Path(folder)).agent()], options=options)
    client = await Client.connect(address, plugins=[plugin])
    second = timedelta(seconds=1)
    await Worker(client, task_queue=queue, workflows=[Sell], sticky_queue_schedule_to_start_timeout=second).run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
