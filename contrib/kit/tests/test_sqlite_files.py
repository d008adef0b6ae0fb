"""Files in one SQLite file: the promises of a store, several processes, and what can be wrong with the file."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus.core.errors import ConfigError, StoreError
from locus.files import BackendError
from locus_kit.sqlite_files import SqliteFiles
from locus_testkit import BackendFeatures, FileStoreContract

_PARTS, _EDITS = 3, 20

#: What one of the processes does: it counts, as often as its argument says.
_COUNT = """
import sys
from locus.files import BackendError
from locus_kit.sqlite_files import SqliteFiles
files = SqliteFiles(sys.argv[1])
for _ in range(int(sys.argv[2])):
    while True:
        seen = files.load("/n")
        try:
            files.save("/n", b"%d" % (int(seen.data) + 1), version=seen.version)
            break
        except BackendError as e:
            assert e.code == "conflict", e
"""


class TestSqliteFiles(FileStoreContract):
    features = BackendFeatures(persistent=True, shared=True)

    def make_files(self, folder: Path) -> SqliteFiles:
        return SqliteFiles(folder / "files.db")


def test_processes_lose_none_of_each_others_changes(tmp_path: Path) -> None:
    path = str(tmp_path / "f.db")
    SqliteFiles(path).save("/n", b"0")
    command = [sys.executable, "-c", _COUNT, path, str(_EDITS)]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(_PARTS)]
    assert [(one.communicate()[1], one.returncode) for one in running] == [(b"", 0)] * _PARTS
    assert SqliteFiles(path).load("/n").data == b"%d" % (_PARTS * _EDITS)


def test_processes_that_create_the_file_at_once_agree(tmp_path: Path) -> None:
    path = str(tmp_path / "f.db")
    code = "import sys; from locus_kit.sqlite_files import SqliteFiles; SqliteFiles(sys.argv[1]).save(sys.argv[2], b'')"
    running = [subprocess.Popen([sys.executable, "-c", code, path, f"/{n}"], stderr=subprocess.PIPE) for n in range(4)]
    assert [(one.communicate()[1], one.returncode) for one in running] == [(b"", 0)] * 4
    assert [info.path for info in SqliteFiles(path).list("/")] == ["/0", "/1", "/2", "/3"]


def test_namespaces_know_nothing_of_each_other(tmp_path: Path) -> None:
    one, other = SqliteFiles(tmp_path / "f.db", namespace="one"), SqliteFiles(tmp_path / "f.db", namespace="other")
    one.save("/a", b"secret word")
    assert other.list("/") == []
    assert other.candidates("/", ["secret"]) == ()
    with pytest.raises(BackendError, match="file_not_found"):
        other.load("/a")
    other.save("/a/b", b"x")
    assert [info.path for info in one.list("/")] == ["/a"]


@contextmanager
def open_files() -> Iterator[SqliteFiles]:
    with tempfile.TemporaryDirectory() as folder:
        files = SqliteFiles(Path(folder) / "f.db")
        yield files
        files.close()


_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["straße", "STRASSE", "İstanbul", "ﬀ", "a\0bcd", 'say "it"', "x" * 20, "ǅ", "ΑΣ ας", "K\u212a"]
)


@settings(max_examples=15)
@given(contents=st.lists(_TEXTS, min_size=1, max_size=4), wanted=_TEXTS)
def test_a_file_that_holds_a_text_is_a_candidate(contents: list[str], wanted: str) -> None:
    with open_files() as files:
        for n, text in enumerate(contents):
            files.save(f"/{n}", b"something else")  # what is replaced is forgotten
            files.save(f"/{n}", text.encode())
        found = files.candidates("/", [wanted])
        assert {f"/{n}" for n, text in enumerate(contents) if wanted in text} <= set(found)
        binary = tuple(f"/{n}" for n, text in enumerate(contents) if "\0" in text)
        assert files.candidates("/", ["something else"]) == binary


def test_large_and_binary_files_are_candidates_of_every_search(tmp_path: Path) -> None:
    files = SqliteFiles(tmp_path / "f.db")
    files.save("/large", b"x" * 300_000)
    files.save("/binary", b"\xff\xfe")
    files.save("/small", b"x")
    assert files.candidates("/", ["needle"]) == ("/binary", "/large")
    files.save("/large", b"x")
    assert files.candidates("/", ["needle"]) == ("/binary",)


def test_a_short_text_narrows_nothing(tmp_path: Path) -> None:
    files = SqliteFiles(tmp_path / "f.db")
    files.save("/a", b"x")
    assert files.candidates("/", []) == files.candidates("/", ["yz"]) == ("/a",)


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    SqliteFiles(tmp_path / "f.db").save("/a", b"x")
    assert {oct(each.stat().st_mode & 0o777) for each in tmp_path.iterdir()} == {"0o600"}


@pytest.mark.parametrize("path", ["", ":memory:", "a\0b"])
def test_a_path_that_is_not_one_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match="expected the path of an SQLite file"):
        SqliteFiles(path)


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be created"):
        SqliteFiles(tmp_path / "nowhere" / "f.db").list("/")


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE mine (x)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="something else"):
        SqliteFiles(path).save("/a", b"x")
    assert path.read_bytes() == before


def test_a_file_that_is_not_a_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database at all, but long enough to be looked at\n" * 40)
    with pytest.raises(StoreError, match="cannot be used"):
        SqliteFiles(path).save("/a", b"x")
    assert path.read_text().startswith("not a database")


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    SqliteFiles(tmp_path / "f.db").save("/a", b"x")
    with sqlite3.connect(tmp_path / "f.db") as db:
        db.execute("PRAGMA user_version=99")
    db.close()
    with pytest.raises(ConfigError, match="it has version 99"):
        SqliteFiles(tmp_path / "f.db").load("/a")


def test_a_lock_that_lasts_is_a_timeout(tmp_path: Path) -> None:
    files = SqliteFiles(tmp_path / "f.db", busy_timeout=0.05)
    files.save("/a", b"x")
    with sqlite3.connect(tmp_path / "f.db", isolation_level=None) as db:
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(BackendError, match="timeout: another process"):
            files.save("/a", b"y")
        assert files.load("/a").data == b"x"
        db.execute("ROLLBACK")
    db.close()
    files.save("/a", b"y")


def test_a_file_that_may_not_grow_keeps_what_it_has(tmp_path: Path) -> None:
    files = SqliteFiles(tmp_path / "f.db", max_bytes=200_000)
    files.save("/a", b"x")
    with pytest.raises(BackendError, match="permission_denied: no room"):
        files.save("/a", os.urandom(400_000))
    assert files.load("/a").data == b"x"
    files.save("/a", b"y")


def test_a_file_that_was_deleted_is_made_anew(tmp_path: Path) -> None:
    files = SqliteFiles(tmp_path / "f.db")
    files.save("/a", b"x")
    for each in tmp_path.iterdir():
        each.unlink()
    assert files.list("/") == []
    files.save("/b", b"y")
    assert [info.path for info in SqliteFiles(tmp_path / "f.db").list("/")] == ["/b"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_forked_process_is_refused(tmp_path: Path) -> None:
    files = SqliteFiles(tmp_path / "f.db")
    files.save("/a", b"x")
    ours, theirs = multiprocessing.get_context("fork").Pipe()
    pid = os.fork()
    if not pid:  # pragma: no cover - another process
        try:
            files.load("/a")
        except BaseException as e:  # noqa: BLE001
            theirs.send(str(e))
        os._exit(0)
    os.waitpid(pid, 0)
    assert "forked" in ours.recv()
    assert files.load("/a").data == b"x"
