"""Files of the version before become files of this one when they are opened; the oldest are refused.

Nothing was released yet, so the files are written by the program beside this one; from the first release on, those that
a released version has left are kept, and must be read as that version read them.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import anyio
import pytest
from attrs import fields, has

from locus.core.journal import BLANK, Body, entry_from_json, fold
from locus.core.messages import Block
from locus.core.state import AgentState
from locus_plugin_sqlite import FileLocked, FileTooOld, SqliteStore, file, schema

from .journals import agent, told
from .journals import write as write_as_now

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def newest(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, str]:
    """A file with every kind of entry and of row, and what was read in it, as JSON."""
    path = tmp_path_factory.mktemp("newest") / "runs.db"
    anyio.run(write_as_now, path)
    found = json.dumps(anyio.run(told, path))
    return path.read_bytes(), found


@pytest.fixture
def released(newest: tuple[bytes, str], tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """A copy of that file, and what was read in it."""
    path = tmp_path / "runs.db"
    path.write_bytes(newest[0])
    return path, json.loads(newest[1])


async def test_what_was_written_is_read_again(
    released: tuple[Path, dict[str, Any]],
) -> None:
    path, expected = released
    assert json.loads(json.dumps(await told(path))) == expected


async def test_snapshots_are_folds(released: tuple[Path, dict[str, Any]]) -> None:
    path, expected = released
    async with SqliteStore(path) as store:
        seen = 0
        for thread, was in expected.items():
            found = await store.peek(thread)
            assert found is not None
            start = BLANK
            if found.snapshot is not None:
                start, seen = found.snapshot.state, seen + 1
            state = fold(start, [entry.body for entry in found.entries])
            assert state == AgentState.from_checkpoint(was["state"])
        assert seen >= 2


async def test_a_run_that_was_left_open_is_resumed(released: tuple[Path, dict[str, Any]]) -> None:
    path, _ = released
    async with SqliteStore(path) as store:
        result = await agent(store, "thank you").resume("open", "yes")
        assert result.text == "thank you"
        assert "they said yes" in str(result.state.messages)
        assert (await agent(store, "once more").run("Go on.", thread_id="fork")).text == "once more"


def test_the_file_holds_every_thread(released: tuple[Path, dict[str, Any]]) -> None:
    assert set(released[1]) == {
        "long",
        "open",
        "fork",
        "early",
        "of what is gone",
        "again",
        "all",
        "large",
    }


def kinds(value: Any) -> set[str]:
    """The classes of a value, and of everything in it."""
    found = {type(value).__name__}
    parts: Any = value if isinstance(value, tuple | list) else ()
    if isinstance(value, dict):
        parts = value.values()
    elif has(type(value)):
        parts = [getattr(value, each.name) for each in fields(type(value))]
    return found.union(*map(kinds, parts))


def test_the_file_holds_every_kind_of_entry_and_block(released: tuple[Path, dict[str, Any]]) -> None:
    _, threads = released
    bodies = [entry_from_json(entry[3]) for thread in threads.values() for entry in thread["entries"]]
    wanted = {kind.__name__ for union in (Body, Block) for kind in get_args(union)}
    assert wanted - kinds(bodies) == set()  # `journals.py` must write what is new
    assert any(
        "summary" in key for key in fold(BLANK, [entry_from_json(e[3]) for e in threads["all"]["entries"]]).metadata
    )


def test_the_file_holds_every_kind_of_row(released: tuple[Path, dict[str, Any]]) -> None:
    path, _ = released
    for table in ("threads", "entries", "snapshots", "blobs", "uses"):
        assert look(path, f"SELECT count(*) FROM {table}")[0] > 0, table
    assert look(path, "SELECT count(*) FROM threads WHERE parent IS NOT NULL")[0] > 0


async def test_a_file_from_before_the_first_release_is_refused(released: tuple[Path, dict[str, Any]]) -> None:
    path, _ = released
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version=1")
    before = path.read_bytes()
    async with SqliteStore(path) as store:
        with pytest.raises(FileTooOld, match="it has schema version 1, of a plugin that was never released") as caught:
            await store.threads()
    assert caught.value.found == 1
    assert path.read_bytes() == before


# -- migrations -----------------------------------------------------------------------------------


@pytest.fixture
def next_version(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes this code the one of the next version, with the migration that this needs."""

    def become(migration: Callable[[sqlite3.Connection], None]) -> None:
        now = schema.VERSION
        monkeypatch.setattr(schema, "MIGRATIONS", {**schema.MIGRATIONS, now: migration})
        for module in (schema, file):
            monkeypatch.setattr(module, "VERSION", now + 1)

    return become


def look(path: Path, statement: str) -> Any:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(statement).fetchone()


def migration(db: sqlite3.Connection) -> None:
    db.execute("ALTER TABLE threads ADD COLUMN label TEXT")
    db.execute("UPDATE threads SET label=upper(name)")


async def test_a_file_of_version_2_gets_its_queue(released: tuple[Path, dict[str, Any]]) -> None:
    path, expected = released
    made = "SELECT name FROM sqlite_master WHERE name IN ('queue', 'signals', 'forgotten', 'removed') ORDER BY name"
    with closing(sqlite3.connect(path)) as db:
        for name, kind in (("forgotten", "TRIGGER"), ("removed", "TRIGGER"), ("queue", "TABLE"), ("signals", "TABLE")):
            db.execute(f"DROP {kind} {name}")
        db.execute("PRAGMA user_version=2")
    assert json.loads(json.dumps(await told(path))) == expected
    async with SqliteStore(path) as store:
        assert await store.submit("new", [entry_from_json(expected["all"]["entries"][0][3])], queue="q") is True
        assert await store.queues() == ("q",)
    with closing(sqlite3.connect(path)) as db:
        assert [name for (name,) in db.execute(made)] == ["forgotten", "queue", "removed", "signals"]


async def test_an_older_file_is_migrated_when_it_is_opened(
    released: tuple[Path, dict[str, Any]], next_version: Callable[..., None]
) -> None:
    path, expected = released
    next_version(migration)

    assert json.loads(json.dumps(await told(path))) == expected
    assert look(path, "PRAGMA user_version") == (schema.VERSION,)
    assert look(path, "SELECT label FROM threads WHERE name='long'") == ("LONG",)


async def test_a_migration_that_fails_changes_nothing(
    released: tuple[Path, dict[str, Any]], next_version: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, expected = released

    def fails(db: sqlite3.Connection) -> None:
        migration(db)
        raise RuntimeError("the power went")

    with monkeypatch.context() as patch:
        now = schema.VERSION
        patch.setattr(schema, "MIGRATIONS", {now: fails})
        patch.setattr(schema, "VERSION", now + 1)
        patch.setattr(file, "VERSION", now + 1)
        async with SqliteStore(path) as store:
            with pytest.raises(RuntimeError, match="the power went"):
                await store.threads()
    assert json.loads(json.dumps(await told(path))) == expected


async def test_a_file_is_not_migrated_under_a_process_that_uses_it(
    released: tuple[Path, dict[str, Any]], next_version: Callable[..., None]
) -> None:
    path, _ = released
    async with SqliteStore(path) as older:
        claim = await older.claim("long", "w")
        next_version(migration)
        async with SqliteStore(path) as newer:
            with pytest.raises(FileLocked, match=f"it has schema version {schema.VERSION - 1} and must be upgraded to"):
                await newer.threads()
        await older.release(claim)
    async with SqliteStore(path) as newer:
        assert await newer.threads()
