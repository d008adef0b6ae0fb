"""Text files that somebody else may have written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from locus_kit.textfiles import MAX_BYTES, TextFileError, read_below, read_text


def test_text_is_read_without_what_cannot_be_seen(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbf\n one\r\ntwo\xe2\x80\x8b\x1b[2J \n")
    assert read_text(tmp_path / "a") == "one\ntwo[2J"


def test_a_missing_file_gives_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert read_text(tmp_path / "missing") is None
    assert read_text(tmp_path / "file" / "below") is None
    assert read_below(tmp_path, ["no", "file"]) is None
    assert read_below(tmp_path / "no", ["file"]) is None


def test_what_is_not_a_small_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"x" * (MAX_BYTES + 1))
    (tmp_path / "fits").write_bytes(b"x" * MAX_BYTES)
    (tmp_path / "binary").write_bytes(b"ab\xff")
    os.mkfifo(tmp_path / "pipe")
    assert read_text(tmp_path / "fits") == "x" * MAX_BYTES
    for path, why in (
        (tmp_path / "big", "more than 64,000 bytes"),
        (tmp_path / "binary", "not UTF-8 text: invalid start byte at byte 2"),
        (tmp_path / "pipe", "not a regular file"),
        (tmp_path, "not a regular file"),
        (Path("/dev/zero"), "not a regular file"),
        (tmp_path / "a\0b", "its path cannot be used"),
    ):
        with pytest.raises(TextFileError, match=why):
            read_text(path)


def test_links_are_followed_only_where_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("text")
    (tmp_path / "link").symlink_to("real")
    assert read_text(tmp_path / "link") == "text"
    with pytest.raises(TextFileError, match="cannot be read"):
        read_text(tmp_path / "link", follow=False)


@pytest.mark.parametrize(
    "parts", [[], [".."], ["a", "..", "b"], ["/etc/passwd"], ["a/b"], [""], ["."], ["a\0"]], ids=repr
)
def test_a_path_stays_below_its_folder(tmp_path: Path, parts: list[str]) -> None:
    with pytest.raises(TextFileError, match=r"without '\.\.'"):
        read_below(tmp_path, parts)


def test_no_link_below_the_folder_is_followed(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "file").write_text(folder.name)
    (inside / "folder").symlink_to(outside)
    (inside / "link").symlink_to(outside / "file")
    (tmp_path / "way").symlink_to(inside)
    assert read_below(tmp_path / "way", ["file"]) == "inside"
    for parts in (["folder", "file"], ["link"]):
        with pytest.raises(TextFileError, match="cannot be read"):
            read_below(inside, parts)
