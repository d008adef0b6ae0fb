"""`VersionedFiles`: an old content is put back, and what somebody else wrote is not replaced."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from locus.files import BackendError
from locus_plugin_filesystem import VersionedFiles, digest_of


@pytest.fixture
def files(tmp_path: Path) -> VersionedFiles:
    return VersionedFiles(tmp_path / "root", links=False)


@pytest.mark.parametrize("before", [None, b"", b"old", b"\xff\x00"])
def test_an_old_content_comes_back_once(files: VersionedFiles, before: bytes | None) -> None:
    if before is not None:
        (files.root / "a").write_bytes(before)
        (files.root / "a").chmod(0o640)
    assert files.load("/a") == before
    files.write("/a", "new")

    assert files.put_back("/a", before, {digest_of(b"new")}) is True
    assert files.put_back("/a", before, {digest_of(b"new")}) is False

    assert files.load("/a") == before
    if before is not None:
        assert (files.root / "a").stat().st_mode & 0o777 == 0o640
    assert [f.name for f in files.root.iterdir()] == ([] if before is None else ["a"])


def test_a_file_with_a_decomposed_name_is_put_back_and_removed_where_it_is(files: VersionedFiles) -> None:
    name = unicodedata.normalize("NFD", "é")
    (files.root / name).mkdir()
    (files.root / name / name).write_bytes(b"old")
    before = files.load("/é/é")
    files.write("/é/é", "new")

    assert files.put_back("/é/é", before, {digest_of(b"new")}) is True
    assert files.load("/é/é") == b"old"
    assert [f.relative_to(files.root).as_posix() for f in files.root.rglob("*")] == [name, f"{name}/{name}"]
    assert files.put_back("/é/é", None, {digest_of(b"old")}) is True
    assert list((files.root / name).iterdir()) == []


@pytest.mark.parametrize("before", [None, b"old"])
@pytest.mark.parametrize("now", [None, b"theirs"])
def test_what_somebody_else_wrote_is_not_replaced(
    files: VersionedFiles, before: bytes | None, now: bytes | None
) -> None:
    if now is not None:
        (files.root / "a").write_bytes(now)
    if before is None and now is None:
        assert files.put_back("/a", before, set()) is False
        return
    with pytest.raises(BackendError) as caught:
        files.put_back("/a", before, {digest_of(b"new")})
    assert caught.value.code == "conflict"
    assert files.load("/a") == now


def test_no_directory_is_made_for_a_file_that_is_gone(files: VersionedFiles) -> None:
    assert files.put_back("/a/b/c", None, set()) is False
    assert list(files.root.iterdir()) == []


def test_a_link_is_neither_read_nor_replaced(files: VersionedFiles, tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"new")
    (files.root / "a").symlink_to(tmp_path / "outside")
    with pytest.raises(BackendError):
        files.load("/a")
    with pytest.raises(BackendError):
        files.put_back("/a", None, {digest_of(b"new")})
    with pytest.raises(BackendError):
        files.put_back("/a", b"old", {digest_of(b"new")})
    assert (tmp_path / "outside").read_bytes() == b"new"


def test_a_file_that_is_too_large_to_keep_is_refused(files: VersionedFiles) -> None:
    with (files.root / "a").open("wb") as file:
        file.truncate(10_000_001)
    with pytest.raises(BackendError, match="has more than 10,000,000 bytes"):
        files.load("/a")
