"""Files of every released version stay readable, and become files of this version when they are opened."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import pytest
from attrs import fields, has

from locus.core.journal import BLANK, Body, entry_from_json, fold
from locus.core.messages import Block
from locus.core.state import AgentState
from locus_plugin_sqlite import FileLocked, SqliteStore, file, schema

from .journals import agent, told
from .journals import write as write_as_now

pytestmark = pytest.mark.anyio

DATA = Path(__file__).parent / "data"
RELEASED = sorted(each.name.removesuffix(".db.gz") for each in DATA.glob("*.db.gz"))


@pytest.fixture(params=RELEASED)
def released(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """A file that a released version has written, and what it read in it."""
    path = tmp_path / "runs.db"
    path.write_bytes(gzip.decompress((DATA / f"{request.param}.db.gz").read_bytes()))
    return path, json.loads(gzip.decompress((DATA / f"{request.param}.json.gz").read_bytes()))


def test_every_release_has_left_a_file() -> None:
    assert "0.1.0" in RELEASED


async def test_what_a_released_version_wrote_is_read_as_that_version_read_it(
    released: tuple[Path, dict[str, Any]],
) -> None:
    path, expected = released
    assert json.loads(json.dumps(await told(path))) == expected


async def test_snapshots_of_a_released_version_are_folds(released: tuple[Path, dict[str, Any]]) -> None:
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


async def test_a_run_that_a_released_version_left_open_is_resumed(released: tuple[Path, dict[str, Any]]) -> None:
    path, _ = released
    async with SqliteStore(path) as store:
        result = await agent(store, "thank you").resume("open", "yes")
        assert result.text == "thank you"
        assert "they said yes" in str(result.state.messages)
        assert (await agent(store, "once more").run("Go on.", thread_id="fork")).text == "once more"


async def test_the_program_that_writes_these_files_still_works(tmp_path: Path) -> None:
    await write_as_now(tmp_path / "runs.db")
    assert set(await told(tmp_path / "runs.db")) == {
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


def test_the_newest_file_holds_every_kind_of_entry_and_block() -> None:
    threads = json.loads(gzip.decompress((DATA / f"{RELEASED[-1]}.json.gz").read_bytes()))
    bodies = [entry_from_json(entry[3]) for thread in threads.values() for entry in thread["entries"]]
    wanted = {kind.__name__ for union in (Body, Block) for kind in get_args(union)}
    assert wanted - kinds(bodies) == set()  # `journals.py` must write what is new
    assert any(
        "summary" in key for key in fold(BLANK, [entry_from_json(e[3]) for e in threads["all"]["entries"]]).metadata
    )


def test_the_newest_file_holds_every_kind_of_row(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    path.write_bytes(gzip.decompress((DATA / f"{RELEASED[-1]}.db.gz").read_bytes()))
    for table in ("threads", "entries", "snapshots", "blobs", "uses"):
        assert look(path, f"SELECT count(*) FROM {table}")[0] > 0, table
    assert look(path, "SELECT count(*) FROM threads WHERE parent IS NOT NULL")[0] > 0


def test_every_file_says_where_it_comes_from() -> None:
    origins = (DATA / "README.md").read_text()
    assert [version for version in RELEASED if f"\n| {version} |" not in origins] == []


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
            with pytest.raises(FileLocked, match=f"it has schema version {schema.VERSION - 1} and is to get"):
                await newer.threads()
        await older.release(claim)
    async with SqliteStore(path) as newer:
        assert await newer.threads()
