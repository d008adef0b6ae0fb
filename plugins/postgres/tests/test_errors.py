"""What is wrong with a server is said in words that help, and a password is in none of them."""

from __future__ import annotations

import logging
import socket
import traceback
from typing import Any

import pytest

from locus import Agent
from locus.core.errors import ConfigError, StoreError
from locus.journal import Appended
from locus.plugins import Secret
from locus_plugin_postgres import (
    EntryDamaged,
    PostgresDenied,
    PostgresFull,
    PostgresProblem,
    PostgresReadOnly,
    PostgresStore,
    PostgresTooOld,
    PostgresUnreachable,
    SchemaForeign,
    SchemaTooNew,
    StoreClosed,
)
from locus_plugin_postgres import schema as tables
from locus_testkit import ScriptedModel
from locus_testkit.contracts._samples import texts

from .server import PASSWORD, Server

pytestmark = pytest.mark.anyio

SHOWN = PASSWORD.split()


def said(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(error)


async def refusal(store: PostgresStore) -> StoreError:
    """What the first call raises."""
    async with store:
        with pytest.raises(StoreError) as caught:
            await store.claim("t", "w")
    assert not any(word in said(caught.value) + repr(store) for word in SHOWN)
    return caught.value


async def test_a_server_that_does_not_run(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = server.url().replace(f":{server.port}/", f":{taken.getsockname()[1]}/")
        error = await refusal(PostgresStore(url, patience=0.3))
    assert isinstance(error, PostgresUnreachable)
    assert "could not be reached for 0.3 s" in str(error)
    assert "check that it runs" in str(error)
    assert not any(word in caplog.text for word in SHOWN)


async def test_a_server_that_never_answers(server: Server) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = server.url().replace(f":{server.port}/", f":{silent.getsockname()[1]}/")
        error = await refusal(PostgresStore(url, patience=0.3))
    assert isinstance(error, PostgresUnreachable)
    assert "did not answer within 0.3 s" in str(error)


async def test_a_wrong_password_and_a_user_that_does_not_exist(server: Server) -> None:
    for url in (server.url(password="wr0ng"), server.url(user="nobody")):
        error = await refusal(PostgresStore(url))
        assert isinstance(error, PostgresDenied)
        assert "check the user and the password" in str(error)
        assert "wr0ng" not in said(error)


async def test_a_database_that_does_not_exist(server: Server) -> None:
    error = await refusal(PostgresStore(server.url(database="nowhere")))
    assert isinstance(error, PostgresDenied)
    assert 'database "nowhere" does not exist; create the database' in str(error)


async def test_a_password_may_be_a_secret_that_is_asked_for_each_connection(server: Server, schema: str) -> None:
    asked: list[str] = []

    async def fetch() -> str:
        asked.append("")
        return PASSWORD

    url = server.url().replace(":s3cr3t%20w0rd@", "@")
    async with PostgresStore(url, schema=schema, password=Secret(fetch)) as store:
        assert await store.threads() == ()
    assert asked


@pytest.mark.parametrize(
    "url",
    [
        "postgres://u:s3cr3t/word@h/db",
        "postgres://u:12/s3cr3t@h/db",
        "postgres://u:12#s3cr3t@h/db",
        "postgres://u:12?s3cr3t@h/db",
        "postgres://u:s3cr3t@h:s3cr3t/db",
        "postgres://u:s3cr3t word@h/db",
        "postgres://u:s3@cr3t@h/db",
        "postgres://[s3cr3t/db",
        "postgres:s3cr3t",
        "mysql://u:s3cr3t@h/db",
    ],
)
async def test_an_address_that_cannot_be_read_is_not_repeated(url: str) -> None:
    with pytest.raises(ConfigError, match="cannot be read; write postgres://USER@HOST:PORT/DATABASE") as caught:
        PostgresStore(url)
    assert "s3cr3t" not in said(caught.value)


async def test_what_the_driver_says_of_an_address_is_not_repeated() -> None:
    store = PostgresStore("postgres://u:s3cr3t@127.0.0.1:1/db?sslmode=s3cr3t", patience=0.3)
    error = await refusal(store)
    assert isinstance(error, PostgresUnreachable)
    assert "check the address" in str(error)


async def test_an_agent_says_what_was_saved_and_not_the_password(server: Server, schema: str) -> None:
    agent = Agent(ScriptedModel("hi"), checkpointer=server.url(password="wr0ng"))
    with pytest.raises(StoreError, match="does not let this user in") as caught:
        await agent.run("Hello.", thread_id="t")
    assert "wr0ng" not in said(caught.value) + repr(agent)
    for scheme in ("postgres", "postgresql"):
        url = server.url().replace("postgres://", f"{scheme}://")
        settings: Any = {scheme: {"schema": schema}}
        agent = Agent(ScriptedModel("hi"), checkpointer=url, **settings)
        assert (await agent.run("Hello.", thread_id=scheme)).text == "hi"


async def test_tables_of_a_newer_version_are_refused_with_both_numbers(server: Server, schema: str) -> None:
    async with PostgresStore(server.url(), schema=schema) as store:
        await store.setup()
    server.sql(f"INSERT INTO {schema}.version (version) VALUES (99)")
    error = await refusal(PostgresStore(server.url(), schema=schema))
    assert isinstance(error, SchemaTooNew)
    assert (error.found, error.supported) == (99, tables.VERSION)
    assert f"version 99, this installation reads up to {tables.VERSION}; upgrade" in str(error)


async def test_tables_of_an_older_version_are_migrated_once(
    server: Server, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with PostgresStore(server.url(), schema=schema) as store:
        await store.release(await store.claim("kept", "w"))
    monkeypatch.setattr(tables, "MIGRATIONS", {1: ["ALTER TABLE {s}.threads ADD more integer"]})
    monkeypatch.setattr(tables, "VERSION", 2)
    for _ in range(2):
        async with PostgresStore(server.url(), schema=schema) as store:
            assert [info.thread_id for info in await store.threads()] == ["kept"]
    assert [row["version"] for row in server.sql(f"SELECT version FROM {schema}.version WHERE $1", True)] == [1, 2]


async def test_a_migration_that_fails_changes_nothing(
    server: Server, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with PostgresStore(server.url(), schema=schema) as store:
        await store.setup()
    with monkeypatch.context() as patched:
        patched.setattr(tables, "MIGRATIONS", {1: ["ALTER TABLE {s}.threads ADD more integer", "SELECT 1/0"]})
        patched.setattr(tables, "VERSION", 2)
        await refusal(PostgresStore(server.url(), schema=schema))
    async with PostgresStore(server.url(), schema=schema) as store:
        assert await store.threads() == ()
    columns = "SELECT 1 FROM information_schema.columns WHERE table_schema = $1 AND column_name = 'more'"
    assert server.sql(columns, schema) == []


async def test_tables_of_another_program_are_left_alone(server: Server, schema: str) -> None:
    server.sql(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.orders (id int)")
    error = await refusal(PostgresStore(server.url(), schema=schema))
    assert isinstance(error, SchemaForeign)
    assert "such as 'orders'; set another schema" in str(error)
    assert server.sql("SELECT count(*) AS n FROM pg_tables WHERE schemaname = $1", schema)[0]["n"] == 1


async def test_an_old_server_is_refused(server: Server, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "OLDEST_SERVER", 99)
    error = await refusal(PostgresStore(server.url(), schema=schema))
    assert isinstance(error, PostgresTooOld)
    assert error.supported == 99


async def test_a_user_without_rights_learns_whom_to_ask(server: Server, schema: str) -> None:
    server.sql(f"CREATE ROLE r_{schema} LOGIN PASSWORD 'other'")
    error = await refusal(PostgresStore(server.url(f"r_{schema}", "other"), schema=schema))
    assert isinstance(error, PostgresDenied)
    assert "have the owner of the schema run setup()" in str(error)


async def test_a_replica_and_a_full_disk(server: Server, schema: str) -> None:
    async with PostgresStore(server.url(), schema=schema, patience=0.3) as store:
        claim = await store.claim("t", "w")
        assert await store.append(claim, texts(1)) is Appended.OK
        for code, kind in (("53100", PostgresFull), ("25006", PostgresReadOnly)):
            server.sql(
                f"CREATE FUNCTION {schema}.fail() RETURNS trigger LANGUAGE plpgsql AS "
                f"$$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '{code}'; END $$; "
                f"CREATE TRIGGER fail BEFORE INSERT ON {schema}.entries EXECUTE FUNCTION {schema}.fail()"
            )
            with pytest.raises(kind):
                await store.append(claim, texts(1))
            server.sql(f"DROP FUNCTION {schema}.fail CASCADE")
        assert await store.append(claim, texts(1)) is Appended.OK
        assert len(await store.read("t")) == 2


async def test_a_missing_entry_is_damage_with_its_number(server: Server, schema: str) -> None:
    async with PostgresStore(server.url(), schema=schema) as store:
        claim = await store.claim("t", "w")
        for _ in range(3):
            await store.append(claim, texts(2))
        await store.release(claim)
        for last, n in ((4, 3), (6, 3), (2, 1)):
            server.sql(f"DELETE FROM {schema}.entries WHERE last = $1 RETURNING 1", last)
            for call in (store.read("t"), store.peek("t"), store.claim("t", "w")):
                with pytest.raises(EntryDamaged, match=f"entry {n} of thread 't' is missing") as caught:
                    await call
                assert (caught.value.thread_id, caught.value.n) == ("t", n)
        assert await store.delete("t")  # it is not held


async def test_a_closed_store(server: Server) -> None:
    store = PostgresStore(server.url())
    await store.aclose()
    with pytest.raises(StoreClosed, match="make another PostgresStore"):
        await store.threads()
    await store.aclose()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"schema": 'a"; DROP'}, "schema must be letters, digits"),
        ({"lease": 0}, "lease must be a number of seconds above 0"),
        ({"connections": 0}, "connections must be an int of 1 or more"),
        ({"tls": "maybe"}, "tls"),
        ({"sync": "off"}, "sync"),
    ],
)
async def test_settings_that_make_no_sense(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        PostgresStore("postgres://127.0.0.1/db", **given)


async def test_every_problem_is_an_error_of_the_store() -> None:
    assert issubclass(PostgresProblem, StoreError)
    assert issubclass(EntryDamaged, StoreError)
