"""What is promised of a server is checked where it can be seen, and said where it is little."""

from __future__ import annotations

import logging
import socket
from pathlib import Path

import pytest
from plugins.cli.tests.conftest import Locus

from locus_plugin_nats import DevServer, NatsSettings, NatsStore, NotSynced
from locus_plugin_nats.errors import NatsProblem


def free_port() -> int:
    with socket.socket() as each:
        each.bind(("127.0.0.1", 0))
        return int(each.getsockname()[1])


@pytest.mark.anyio
@pytest.mark.parametrize("sync", [True, False])
async def test_a_promise_to_sync_is_compared_with_what_the_server_says(
    tmp_path: Path, prefix: str, *, sync: bool
) -> None:
    port = free_port()
    settings = NatsSettings(prefix=prefix, durability="fsync", monitor=f"http://127.0.0.1:{port}/")
    with DevServer(tmp_path / "server", sync=sync, config=f'http: "127.0.0.1:{port}"') as server:
        async with NatsStore(server.url, settings) as store:
            if sync:
                await store.release(await store.claim("t", "w"))
            else:
                with pytest.raises(NotSynced, match=r"does not sync each write: start it with `sync_interval: always`"):
                    await store.claim("t", "w")


@pytest.mark.anyio
async def test_an_endpoint_that_does_not_answer_is_an_error_that_names_it(server: DevServer, prefix: str) -> None:
    settings = NatsSettings(prefix=prefix, durability="fsync", monitor=f"http://127.0.0.1:{free_port()}")
    async with NatsStore(server.url, settings) as store:
        with pytest.raises(NatsProblem, match=r"/varz did not say whether it syncs each write"):
            await store.claim("t", "w")


@pytest.mark.anyio
async def test_a_server_as_it_comes_is_warned_of_once(
    own_server: DevServer, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "locus.nats"):
        for name in (prefix, f"{prefix}again"):
            async with NatsStore(own_server.url, NatsSettings(prefix=name)) as store:
                await store.release(await store.claim("t", "w"))
        async with NatsStore(own_server.url, NatsSettings(prefix=prefix, durability="fsync")) as store:
            await store.release(await store.claim("t", "w"))
    (said,) = [each.getMessage() for each in caplog.records if each.name == "locus.nats"]
    assert said.startswith(f"{own_server.url}: a power cut takes up to 2 minutes of what was acknowledged")


def test_doctor_says_what_a_power_cut_takes(here: Path, locus: Locus) -> None:
    done = locus("plugins", "doctor", "nats")
    assert done.status == 0
    assert "a power cut takes what was written since the server last synced" in done.out

    (here / "locus.toml").write_text('[plugins.nats]\ndurability = "fsync"\n')
    assert "a power cut takes nothing" in locus("plugins", "doctor", "nats").out


def test_doctor_tries_a_server_and_makes_nothing_there(here: Path, locus: Locus, own_server: DevServer) -> None:
    (here / "locus.toml").write_text("[plugins.nats]\npatience = 2.0\n")
    good = locus("plugins", "doctor", own_server.url)
    bad = locus("plugins", "doctor", "nats://127.0.0.1:1")

    assert good.status == 0
    assert "can be used; a power cut takes" in good.out
    assert not list((own_server.folder / "jetstream").rglob("LOCUS"))
    assert bad.status == 1
    assert "not reachable for" in bad.out


@pytest.mark.parametrize("monitor", ["db1:8222", "file:///etc/passwd", ""])
def test_an_endpoint_is_an_address_of_http(monitor: str) -> None:
    with pytest.raises(ValueError, match="monitor must be an address such as"):
        NatsSettings(monitor=monitor)
