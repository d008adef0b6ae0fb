"""`locus threads prune` on a server: what has ended goes, and nothing of it stays in the streams."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
from plugins.cli.tests.conftest import Locus

from locus import Agent
from locus_plugin_nats import DevServer, NatsSettings, NatsStore
from locus_plugin_nats.session import Session
from locus_testkit import ScriptedModel


def test_pruned_threads_leave_nothing_in_the_streams(
    here: Path, locus: Locus, own_server: DevServer, prefix: str
) -> None:
    (here / "locus.toml").write_text(f'[plugins.nats]\nprefix = "{prefix}"\n')
    anyio.run(talk, own_server.url, prefix)
    assert all(count > 0 for count in anyio.run(measure, own_server.url, prefix))

    done = locus("threads", "prune", "--ended-before", "0min", "--yes", "--checkpointer", own_server.url)

    assert (done.status, done.out) == (0, "deleted two\ndeleted one\n")
    assert anyio.run(measure, own_server.url, prefix) == (0, 0)


async def talk(address: str, prefix: str) -> None:
    """Two runs whose prompts are payloads of their own."""
    async with NatsStore(address, NatsSettings(prefix=prefix)) as store:
        for name in ("one", "two"):
            await Agent(ScriptedModel("Yes."), checkpointer=store).run(os.urandom(900_000).hex(), thread_id=name)


async def measure(address: str, prefix: str) -> tuple[int, int]:
    """Messages of the streams of journals and payloads."""

    async def work(session: Session) -> tuple[int, int]:
        names = session.names
        found = [await session.wire.api(f"STREAM.INFO.{name}") for name in (names.journal, names.blobs)]
        return found[0]["state"]["messages"], found[1]["state"]["messages"]

    async with NatsStore(address, NatsSettings(prefix=prefix)) as store:
        return await store._do(work)
