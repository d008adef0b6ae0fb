"""Listings: what is there, once, by path, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import anyio

from locus_testkit.contracts._backend import PATIENCE, BackendPromises, Files

__all__ = ["ListingPromises"]

_TREE = {
    "/README.md": "r",
    "/notes.txt": "n",
    "/src/main.py": "m",
    "/src/README.md": "s",
    "/src/lib/deep.md": "d",
    "/src-old/main.py": "o",
}

#: A pattern, the directory that it is seen from, and what it finds there.
_PATTERNS: tuple[tuple[str, str, list[str]], ...] = (
    ("*.md", "/", ["/README.md"]),
    ("*.md", "/src", ["/src/README.md"]),
    ("**/*.md", "/", ["/README.md", "/src/README.md", "/src/lib/deep.md"]),
    ("**/*.md", "/src", ["/src/README.md", "/src/lib/deep.md"]),
    ("src/*", "/", ["/src/README.md", "/src/main.py"]),
    ("src/**/*.md", "/", ["/src/README.md", "/src/lib/deep.md"]),
    ("*/main.py", "/", ["/src-old/main.py", "/src/main.py"]),
    ("src/main.p?", "/", ["/src/main.py"]),
    ("[Rn]*", "/", ["/README.md", "/notes.txt"]),
    ("*.{md,txt}", "/", ["/README.md", "/notes.txt"]),
    ("**/{deep,main}.*", "/", ["/src-old/main.py", "/src/lib/deep.md", "/src/main.py"]),
    ("readme.md", "/", []),
    ("*.rs", "/", []),
    ("src", "/", []),
)

_HOSTILE = (
    "**/" * 60 + "x",
    "**/a/" * 6 + "b",
    "**/a/" * 60 + "b",
    "*a" * 60 + "*b",
    "{a,b}" * 40,
    "{" * 500,
    "[" * 500,
    "a" * 20_000,
)


class ListingPromises(BackendPromises):
    """`ls` and `glob`."""

    async def test_nothing_is_listed_at_first(self, files: Files) -> None:
        """The root exists and is empty."""
        assert await files.ls("/") == []
        assert await files.glob("**") == []

    async def test_listing_has_entries_of_one_directory(self, files: Files) -> None:
        """Files and directories, each once, by path; a directory that begins alike is another one."""
        await files.write_all(_TREE)
        assert await files.tree("/", recursive=False) == ["/README.md", "/notes.txt", "/src/", "/src-old/"]
        assert await files.tree("/src", recursive=False) == ["/src/README.md", "/src/lib/", "/src/main.py"]

    async def test_recursive_listing_has_everything_below(self, files: Files) -> None:
        """Directories among them."""
        await files.write_all(_TREE)
        assert await files.tree("/src") == ["/src/README.md", "/src/lib/", "/src/lib/deep.md", "/src/main.py"]
        assert [path for path in await files.tree() if not path.endswith("/")] == sorted(_TREE)

    async def test_entries_say_how_large_and_how_old_they_are(self, files: Files) -> None:
        """Bytes in UTF-8, and a time with its zone, or none."""
        before = datetime.now(UTC) - timedelta(seconds=5)
        await files.write("/d/a.txt", "äöü")
        (folder,), (entry,) = await files.ls("/"), await files.ls("/d")
        assert (folder.path, folder.is_dir, folder.size) == ("/d", True, 0)
        assert (entry.path, entry.is_dir, entry.size) == ("/d/a.txt", False, 6)
        if entry.modified_at is not None:
            assert before <= entry.modified_at <= datetime.now(UTC) + timedelta(seconds=5)

    async def test_missing_directory_is_not_found(self, files: Files) -> None:
        """Also where another one begins alike."""
        await files.write_all(_TREE)
        for path in ("/nowhere", "/src/li", "/s"):
            assert await files.code_of("ls", path) == "file_not_found"

    async def test_pattern_finds_files(self, files: Files) -> None:
        """A star ends at a slash, two do not; the pattern is seen from the directory."""
        await files.write_all(_TREE)
        for pattern, path, found in _PATTERNS:
            assert (pattern, path, await files.glob(pattern, path)) == (pattern, path, found)

    async def test_hostile_pattern_ends(self, files: Files) -> None:
        """It finds nothing or is refused, within the time that any pattern takes."""
        await files.write_all({"/" + "a" * 200: "x", "/" + "a/" * 100 + "a": "x"})
        for pattern in _HOSTILE:
            with anyio.fail_after(PATIENCE):
                assert await files.code_of("glob", pattern) in ("", "invalid_pattern", "timeout", "too_large")
