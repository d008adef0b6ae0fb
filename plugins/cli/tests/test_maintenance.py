"""``locus threads verify``, ``salvage``, ``backup``, ``prune``: a real file, in good order and damaged."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from locus_plugin_sqlite.checks import row_check

Locus = Callable[..., Any]


@pytest.fixture
def file(keeper: Locus, here: Path) -> Path:
    """A file with two threads."""
    for thread in ("a", "b"):
        done = keeper("run", "x", "-m", "toy:echo", "-q", "--thread", thread, "--checkpointer", "mine.db")
        assert done.status == 0
    return here / "mine.db"


def damage(file: Path) -> None:
    """Change the newest entry of the first thread."""
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("UPDATE entries SET body='[]' WHERE key=(SELECT max(key) FROM entries WHERE key >> 32 = 1)")


@pytest.mark.usefixtures("file")
def test_a_file_in_good_order_is_verified(keeper: Locus) -> None:
    done = keeper("threads", "verify", "--checkpointer", "mine.db")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("2 threads, ")
    assert done.out.endswith(" entries: in good order\n")


def test_damage_is_listed_and_the_rest_is_saved(keeper: Locus, file: Path, here: Path) -> None:
    damage(file)
    found = keeper("threads", "verify", "--checkpointer", "mine.db")
    assert found.status == 1
    assert "'a'" in found.lines[0]
    assert found.lines[-1].endswith("`locus threads salvage NEW.db` saves what can be read")
    listed = json.loads(keeper("threads", "verify", "--json", "--checkpointer", "mine.db").out)
    assert [each["thread_id"] for each in listed["damage"]] == ["a"]

    made = keeper("threads", "salvage", "new.db", "--checkpointer", "mine.db")

    assert made.status == 1
    assert "of thread 'a' and what follows it are lost" in made.err
    assert made.out.startswith("saved 2 threads, ")
    assert keeper("threads", "verify", "--checkpointer", "new.db").status == 0
    again = keeper("threads", "salvage", "new.db", "--checkpointer", "mine.db")
    assert (again.status, "it exists; name a new file" in again.err) == (1, True)


def test_a_copy_holds_the_same_threads(keeper: Locus, file: Path) -> None:
    done = keeper("threads", "backup", "copy.db", "--checkpointer", "mine.db")

    assert (done.status, done.out) == (0, "copied mine.db to copy.db\n")
    shown = [keeper("threads", "show", "a", "--checkpointer", name).out for name in (file.name, "copy.db")]
    assert shown[0] == shown[1] != ""
    assert keeper("threads", "verify", "--checkpointer", "copy.db").status == 0


@pytest.mark.parametrize("arguments", [["verify"], ["salvage", "new.db"], ["backup", "new.db"]])
def test_a_store_that_offers_none_says_what_to_do(keeper: Locus, arguments: list[str]) -> None:
    done = keeper("threads", *arguments, "--checkpointer", "toy:kept")

    assert done.status == 2
    assert f"toy:kept: this kind of store has no {arguments[0]!r}; use the tools of the service" in done.err


@pytest.mark.usefixtures("file")
def test_what_is_damaged_is_told_with_the_command_that_helps(keeper: Locus, file: Path, here: Path) -> None:
    damage(file)
    for arguments in (["threads", "show", "a"], ["threads", "verify"]):
        done = keeper(*arguments, "--checkpointer", "mine.db")
        assert (done.status, "SqliteStore" in done.err) == (1, False)
        assert "save what can be read with `locus threads salvage NEW.db`" in done.err
    (here / "letter.db").write_text("Dear Ann,")
    done = keeper("threads", "salvage", "new.db", "--checkpointer", "letter.db")
    assert (done.status, done.out, len(done.lines)) == (1, "", 1)
    assert "letter.db: nothing of it can be read (SQLite: file is not a database)" in done.err
    assert not (here / "new.db").exists()


def test_a_file_that_is_not_there_is_not_taken_for_an_empty_one(keeper: Locus) -> None:
    done = keeper("threads", "--checkpointer", "mine.bd.db")
    assert (done.status, done.err) == (0, "locus: no threads in mine.bd.db; there is no such file\n")


# --- pruning ------------------------------------------------------------------------------------


@pytest.fixture
def aged(file: Path) -> Path:
    """The same file, where thread "a" ended 40 days ago."""
    long_ago = (time.time_ns() - 40 * 24 * 3600 * 10**9) // 1000
    with closing(sqlite3.connect(file)) as db, db:
        rows = db.execute("SELECT key, writer, at, parent, status, node, content FROM entries WHERE key >> 32 = 1")
        before = 0
        for key, writer, _, _, status, node, content in rows.fetchall():
            check = row_check(key, writer, long_ago, before, status, node, content)
            db.execute("UPDATE entries SET at=?, parent=?, checksum=? WHERE key=?", (long_ago, before, check, key))
            before = check
        db.execute("UPDATE threads SET updated=?, tip=? WHERE id=1", (long_ago, before))
    return file


def names(keeper: Locus) -> list[str]:
    done = keeper("threads", "--json", "--checkpointer", "mine.db")
    assert done.status == 0, done.err
    return [json.loads(line)["thread_id"] for line in done.out.splitlines()]


@pytest.mark.usefixtures("aged")
def test_what_ended_long_ago_is_pruned_and_the_room_given_back(keeper: Locus) -> None:
    store = ("--checkpointer", "mine.db")
    dry = keeper("threads", "prune", "--ended-before", "30d", "--dry-run", *store)
    assert (dry.status, dry.out, dry.err) == (0, "a\tended 40 d ago: x\n", "")
    assert json.loads(keeper("threads", "prune", "--ended-before", "30d", "--dry-run", "--json", *store).out) == {
        "would_delete": ["a"]
    }
    failed = keeper("threads", "prune", "--ended-before", "30d", "--status", "failed", "--yes", *store)
    assert (failed.status, failed.out, failed.err) == (0, "", "locus: no thread ended so long ago\n")
    assert names(keeper) == ["b", "a"]

    done = keeper("threads", "prune", "--ended-before", "30d", "--yes", *store)

    assert (done.status, done.out) == (0, "deleted a\n")
    assert done.err.startswith("locus: 1 thread deleted")
    assert names(keeper) == ["b"]
    assert keeper("threads", "verify", *store).status == 0


@pytest.mark.usefixtures("aged")
def test_pruning_asks_and_needs_a_yes_where_nobody_can_answer(keeper: Locus, terminal: Callable[..., Any]) -> None:
    prune = ("threads", "prune", "--ended-before", "30d", "--checkpointer", "mine.db")
    refused = keeper(*prune)
    assert (refused.status, "this deletes 1 thread for good; say --yes" in refused.err) == (2, True)
    assert names(keeper) == ["b", "a"]

    asked = terminal(*prune)
    asked.expect("Delete 1 thread?")
    asked.send("n\n")
    assert asked.finish() == 1
    assert names(keeper) == ["b", "a"]
    asked = terminal(*prune)
    asked.expect("Delete 1 thread?")
    asked.send("y\n")
    assert asked.finish() == 0
    assert names(keeper) == ["b"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--ended-before", "30"], "'30' is not a length of time; write 30d, 12h, 90min or 2w"),
        (["--ended-before", "9999999999w"], "is too long"),
        (["--ended-before", "99999999d"], "nothing is that old"),
        ([], "Missing option '--ended-before'"),
        (["--ended-before", "1d", "--status", "open"], "'open' is not one of"),
    ],
)
@pytest.mark.usefixtures("file")
def test_what_is_typed_wrongly_prunes_nothing(keeper: Locus, arguments: list[str], said: str) -> None:
    done = keeper("threads", "prune", *arguments, "--yes", "--checkpointer", "mine.db")
    assert (done.status, len(done.lines)) == (2, 1)
    assert said in done.err
    assert names(keeper) == ["b", "a"]


def test_a_setting_prunes_by_itself(keeper: Locus, aged: Path, here: Path) -> None:
    (here / "locus.toml").write_text('[agent]\ncheckpointer = "mine.db"\n[plugins.sqlite]\nkeep_ended_days = 30\n')
    assert keeper("run", "x", "-m", "toy:echo", "-q", "--thread", "c").status == 0
    assert names(keeper) == ["c", "b"]
