"""Searches: every line that a pattern finds, and the time of a search, whatever the pattern."""

from __future__ import annotations

import re

import anyio

from locus.files import MAX_MATCHES
from locus_testkit.contracts._backend import PATIENCE, BackendPromises, Files

__all__ = ["GrepPromises"]

_POEM = {
    "/poems/jabber.txt": "'Twas brillig, and the slithy toves\nDid gyre and gimble in the wabe:\n\nBEWARE the frumious",
    "/poems/de/erl.txt": "Wer reitet so spät\ndurch Nacht und Wind?\nDie Straße, die STRASSE\n",
    "/list.txt": "alpha 1.5\nbeta 22\ngamma a.c abc\nthe end\n",
}

#: What they find is known from Python's own module; with parts that can be missing, alternatives and classes, since an
#: index of words or of characters must not lose what they match.
_PATTERNS = (
    "the",
    "(?i)beware",
    "colou?r|brillig",
    "the (slithy|wabe)",
    "gy?re and (gimble)?",
    "(abc){0}alpha",
    "x*beta",
    "a.c",
    r"a\.c",
    r"\d+\.\d",
    "^the",
    "^$",
    "e$",
    "[Nn]acht",
    "sp\u00e4t",
    "(?i)STRASSE",
    "Stra\u00dfe",
    "fr(um)+ious",
    "(?:wi|WI)nd",
    "w.be:?",
    "",
)


class GrepPromises(BackendPromises):
    """`grep`."""

    async def test_every_line_that_matches_is_found(self, files: Files) -> None:
        """With its file and its number from 1; a line that matches twice is found once."""
        await files.write_all(_POEM)
        for pattern in _PATTERNS:
            wanted = [
                (path, number, line)
                for path, text in sorted(_POEM.items())
                for number, line in enumerate(text.removesuffix("\n").split("\n"), 1)
                if re.search(pattern, line)
            ]
            assert (pattern, await files.grep(pattern)) == (pattern, wanted)

    async def test_search_stays_in_its_directory(self, files: Files) -> None:
        """In a file, in a directory, or below it; the root is a directory like any other."""
        await files.write_all({"/a.txt": "x", "/d/b.txt": "x", "/d/e/c.txt": "x", "/d2/f.txt": "x"})
        assert [path for path, _, _ in await files.grep("x")] == ["/a.txt", "/d/b.txt", "/d/e/c.txt", "/d2/f.txt"]
        assert [path for path, _, _ in await files.grep("x", recursive=False)] == ["/a.txt"]
        assert [path for path, _, _ in await files.grep("x", "/d")] == ["/d/b.txt", "/d/e/c.txt"]
        assert [path for path, _, _ in await files.grep("x", "/d", recursive=False)] == ["/d/b.txt"]
        assert [path for path, _, _ in await files.grep("x", "/d/b.txt")] == ["/d/b.txt"]
        assert await files.code_of("grep", "x", path="/nowhere") == "file_not_found"

    async def test_search_sees_the_newest_content(self, files: Files) -> None:
        """Not what was there before a write or an edit."""
        await files.write("/a.txt", "first words")
        await files.write("/a.txt", "second words")
        assert (await files.grep("first"), len(await files.grep("second"))) == ([], 1)
        await files.edit("/a.txt", "second", "third")
        assert (await files.grep("second"), len(await files.grep("third"))) == ([], 1)

    async def test_match_is_within_one_line(self, files: Files) -> None:
        """Neither a class nor a space nor an escape goes over the end of a line."""
        await files.write("/a.txt", "one\ntwo\n")
        for pattern in (r"one\stwo", r"one\ntwo", "one[^x]two", "(?s)one.two"):
            assert await files.grep(pattern) == []

    async def test_pattern_that_cannot_be_is_refused(self, files: Files) -> None:
        """Look-around and back-references as well: what needs more than linear time is not offered."""
        await files.write("/a.txt", "a")
        for pattern in ("(", "a)|(b", "[a", "a{2,1}", "*a", r"(a)\1", "(?=a)", "(?<!a)b"):
            assert (pattern, await files.code_of("grep", pattern)) == (pattern, "invalid_pattern")

    async def test_search_for_a_hostile_pattern_ends(self, files: Files) -> None:
        """The time grows with the text, not exponentially."""
        await files.write("/a.txt", "a" * 50_000 + "!")
        for pattern in ("(a+)+$", "(a|a)*$", "(.*a){20}$", "(x+x+)+y|(a*)*$"):
            with anyio.fail_after(PATIENCE):
                assert await files.code_of("grep", pattern) in ("", "invalid_pattern", "timeout")

    async def test_matches_are_bounded(self, files: Files) -> None:
        """The first ones of them."""
        await files.write_all({"/a.txt": "x\n" * MAX_MATCHES, "/b.txt": "x\n"})
        found = await files.grep("x")
        assert len(found) == MAX_MATCHES
        assert {path for path, _, _ in found} == {"/a.txt"}

    async def test_binary_file_is_not_searched(self, files: Files) -> None:
        """A file with a NUL byte near its beginning is left out."""
        await files.write_all({"/a.bin": "\0text", "/b.txt": "text"})
        assert await files.grep("text") == [("/b.txt", 1, "text")]
