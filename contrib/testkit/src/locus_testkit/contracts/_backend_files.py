"""One file: what is written is what is read, an edit changes what it says, and mistakes change nothing."""

from __future__ import annotations

import pytest

from locus_testkit.contracts._backend import BackendPromises, Files

__all__ = ["FilePromises"]

#: Characters that separate lines for `str.splitlines`, and not for a file.
_NOT_ENDS = "a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g"


class FilePromises(BackendPromises):
    """`write`, `read` and `edit`."""

    async def test_lines_are_numbered_as_cat_does(self, files: Files) -> None:
        """Six places for the number, from 1, then a tab."""
        await files.write("/a.txt", "one\ntwo\n")
        assert await files.read("/a.txt") == ["     1\tone", "     2\ttwo"]

    async def test_last_line_needs_no_end(self, files: Files) -> None:
        """A text without a newline at its end has as many lines; one that ends with two has an empty one more."""
        await files.write("/a", "one\ntwo")
        await files.write("/b", "one\n\n")
        assert await files.read("/a") == ["     1\tone", "     2\ttwo"]
        assert await files.read("/b") == ["     1\tone", "     2\t"]

    async def test_pages_begin_behind_the_lines_left_out(self, files: Files) -> None:
        """The offset counts from 0, numbers stay those of the file, and 100 lines come unless it is said."""
        await files.write("/a.txt", "".join(f"line {n}\n" for n in range(1, 251)))
        assert await files.read("/a.txt", offset=2, limit=2) == ["     3\tline 3", "     4\tline 4"]
        assert len(await files.read("/a.txt")) == 100
        assert (await files.read("/a.txt", offset=249))[0] == "   250\tline 250"

    async def test_no_limit_gives_all_lines(self, files: Files) -> None:
        """A limit of 0 or less means all."""
        await files.write("/a.txt", "x\n" * 250)
        assert len(await files.read("/a.txt", offset=0, limit=0)) == 250
        assert len(await files.read("/a.txt", offset=10, limit=-1)) == 240

    async def test_only_newlines_end_lines(self, files: Files) -> None:
        """Other separators belong to the line, so that numbers are those of every editor."""
        await files.write("/a.txt", f"{_NOT_ENDS}\nsecond\n")
        assert await files.lines("/a.txt") == [_NOT_ENDS, "second"]

    async def test_empty_file_exists(self, files: Files) -> None:
        """It has no lines, and a size of 0."""
        await files.write("/a.txt", "")
        assert await files.lines("/a.txt") in ([], [""])
        assert [info.size for info in await files.ls("/")] == [0]

    async def test_write_replaces_all_of_a_file(self, files: Files) -> None:
        """Nothing of a longer text is left."""
        await files.write("/a.txt", "a long text\nof two lines\n")
        await files.write("/a.txt", "short")
        assert await files.lines("/a.txt") == ["short"]

    async def test_write_makes_parents(self, files: Files) -> None:
        """Directories need not be made."""
        await files.write("/a/b/c.txt", "x")
        assert await files.tree() == ["/a/", "/a/b/", "/a/b/c.txt"]

    async def test_text_of_any_script_comes_back(self, files: Files) -> None:
        """As it was, also beyond the basic plane, and composed or not."""
        text = "Zürich, Zu\u0308rich, Ελλάδα, 東京, 🗼, \u200b, \ufeff"
        await files.write("/a.txt", text)
        assert await files.lines("/a.txt") == [text]

    async def test_large_text_comes_back(self, files: Files) -> None:
        """A megabyte, and what is in its last line is found."""
        await files.write("/a.txt", "0123456789" * 10 + "\n" + "line\n" * 200_000 + "last\n")
        assert await files.read("/a.txt", offset=200_001, limit=5) == ["200002\tlast"]
        assert await files.grep("^last$") == [("/a.txt", 200_002, "last")]

    async def test_edit_replaces_the_one_occurrence(self, files: Files) -> None:
        """Over several lines if need be; everything else stays, ends of lines included."""
        await files.write("/a.txt", "one\r\ntwo\r\nthree\r\n")
        await files.edit("/a.txt", "two\r\nthr", "2, 3, f")
        assert await files.lines("/a.txt") == ["one\r", "2, 3, fee\r"]
        await files.edit("/a.txt", "fee", "")
        assert await files.lines("/a.txt") == ["one\r", "2, 3, \r"]

    async def test_edit_needs_exactly_one_occurrence(self, files: Files) -> None:
        """None, two, or an empty text: an error for the model, and the file stays. A text is not a pattern."""
        await files.write("/a.txt", "twin twin aaa")
        for old in ("nothing of it", "twin", "a?a", ""):
            with pytest.raises(ValueError, match=r"\S"):
                await files.edit("/a.txt", old, "new")
            assert await files.lines("/a.txt") == ["twin twin aaa"]

    async def test_overlapping_occurrences_are_two(self, files: Files) -> None:
        """Which one is meant cannot be known."""
        await files.write("/a.txt", "-aaa-")
        with pytest.raises(ValueError, match=r"\S"):
            await files.edit("/a.txt", "aa", "b")
        assert await files.lines("/a.txt") == ["-aaa-"]

    async def test_missing_file_is_not_found(self, files: Files) -> None:
        """For whatever needs one, and nothing is made by asking."""
        assert await files.code_of("read", "/a/b.txt") == "file_not_found"
        assert await files.code_of("edit", "/a/b.txt", "x", "y") == "file_not_found"
        assert await files.tree() == []

    async def test_directory_is_not_a_file(self, files: Files) -> None:
        """It is neither read nor replaced."""
        await files.write("/a/b/c.txt", "x")
        for path in ("/", "/a", "/a/b"):
            assert await files.code_of("read", path) == "is_directory"
            assert await files.code_of("edit", path, "x", "y") == "is_directory"
            assert await files.code_of("write", path, "x") == "is_directory"
        assert await files.tree() == ["/a/", "/a/b/", "/a/b/c.txt"]

    async def test_file_is_not_a_directory(self, files: Files) -> None:
        """Nothing can be written below it."""
        await files.write("/a", "x")
        assert await files.code_of("write", "/a/b", "y") == "invalid_path"
        assert await files.code_of("read", "/a/b") == "file_not_found"
        assert (await files.tree(), await files.lines("/a")) == (["/a"], ["x"])

    async def test_text_without_utf8_is_refused(self, files: Files) -> None:
        """Half of a surrogate pair, as models make it: an error with a code, and the old content stays."""
        await files.write("/a.txt", "old")
        assert await files.code_of("write", "/a.txt", "\ud800") == "not_text"
        assert await files.lines("/a.txt") == ["old"]
