"""Users whom an operator's account lets in: a file with a JWT and its key, as ``nsc`` writes it, and wrong ones."""

from __future__ import annotations

import base64
import json
import os
import time
from pathlib import Path
from typing import Any

import nkeys  # type: ignore[import-untyped]
import pytest
from attrs import frozen

from locus.core.errors import ConfigError
from locus_plugin_nats import DevServer, NatsRefused, NatsSettings, NatsStore

pytestmark = pytest.mark.anyio

#: What an account may use: everything.
_JETSTREAM = ("mem_storage", "disk_storage", "streams", "consumer")
_LIMITS = dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn", "leaf", *_JETSTREAM), -1)


@frozen
class Party:
    """An operator, an account or a user.

    Args:
        seed: its private key.
        public: what it is called.
    """

    seed: bytes
    public: str

    @classmethod
    def make(cls, kind: int) -> Party:
        seed = nkeys.encode_seed(os.urandom(32), kind)
        return cls(seed, nkeys.from_seed(bytearray(seed)).public_key.decode())

    def sign(self, subject: Party, claims: dict[str, Any], **more: Any) -> str:
        """The JWT of another party, or of its own."""
        whole = {"jti": os.urandom(8).hex(), "iat": int(time.time()), "iss": self.public, "name": "test", **more}
        whole |= {"sub": subject.public, "nats": claims | {"version": 2}}
        text = f"{encode({'typ': 'JWT', 'alg': 'ed25519-nkey'})}.{encode(whole)}"
        signature = nkeys.from_seed(bytearray(self.seed)).sign(text.encode())
        return f"{text}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def encode(form: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(form).encode()).decode().rstrip("=")


def write_creds(path: Path, jwt: str, seed: bytes) -> str:
    path.write_text(
        f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed.decode()}\n------END USER NKEY SEED------\n"
    )
    return str(path)


async def test_creds_of_an_account_let_in_and_others_are_refused_at_once(tmp_path: Path, prefix: str) -> None:
    operator = Party.make(nkeys.PREFIX_BYTE_OPERATOR)
    account, system, stranger = (Party.make(nkeys.PREFIX_BYTE_ACCOUNT) for _ in range(3))
    user = Party.make(nkeys.PREFIX_BYTE_USER)
    accounts = {each.public: operator.sign(each, {"type": "account", "limits": _LIMITS}) for each in (account,)}
    # The server wants one for itself, which has no JetStream.
    without = {name: value for name, value in _LIMITS.items() if name not in _JETSTREAM}
    accounts[system.public] = operator.sign(system, {"type": "account", "limits": without})
    preload = "\n".join(f"{name}: {jwt}" for name, jwt in accounts.items())
    config = (
        f"operator: {operator.sign(operator, {'type': 'operator'})}\nsystem_account: {system.public}\n"
        f"resolver: MEMORY\nresolver_preload: {{\n{preload}\n}}"
    )
    claims = {"type": "user", "subs": -1, "data": -1, "payload": -1}
    good = write_creds(tmp_path / "good.creds", account.sign(user, claims), user.seed)
    other = Party.make(nkeys.PREFIX_BYTE_USER)
    wrong = {
        "of an account that the server does not know": (stranger.sign(user, claims), user.seed),
        "with another user's key": (account.sign(user, claims), other.seed),
        "that have expired": (account.sign(user, claims, exp=int(time.time()) - 60), user.seed),
    }
    with DevServer(tmp_path / "server", config=config) as server:
        async with NatsStore(server.url, NatsSettings(prefix=prefix, creds=good)) as store:
            await store.release(await store.claim("t", "w"))
        for name, (jwt, seed) in wrong.items():
            settings = NatsSettings(prefix=prefix, creds=write_creds(tmp_path / "wrong.creds", jwt, seed))
            began = time.monotonic()
            async with NatsStore(server.url, settings) as store:
                with pytest.raises(NatsRefused, match="does not accept the credentials") as caught:
                    await store.claim("t", "w")
            assert time.monotonic() - began < settings.patience, name
            assert seed.decode() not in f"{caught.value!r} {store!r} {store.settings!r}", name


@pytest.mark.parametrize("text", ["", "not a file of credentials", "-----BEGIN NATS USER JWT-----\nabc\n"])
async def test_damaged_creds_are_a_mistake_of_the_settings(
    server: DevServer, tmp_path: Path, prefix: str, text: str
) -> None:
    path = tmp_path / "user.creds"
    path.write_text(text)
    async with NatsStore(server.url, NatsSettings(prefix=prefix, creds=str(path))) as store:
        with pytest.raises(ConfigError, match=r"creds: .*user.creds has no JWT and key of a user"):
            await store.claim("t", "w")


async def test_damaged_seed_is_a_mistake_of_the_settings(server: DevServer, tmp_path: Path, prefix: str) -> None:
    path = tmp_path / "user.nk"
    path.write_text("SUnot-a-seed")
    async with NatsStore(server.url, NatsSettings(prefix=prefix, nkey=str(path))) as store:
        with pytest.raises(ConfigError, match=r"nkey: .*user.nk has no seed of a user") as caught:
            await store.claim("t", "w")
    assert "not-a-seed" not in str(caught.value)
