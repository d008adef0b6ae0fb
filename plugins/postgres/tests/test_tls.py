"""A server with certificates: who is believed, who is let in, and what is said otherwise."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from attrs import frozen

from locus.core.errors import ConfigError
from locus_plugin_postgres import PostgresDenied, PostgresSettings, PostgresStore, PostgresUnreachable
from locus_plugin_postgres.address import Address
from locus_plugin_postgres.tls import arguments

from .server import PASSWORD, Server
from .test_errors import refusal, said

pytestmark = pytest.mark.anyio

#: Everybody needs a password and TLS; the user ``certified`` a certificate with that name instead of the password.
_RULES = "hostssl all certified 127.0.0.1/32 cert\nhostssl all all 127.0.0.1/32 scram-sha-256\n"


@frozen
class Secured:
    """A server that lets nobody in without TLS, and files of certificates."""

    server: Server
    ca: str
    other_ca: str
    client: dict[str, str]
    other_client: dict[str, str]

    def url(self, host: str = "localhost", user: str = "postgres", query: str = "") -> str:
        return self.server.url(user=user, query=query).replace("127.0.0.1", host)

    def store(self, schema: str, url: str = "", **settings: Any) -> PostgresStore:
        return PostgresStore(url or self.url(), schema=schema, patience=30, **settings)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("certificates")
    ca, other = trustme.CA(), trustme.CA()
    for each, name in ((ca, "ca"), (other, "other")):
        each.cert_pem.write_to_path(folder / f"{name}.pem")
        client = each.issue_cert(common_name="certified")
        client.cert_chain_pems[0].write_to_path(folder / f"{name}-client.pem")
        client.private_key_pem.write_to_path(folder / f"{name}-client.key")
    server = Server(tls=True)
    try:
        own = ca.issue_cert("localhost")
        own.cert_chain_pems[0].write_to_path(server.data / "server.crt")
        own.private_key_pem.write_to_path(server.data / "server.key")
        shutil.copy(folder / "ca.pem", server.data / "root.crt")
        (server.data / "server.key").chmod(0o600)
        (server.data / "pg_hba.conf").write_text(_RULES, encoding="utf-8")
        server.own(server.data)
        server.start(ssl="on", ssl_ca_file="root.crt")
        server.sql("CREATE ROLE certified LOGIN; GRANT CREATE ON DATABASE postgres TO certified")
        yield Secured(
            server,
            str(folder / "ca.pem"),
            str(folder / "other.pem"),
            {"cert_file": str(folder / "ca-client.pem"), "key_file": str(folder / "ca-client.key")},
            {"cert_file": str(folder / "other-client.pem"), "key_file": str(folder / "other-client.key")},
        )
    finally:
        server.close()


async def is_encrypted(store: PostgresStore) -> bool:
    async with store:
        found = await store._do(
            (),
            lambda session: session.run(
                lambda db, _: db.fetchval("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
            ),
        )
    return bool(found)


async def test_who_names_a_certificate_has_the_server_checked_in_full(secured: Secured, schema: str) -> None:
    assert await is_encrypted(secured.store(schema, ca_file=secured.ca))

    error = await refusal(secured.store(schema, ca_file=secured.other_ca))
    assert isinstance(error, PostgresUnreachable)
    assert "its certificate is not trusted (" in str(error)
    assert "name the certificates that sign it with ca_file" in str(error)

    error = await refusal(secured.store(schema, secured.url("127.0.0.1"), ca_file=secured.ca))
    assert isinstance(error, PostgresUnreachable)
    assert "its certificate is for another host (" in str(error)
    assert "ca_file" not in str(error)


async def test_address_or_environment_may_name_the_certificates(
    secured: Secured, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = "?sslmode=verify-full"
    assert await is_encrypted(secured.store(schema, secured.url(query=f"{asks}&sslrootcert={secured.ca}")))
    assert await is_encrypted(secured.store(schema, secured.url(query=asks), ca_file=secured.ca))
    error = await refusal(secured.store(schema, secured.url(query=asks), ca_file=secured.other_ca))
    assert "its certificate is not trusted" in str(error)
    monkeypatch.setenv("PGSSLROOTCERT", secured.ca)
    assert await is_encrypted(secured.store(schema, tls="verify-full"))
    monkeypatch.setenv("PGSSLROOTCERT", secured.other_ca)
    error = await refusal(secured.store(schema, tls="verify-full"))
    assert "its certificate is not trusted" in str(error)


async def test_what_each_kind_of_tls_asks_of_the_server(secured: Secured, schema: str) -> None:
    elsewhere = secured.url("127.0.0.1")
    assert await is_encrypted(secured.store(schema, elsewhere, ca_file=secured.ca, tls="verify-ca"))
    assert await is_encrypted(secured.store(schema, tls="require"))
    assert await is_encrypted(secured.store(schema, tls="prefer"))
    # Whoever names the certificates wants them to be looked at.
    error = await refusal(secured.store(schema, ca_file=secured.other_ca, tls="require"))
    assert "its certificate is not trusted" in str(error)
    error = await refusal(secured.store(schema, tls="disable"))
    assert isinstance(error, PostgresDenied)
    assert "no encryption" in str(error)


async def test_client_that_shows_a_certificate(secured: Secured, schema: str) -> None:
    url = secured.url(user="certified").replace(f":{PASSWORD.replace(' ', '%20')}@", "@")
    for tls, ca in ((None, secured.ca), ("require", None)):
        assert await is_encrypted(secured.store(schema, url, ca_file=ca, tls=tls, **secured.client))

    error = await refusal(secured.store(schema, url, ca_file=secured.ca))
    assert isinstance(error, PostgresDenied)
    assert "name the certificate of this client with cert_file" in str(error)

    error = await refusal(secured.store(schema, url, ca_file=secured.ca, **secured.other_client))
    assert isinstance(error, PostgresDenied)
    assert "it refuses the certificate of this client (" in str(error)


async def test_certificates_that_would_not_be_looked_at_or_cannot_be_read(secured: Secured, schema: str) -> None:
    for settings in ({"tls": "prefer", "ca_file": secured.ca}, {"tls": "disable", **secured.client}):
        async with secured.store(schema, **settings) as store:
            with pytest.raises(ConfigError, match=r"looks at no certificate .* set tls to 'verify-full'"):
                await store.threads()
    async with secured.store(schema, ca_file="missing.pem") as store:
        with pytest.raises(ConfigError, match=r"the certificates in missing\.pem cannot be read"):
            await store.threads()


@pytest.mark.parametrize(
    ("url", "is_local"),
    [
        ("postgres://u@localhost/db", True),
        ("postgres://u@127.0.0.1:5432/db", True),
        ("postgres://u@[::1]:5432/db", True),
        ("postgres://u@%2Frun%2Fpostgresql/db", True),
        ("postgres:///db?host=/run/postgresql", True),
        ("postgres:///db", True),
        ("postgres:///db?service=here", True),
        ("postgres://localhost/db?service=there", True),
        ("postgres://u@db.example.com/db", False),
        ("postgres://u@127.example.com/db", False),
        ("postgres://u@localhost,db.example.com/db", False),
        ("postgres:///db?host=127.0.0.1,db.example.com", False),
        ("postgres:///db?service=there", False),
    ],
)
def test_server_elsewhere_is_checked_in_full_wherever_it_is_named(
    url: str, is_local: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = tmp_path / "services"
    services.write_text("[here]\nhost=127.0.0.1\n[there]\nhost=db.example.com\npassword=s3cr3t\n", encoding="utf-8")
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    monkeypatch.delenv("PGHOST", raising=False)

    address = Address.parse(url)
    made = arguments(address, PostgresSettings())["ssl"]

    assert (made == "prefer") == is_local
    assert is_local or made.check_hostname
    assert "s3cr3t" not in repr(address) + repr(made)


def test_host_of_the_environment_is_checked_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "127.0.0.1,db.example.com")
    assert arguments(Address.parse("postgres:///db"), PostgresSettings())["ssl"].check_hostname
    assert arguments(Address.parse("postgres://localhost/db"), PostgresSettings())["ssl"] == "prefer"


async def test_password_of_a_file_and_address_of_a_service(
    secured: Secured, schema: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passwords, services = tmp_path / "pgpass", tmp_path / "services"
    port = secured.server.port
    passwords.write_text(f"localhost:{port}:*:postgres:{PASSWORD}\n", encoding="utf-8")
    passwords.chmod(0o600)
    services.write_text(
        f"[shop]\nhost=localhost\nport={port}\nuser=postgres\ndbname=postgres\n"
        f"sslmode=verify-full\nsslrootcert={secured.ca}\n",
        encoding="utf-8",
    )
    for name in ("PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    monkeypatch.setenv("PGSERVICEFILE", str(services))

    store = secured.store(schema, "postgres://?service=shop")
    assert repr(store) == f"PostgresStore('localhost', schema={schema!r})"
    assert await is_encrypted(store)
    assert await is_encrypted(
        secured.store(schema, f"postgres://postgres@localhost:{port}/postgres", ca_file=secured.ca)
    )

    passwords.write_text(f"localhost:{port}:*:postgres:wr0ng\n", encoding="utf-8")
    error = await refusal(secured.store(schema, "postgres://?service=shop"))
    assert isinstance(error, PostgresDenied)
    assert "wr0ng" not in said(error)
