"""``locus threads verify``, ``salvage``, ``backup``: a real file, in good order and damaged."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

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
