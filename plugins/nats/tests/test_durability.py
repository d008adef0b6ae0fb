"""Servers that stand still, are copied amid their writes, or are one of three: they keep what they acknowledged.

What a power cut takes is tried in `test_privileged`.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import anyio
import pytest

from locus.core.journal import Body, Outcome, StepId
from locus.journal import Appended
from locus_plugin_nats import DevServer, NatsSettings, NatsStore
from locus_plugin_nats.session import Session
from locus_testkit.freezing import freeze_process, thaw_process

pytestmark = [pytest.mark.anyio, pytest.mark.proof]

IS_QUICK = os.environ.get("LOCUS_PROOFS", "quick") == "quick"

#: Appends of a test.
APPENDS = 30 if IS_QUICK else 300


@pytest.fixture
def anyio_backend() -> str:
    """The store has a thread and a loop of its own, so one loop around it is as good as the other."""
    return "asyncio"


def step(n: int) -> Body:
    return Outcome(run_id="run", step_id=StepId(0, "step", n), value=f"value {n}")


async def read(address: str, prefix: str, thread_id: str = "t") -> list[Body]:
    async with NatsStore(address, NatsSettings(prefix=prefix)) as store:
        return [entry.body for entry in await store.read(thread_id)]


async def test_a_run_goes_on_when_its_server_has_stood_still_for_six_seconds(
    own_server: DevServer, prefix: str
) -> None:
    """The run waits, goes on when it is back, and nobody takes the thread from it right then."""
    assert own_server.process is not None
    async with NatsStore(own_server.url, NatsSettings(prefix=prefix, lease=2, patience=30)) as store:
        claim = await store.claim("t", "w")
        assert await store.append(claim, [step(1)]) is Appended.OK
        freeze_process(own_server.process.pid)
        posted = store.post(claim, [step(2)])
        await anyio.sleep(6)
        thaw_process(own_server.process.pid)
        with anyio.fail_after(60):
            assert await posted.wait() is Appended.OK
        assert await store.append(claim, [step(3)]) is Appended.OK
        assert [entry.body for entry in await store.read("t")] == [step(1), step(2), step(3)]


def copy_frozen(server: DevServer, into: Path) -> None:
    """What a server that dies at this moment leaves; it is frozen before it is copied, so the copy is of one moment."""
    assert server.process is not None
    freeze_process(server.process.pid)
    try:
        shutil.copytree(server.folder, into)
    finally:
        thaw_process(server.process.pid)


async def test_what_was_acknowledged_is_in_a_copy_of_the_frozen_servers_folder(tmp_path: Path, prefix: str) -> None:
    """At many moments amid writes: what the copy lacks was not acknowledged."""
    acknowledged = 0
    cuts: list[tuple[Path, int]] = []
    with DevServer(tmp_path / "server") as server:
        async with NatsStore(server.url, NatsSettings(prefix=prefix)) as store:
            claim = await store.claim("t", "w")

            async def write() -> None:
                nonlocal acknowledged
                for n in range(1, APPENDS + 1):
                    assert await store.append(claim, [step(n)]) is Appended.OK
                    acknowledged = n

            async with anyio.create_task_group() as group:
                group.start_soon(write)
                for n in range(3 if IS_QUICK else 10):
                    while acknowledged < (n + 1) * APPENDS // 12:  # noqa: ASYNC110 - another task counts
                        await anyio.sleep(0.001)
                    cuts.append((tmp_path / f"cut {n}", acknowledged))
                    await anyio.to_thread.run_sync(copy_frozen, server, cuts[-1][0])
    for folder, least in cuts:
        with DevServer(folder) as again:
            found = await read(again.url, prefix)
        assert found[:least] == [step(n) for n in range(1, least + 1)]
        assert found == [step(n) for n in range(1, len(found) + 1)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[list[DevServer]]:
    """Three servers that know of each other."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(3)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        ports = [each.getsockname()[1] for each in sockets]
        stack.close()
        routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in ports)
        servers = [
            DevServer(
                tmp_path / f"n{n}",
                config=f'server_name: n{n}\ncluster {{ name: c, listen: "127.0.0.1:{port}", routes: [ {routes} ] }}',
            )
            for n, port in enumerate(ports)
        ]
        try:
            for server in servers:
                server.start()
            yield servers
        finally:
            for server in servers:
                server.stop()


async def test_a_run_goes_on_while_each_of_three_servers_is_killed_in_turn(
    cluster: list[DevServer], prefix: str
) -> None:
    """Two of three acknowledge each append, so none is lost, and none is there twice."""
    address = ",".join(server.url for server in cluster)
    settings = NatsSettings(prefix=prefix, replicas=3, durability="replicated", patience=60, lease=30)
    count = 0
    async with NatsStore(address, settings) as store:
        claim = await store.claim("t", "w")

        async def write(times: int) -> None:
            nonlocal count
            for _ in range(times):
                count += 1
                with anyio.fail_after(90):
                    assert await store.append(claim, [step(count)]) is Appended.OK

        await write(APPENDS // 6)
        for server in cluster:
            server.kill()
            await write(APPENDS // 6)
            server.start()
            await write(APPENDS // 6)
            await wait_for_replicas(store)
        with anyio.fail_after(60):
            assert [entry.body for entry in await store.read("t")] == [step(n) for n in range(1, count + 1)]


async def wait_for_replicas(store: NatsStore) -> None:
    """Until every copy of the journals is current, as before a person restarts the next server."""
    with anyio.fail_after(90):
        while True:
            info = await store._do(lambda s: s.wire.api(f"STREAM.INFO.{s.names.journal}"))
            copies = info.get("cluster", {}).get("replicas", [])
            if len(copies) == 2 and all(each.get("current") and not each.get("offline") for each in copies):
                return
            await anyio.sleep(0.1)


async def test_space_of_deleted_threads_is_free_again(own_server: DevServer, prefix: str) -> None:
    """The stream of journals and that of payloads shrink; the files of the server follow."""
    async with NatsStore(own_server.url, NatsSettings(prefix=prefix)) as store:
        for name in ("ended", "kept"):
            claim = await store.claim(name, "w")
            for n in range(40):
                text = os.urandom(25_000).hex()
                body = Outcome(run_id="run", step_id=StepId(0, "step", n), value=text)
                assert await store.append(claim, [body]) is Appended.OK
            await store.release(claim)

        async def size_of(session: Session) -> int:
            names = (session.names.journal, session.names.blobs)
            return sum([(await session.wire.api(f"STREAM.INFO.{name}"))["state"]["bytes"] for name in names])

        before = await store._do(size_of)
        assert await store.delete("ended")
        assert await store._do(size_of) < before * 0.55
        assert len(await store.read("kept")) == 40
