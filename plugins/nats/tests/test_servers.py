"""Servers that are away, come back, refuse, are too full or are other ones."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import nkeys  # type: ignore[import-untyped]
import pytest
import trustme

from locus.core.errors import ConfigError, StoreError, ThreadBusy
from locus.core.journal import Body, Outcome, StepId
from locus.journal import Appended
from locus.plugins import Secret
from locus_plugin_nats import (
    DevServer,
    NatsRefused,
    NatsSettings,
    NatsStore,
    NatsUnreachable,
    StoreClosed,
    StreamFull,
    StreamMismatch,
    TooOld,
)

from .streams import expire_lease

pytestmark = pytest.mark.anyio


def step(n: int, size: int = 0) -> Body:
    return Outcome(run_id="run", step_id=StepId(0, "step", n), value=f"value {n}" + "x" * size)


async def test_server_that_is_not_there_is_unreachable_and_the_error_says_what_to_do(prefix: str) -> None:
    """Within `patience`, with the address and a command."""
    async with NatsStore("nats://127.0.0.1:1", NatsSettings(prefix=prefix, patience=0.3)) as store:
        with pytest.raises(NatsUnreachable, match=r"nats://127.0.0.1:1: not reachable for 0.3 s .*locus nats dev"):
            await store.claim("t", "w")


async def test_claim_survives_a_server_that_is_killed_and_started_again(own_server: DevServer, prefix: str) -> None:
    """The store connects again by itself; what was acknowledged is there, and nothing twice."""
    async with NatsStore(own_server.url, NatsSettings(prefix=prefix)) as store:
        claim = await store.claim("t", "w")
        assert await store.append(claim, [step(1)]) is Appended.OK
        own_server.kill()
        posted = store.post(claim, [step(2)])
        own_server.start()
        assert await posted.wait() is Appended.OK
        assert await store.append(claim, [step(3)]) is Appended.OK
        assert [entry.body for entry in await store.read("t")] == [step(1), step(2), step(3)]


async def test_nobody_is_taken_for_dead_right_after_the_server_was_away(own_server: DevServer, prefix: str) -> None:
    """A worker whose lease the server forgot may only have been cut off like this one."""
    settings = NatsSettings(prefix=prefix, lease=60)
    async with NatsStore(own_server.url, settings) as here, NatsStore(own_server.url, settings) as there:
        claim = await here.claim("t", "here")
        await there.read("t")
        own_server.kill()
        own_server.start()
        await there.read("t")
        await here._do(lambda session: session.lease.end())
        with pytest.raises(ThreadBusy, match="here"):
            await there.claim("t", "there")
        assert await here.append(claim, [step(1)]) is Appended.OK


async def test_append_to_a_server_that_stays_away_is_unknown_or_an_error(own_server: DevServer, prefix: str) -> None:
    """It is never reported as stored, and the next claim tells."""
    async with NatsStore(own_server.url, NatsSettings(prefix=prefix, patience=0.5)) as store:
        claim = await store.claim("t", "w")
        own_server.kill()
        with contextlib.suppress(NatsUnreachable):
            assert await store.append(claim, [step(1)]) is Appended.UNKNOWN
        await store.release(claim)
        own_server.start()
        with anyio.fail_after(20):
            while True:
                try:
                    again = await store.claim("t", "w")
                except (NatsUnreachable, ThreadBusy):
                    await anyio.sleep(0.1)
                    continue
                break
        assert len(again.entries) in (0, 1)


async def test_lease_runs_out_on_the_servers_clock(server: DevServer, prefix: str) -> None:
    """A store that says nothing any more loses its threads; one that lives keeps them past its lease."""
    settings = NatsSettings(prefix=prefix, lease=1)
    async with NatsStore(server.url, settings) as live, NatsStore(server.url, settings) as other:
        kept = await live.claim("kept", "w")
        dead = NatsStore(server.url, settings)
        lost = await dead.claim("lost", "w")
        dead._worker._loop.call_soon_threadsafe(time.sleep, 3)
        with anyio.fail_after(15):
            while True:
                try:
                    await other.claim("lost", "another")
                    break
                except ThreadBusy:
                    await anyio.sleep(0.05)
        with pytest.raises(ThreadBusy):
            await other.claim("kept", "another")
        assert await live.append(kept, [step(1)]) is Appended.OK
        assert await dead.append(lost, [step(1)]) is Appended.FENCED
        await dead.aclose()


async def test_timer_renews_no_lease_of_a_program_that_says_it_hangs(server: DevServer, prefix: str) -> None:
    """Others get what it holds, as if its process had died; when it is well again it finds out."""
    settings = NatsSettings(prefix=prefix, lease=1)
    async with NatsStore(server.url, settings) as hangs, NatsStore(server.url, settings) as other:
        claim = await hangs.claim("t", "w")
        asked: list[bool] = []

        def is_alive() -> bool:
            asked.append(False)
            return False

        hangs.renew_while(is_alive)
        with anyio.fail_after(30):
            while True:
                try:
                    await other.claim("t", "next")
                    break
                except ThreadBusy:
                    await anyio.sleep(0.05)
        assert asked
        hangs.renew_while(lambda: True)
        assert not await hangs.renew(claim)
        assert await hangs.append(claim, [step(1)]) is Appended.FENCED


@pytest.mark.parametrize(
    ("config", "given", "wrong"),
    [
        ('authorization { token: "s3cret-t" }', {"token": Secret("s3cret-t")}, {"token": Secret("not-this-one")}),
        (
            'authorization { user: ann, password: "s3cret-p" }',
            {"user": "ann", "password": Secret("s3cret-p")},
            {"user": "ann", "password": Secret("not-this-one")},
        ),
    ],
    ids=["token", "password"],
)
async def test_credentials_are_used_and_never_shown(
    tmp_path: Path, prefix: str, config: str, given: dict[str, Any], wrong: dict[str, Any]
) -> None:
    """Right ones let in, from the settings or the address; wrong ones are refused at once."""
    with DevServer(tmp_path / "server", config=config) as server:
        async with NatsStore(server.url, NatsSettings(prefix=prefix, **given)) as store:
            await store.release(await store.claim("t", "w"))
        inside = "s3cret-t" if "token" in given else "ann:s3cret-p"
        address = server.url.replace("//", f"//{inside}@")
        async with NatsStore(address, NatsSettings(prefix=prefix)) as store:
            assert "s3cret" not in repr(store)
            await store.release(await store.claim("t", "w"))
        for settings in (NatsSettings(prefix=prefix, **wrong), NatsSettings(prefix=prefix)):
            began = time.monotonic()
            async with NatsStore(server.url, settings) as store:
                with pytest.raises(NatsRefused, match="does not accept the credentials") as caught:
                    await store.claim("t", "w")
            assert "not-this-one" not in f"{caught.value!r} {caught.value} {store!r} {store.settings!r}"
            assert time.monotonic() - began < store.settings.patience


async def test_nkey_of_a_file_lets_in(tmp_path: Path, prefix: str) -> None:
    """The seed stays in its file; another one is refused."""
    seeds = [nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER) for _ in range(2)]
    for n, seed in enumerate(seeds):
        (tmp_path / f"{n}.nk").write_bytes(seed)
    public = nkeys.from_seed(bytearray(seeds[0])).public_key.decode()
    with DevServer(tmp_path / "server", config=f"authorization {{ users: [ {{ nkey: {public} }} ] }}") as server:
        async with NatsStore(server.url, NatsSettings(prefix=prefix, nkey=str(tmp_path / "0.nk"))) as store:
            await store.release(await store.claim("t", "w"))
        async with NatsStore(server.url, NatsSettings(prefix=prefix, nkey=str(tmp_path / "1.nk"))) as store:
            with pytest.raises(NatsRefused) as caught:
                await store.claim("t", "w")
        assert seeds[1].decode() not in str(caught.value)


async def test_tls_with_certificates_of_both_sides(tmp_path: Path, prefix: str) -> None:
    """The server's is checked against `tls_ca`, and this side shows its own."""
    ca, other = trustme.CA(), trustme.CA()
    there, here = ca.issue_cert("127.0.0.1"), ca.issue_cert("worker")
    files = {name: str(tmp_path / name) for name in ("ca", "other", "cert", "key", "own", "own_key")}
    ca.cert_pem.write_to_path(files["ca"])
    other.cert_pem.write_to_path(files["other"])
    there.cert_chain_pems[0].write_to_path(files["cert"])
    there.private_key_pem.write_to_path(files["key"])
    here.cert_chain_pems[0].write_to_path(files["own"])
    here.private_key_pem.write_to_path(files["own_key"])
    config = (
        f'tls {{ cert_file: "{files["cert"]}", key_file: "{files["key"]}", ca_file: "{files["ca"]}", verify: true }}'
    )
    own: dict[str, Any] = {"tls_cert": files["own"], "tls_key": files["own_key"]}
    with DevServer(tmp_path / "server", config=config) as server:
        address = server.url.replace("nats:", "tls:")
        async with NatsStore(address, NatsSettings(prefix=prefix, tls_ca=files["ca"], **own)) as store:
            await store.release(await store.claim("t", "w"))
        for wrong in ({"tls_ca": files["other"], **own}, {"tls_ca": files["ca"]}):
            async with NatsStore(address, NatsSettings(prefix=prefix, patience=0.5, **wrong)) as store:
                with pytest.raises(NatsUnreachable):
                    await store.claim("t", "w")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"creds": "nowhere.creds"}, "creds: nowhere.creds cannot be read: No such file"),
        ({"tls_cert": "a"}, "tls_cert and tls_key belong together"),
        ({"user": "ann", "token": Secret("s3cret")}, "expected one of user, token, creds and nkey, got user, token"),
    ],
)
async def test_credentials_that_cannot_be_used_are_a_mistake_of_the_settings(given: dict[str, Any], said: str) -> None:
    async with NatsStore("nats://127.0.0.1:1", NatsSettings(**given)) as store:
        with pytest.raises(ConfigError, match=said) as caught:
            await store.claim("t", "w")
    assert "s3cret" not in str(caught.value)


async def test_lost_claim_is_said_without_being_asked_for(server: DevServer, prefix: str) -> None:
    """The store finds out by itself, so that a run does not pay for what it cannot write."""
    settings = NatsSettings(prefix=prefix, lease=1)
    async with NatsStore(server.url, settings) as here, NatsStore(server.url, settings) as there:
        claim = await here.claim("t", "w")
        lost = threading.Event()
        claim.watch.on_lost = lost.set
        await expire_lease(here)
        await there.claim("t", "another")
        assert await anyio.to_thread.run_sync(lost.wait, 20)
        assert claim.watch.is_lost
        assert await here.append(claim, [step(1)]) is Appended.FENCED


async def test_full_stream_refuses_and_goes_on_when_there_is_room(server: DevServer, prefix: str) -> None:
    """Nothing old makes room for it: what was stored stays, and a deletion makes room."""
    async with NatsStore(server.url, NatsSettings(prefix=prefix, max_bytes=60_000)) as store:
        kept = await store.claim("kept", "w")
        assert await store.append(kept, [step(1)]) is Appended.OK
        full = await store.claim("full", "w")

        async def fill() -> None:
            for n in range(100):
                assert await store.append(full, [step(n, 1300)]) is Appended.OK

        with pytest.raises(StreamFull, match=r"no room.*Nothing was written.*locus threads prune"):
            await fill()
        assert [entry.body for entry in await store.read("kept")] == [step(1)]
        stored = len(await store.read("full"))
        assert stored > 10
        assert [entry.body for entry in await store.read("full")] == [step(n, 1300) for n in range(stored)]
        await store.release(full)
        assert await store.delete("full")
        assert await store.append(kept, [step(2)]) is Appended.OK


async def test_stream_of_another_kind_is_refused_and_left_alone(server: DevServer, prefix: str) -> None:
    """The error names what differs."""
    async with NatsStore(server.url, NatsSettings(prefix=f"{prefix}other")) as store:
        await store.release(await store.claim("t", "w"))
        config = {"name": prefix.upper(), "subjects": [f"{prefix}.j.>"], "max_age": 3_600_000_000_000}
        await store._do(lambda session: session.wire.api(f"STREAM.CREATE.{prefix.upper()}", **config))
    async with NatsStore(server.url, NatsSettings(prefix=prefix)) as store:
        with pytest.raises(StreamMismatch, match=r"max_age is 3600000000000, expected 0"):
            await store.claim("t", "w")


async def test_replication_that_is_promised_is_checked(server: DevServer, prefix: str) -> None:
    """A stream with one copy does not survive its server's disk."""
    async with NatsStore(server.url, NatsSettings(prefix=prefix)) as store:
        await store.release(await store.claim("t", "w"))
    async with NatsStore(server.url, NatsSettings(prefix=prefix, durability="replicated")) as store:
        with pytest.raises(StreamMismatch, match="num_replicas is 1, expected '3 or more'"):
            await store.claim("t", "w")


async def test_server_without_jetstream_is_refused(tmp_path: Path, prefix: str) -> None:
    """The error says how to start it."""
    with DevServer(tmp_path / "server", jetstream=False) as server:
        async with NatsStore(server.url, NatsSettings(prefix=prefix, patience=0.5)) as store:
            with pytest.raises(TooOld, match="without JetStream; start it with -js") as caught:
                await store.claim("t", "w")
    assert caught.value.found


async def test_closed_store_says_so(server: DevServer, prefix: str) -> None:
    """What it held is free for others at once."""
    async with NatsStore(server.url, NatsSettings(prefix=prefix)) as store:
        await store.claim("t", "w")
    with pytest.raises(StoreClosed, match="was closed; make another NatsStore"):
        await store.read("t")
    async with NatsStore(server.url, NatsSettings(prefix=prefix)) as other:
        assert (await other.claim("t", "another")).is_abandoned is False


@pytest.mark.parametrize(
    "address", ["http://a", "nats://a:port", "nats://", "nats://a/path", "nats://a:1:2", "nats://u:p@a,nats://v:p@b"]
)
def test_invalid_address_is_refused_without_its_password(address: str) -> None:
    with pytest.raises(ConfigError) as caught:
        NatsStore(address)
    assert ":p@" not in str(caught.value)


@pytest.mark.parametrize(
    "wrong", [{"prefix": "a.b"}, {"prefix": ""}, {"lease": 0.5}, {"patience": 0}, {"replicas": 6}, {"durability": "x"}]
)
def test_setting_that_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        NatsSettings(**wrong)  # type: ignore[arg-type]


def test_errors_are_store_errors() -> None:
    assert all(issubclass(each, StoreError) for each in (NatsUnreachable, StreamFull, StreamMismatch, TooOld))
