"""A full disk, a power cut and a pulled network cable: `tox -e privileged`, as root."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from tests.durability.mounted import copied, formatted, image, memory, resized

from locus.core.errors import ThreadBusy
from locus.core.journal import Body, Outcome, StepId
from locus.journal import Appended, Claim
from locus_plugin_nats import DevServer, NatsSettings, NatsStore, NatsUnreachable, StreamFull
from locus_plugin_nats.dev import find_server
from locus_testkit.freezing import freeze_process

from .namespace import Namespace

pytestmark = [pytest.mark.privileged, pytest.mark.anyio]

MB = 2**20


@pytest.fixture
def anyio_backend() -> str:
    """One is enough: this is about the server."""
    return "asyncio"


def step(n: int, text: str = "") -> Body:
    return Outcome(run_id="run", step_id=StepId(0, "step", n), value=f"value {n} {text}")


async def append_until(server: DevServer, count: int) -> None:
    """Append, one after the other, and stop the server amid that."""
    acknowledged = 0
    assert server.process is not None
    async with NatsStore(server.url, NatsSettings(patience=0.5)) as store:
        claim = await store.claim("t", "w")
        for n in range(1, count + 1):
            assert await store.append(claim, [step(n)]) is Appended.OK
            acknowledged = n
        freeze_process(server.process.pid)
    assert acknowledged == count


async def cut_power(folder: Path, count: int, *, sync: bool) -> list[int]:
    """What is there after a power cut of so many entries that a server has acknowledged.

    The server is frozen, then the image of its disk is copied: what it wrote and did not sync is not in it.
    """
    disk, copy = folder / "disk", folder / "copy"
    formatted(disk, 64 * MB)
    with image(disk, folder / "mounted"), DevServer(folder / "mounted" / "server", sync=sync) as server:
        await append_until(server, count)
        copied(disk, copy)
        server.kill()
    with image(copy, folder / "again"), DevServer(folder / "again" / "server", sync=sync) as server:
        async with NatsStore(server.url) as store:
            entries = await store.read("t")
    return [entry.body.step_id.ordinal for entry in entries if isinstance(entry.body, Outcome)]


@pytest.mark.parametrize("count", [1, 7, 60, 300])
async def test_a_power_cut_takes_nothing_from_a_server_that_syncs(tmp_path: Path, count: int) -> None:
    assert await cut_power(tmp_path, count, sync=True) == list(range(1, count + 1))


async def test_a_power_cut_takes_what_is_young_from_a_server_as_it_comes(tmp_path: Path) -> None:
    """What the README says of ``"process"``: all of it may be gone, and what is left is a beginning."""
    found = await cut_power(tmp_path, 200, sync=False)
    assert len(found) < 200
    assert found == list(range(1, len(found) + 1))


async def test_a_full_disk_is_an_error_that_says_so_and_takes_nothing(tmp_path: Path) -> None:
    """The run stops with a typed error; with more room and the server started again, it goes on from there."""
    kept: list[Body] = []
    with memory(tmp_path / "disk", 3 * MB):
        server = DevServer(tmp_path / "disk" / "server")
        server.start()
        try:
            async with NatsStore(server.url, NatsSettings(patience=2)) as store:
                claim = await store.claim("t", "w")
                with anyio.fail_after(120):
                    for n in range(1, 400):
                        body = step(n, os.urandom(10_000).hex())
                        try:
                            got = await store.append(claim, [body])
                        except (StreamFull, NatsUnreachable):
                            break
                        if got is not Appended.OK:
                            assert got is Appended.UNKNOWN
                            break
                        kept.append(body)
                    else:
                        pytest.fail("the disk was never full")
            server.stop()
            resized(tmp_path / "disk", 64 * MB)
            server.start()
            async with NatsStore(server.url) as store:
                claim = await store.claim("t", "w")
                found = [entry.body for entry in claim.entries]
                assert found[: len(kept)] == kept
                assert len(found) <= len(kept) + 1
                assert await store.append(claim, [step(1000)]) is Appended.OK
        finally:
            server.stop()


#: A worker on the other machine: it claims a thread and appends, then appends what it reads from its input.
WORKER = """
import sys
import anyio
from locus.core.journal import Outcome, StepId
from locus_plugin_nats import NatsSettings, NatsStore

async def main():
    async with NatsStore(sys.argv[1], NatsSettings(lease=2, patience=60)) as store:
        claim = await store.claim("t", "there")
        for n in (1, 2):
            body = Outcome(run_id="run", step_id=StepId(0, "step", n), value="there")
            print((await store.append(claim, [body])).value, flush=True)
            await anyio.to_thread.run_sync(sys.stdin.readline)

anyio.run(main)
"""


@pytest.fixture
def server_of_two_machines(tmp_path: Path) -> Iterator[tuple[Namespace, str]]:
    """Another machine, and the address of a server on this one that it reaches."""
    with Namespace() as there:
        with socket.create_server((there.address, 0)) as reserved:
            port = reserved.getsockname()[1]
        options = ["-js", "-sd", str(tmp_path / "server"), "-a", there.address, "-p", str(port)]
        with subprocess.Popen([find_server(), *options], stderr=subprocess.DEVNULL) as server:
            try:
                yield there, f"nats://{there.address}:{port}"
            finally:
                server.kill()


@pytest.mark.network(Namespace.address)
async def test_a_worker_behind_a_pulled_cable_is_fenced_when_it_is_back(
    server_of_two_machines: tuple[Namespace, str],
) -> None:
    """Its lease ends on the server's clock, another goes on, and what it writes later is refused."""
    there, address = server_of_two_machines
    command = there.command(sys.executable, "-c", WORKER, address)
    async with NatsStore(address, NatsSettings(lease=2, patience=60)) as store:
        await store.threads()
        async with await anyio.open_process(command, stderr=None) as worker:
            try:
                with anyio.fail_after(120):
                    assert worker.stdout is not None
                    assert worker.stdin is not None
                    assert await worker.stdout.receive() == b"ok\n"
                    there.pull()
                    claim = await claim_when_free(store)
                    assert await store.append(claim, [step(2)]) is Appended.OK
                    there.plug()
                    await worker.stdin.send(b"\n")
                    assert await worker.stdout.receive() == b"fenced\n"
                    await worker.stdin.send(b"\n")
            finally:
                worker.kill()
        assert await store.append(claim, [step(3)]) is Appended.OK
        numbers = [e.body.step_id.ordinal for e in await store.read("t") if isinstance(e.body, Outcome)]
    assert numbers == [1, 2, 3]


async def claim_when_free(store: NatsStore) -> Claim:
    while True:
        try:
            return await store.claim("t", "here")
        except ThreadBusy:
            await anyio.sleep(0.05)
