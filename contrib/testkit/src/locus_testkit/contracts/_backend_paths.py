"""Paths: one file has one path, odd names come back, and no path leads out."""

from __future__ import annotations

from locus_testkit.contracts._backend import BackendPromises, Files

__all__ = ["ODD_PATHS", "PathPromises"]

ODD_PATHS = (
    "/with space.txt",
    "/-rf",
    "/~root",
    "/$HOME",
    "/100%.txt",
    "/100%25.txt",
    "/a_b",
    "/aXb",
    "/'; DROP TABLE files; --",
    '/"quoted".txt',
    "/[abc]*?.txt",
    "/{a,b}.txt",
    "/back\\slash",
    "/.hidden",
    "/...",
    "/dir.txt/a",
    "/dir/a",
    "/dir-2/a",
    "/dir0",
    "/\u65e5\u672c.txt",
    "/\U0001f5fc.txt",
)

#: They lead out, have characters that no name has, or are too long, all of it or one name, in bytes.
_REFUSED = (
    "/..",
    "../a",
    "/a/../../b",
    "/a\0b",
    "/a\nb",
    "/a\x7fb",
    "/\ud800",
    "/" + "x" * 256,
    "/" + "\xe4" * 200,
    "/" + "x/" * 2100,
)


class PathPromises(BackendPromises):
    """What a path may be."""

    async def test_spellings_of_a_path_are_one_file(self, files: Files) -> None:
        """However it is written, it is written to the same place."""
        for path in ("a/b.txt", "//a//b.txt", "/./a/./b.txt", "/x/../a/b.txt", "/a/b.txt/", "/a/c/d/../../b.txt"):
            await files.write("/a/b.txt", "old")
            await files.write(path, "new")
            assert await files.tree() == ["/a/", "/a/b.txt"]
            assert await files.lines(path) == await files.lines("/a/b.txt") == ["new"]

    async def test_composed_and_decomposed_names_are_one_file(self, files: Files) -> None:
        """People see no difference between them."""
        await files.write("/u\u0308.txt", "x")
        assert await files.lines("/\xfc.txt") == ["x"]
        assert await files.tree() == ["/\xfc.txt"]

    async def test_odd_names_come_back(self, files: Files) -> None:
        """What a shell, SQL, a URL or a pattern would take for something else is a name here."""
        for at, path in enumerate(ODD_PATHS):
            await files.write(path, f"content {at}")
        found = [path for path in await files.tree() if not path.endswith("/")]
        assert found == sorted(ODD_PATHS)
        for at, path in enumerate(ODD_PATHS):
            assert await files.lines(path) == [f"content {at}"]
            assert await files.grep(f"content {at}$", path) == [(path, 1, f"content {at}")]

    async def test_path_that_cannot_be_is_refused(self, files: Files) -> None:
        """By a code, whatever was asked; nothing is made."""
        calls = {"write": ("x",), "read": (), "edit": ("x", "y"), "ls": ()}
        for path in _REFUSED:
            codes = {await files.code_of(method, path, *args) for method, args in calls.items()}
            codes.add(await files.code_of("glob", "*", path=path))
            codes.add(await files.code_of("grep", "x", path=path))
            assert (path, codes) == (path, {"invalid_path"})
        assert await files.tree() == []

    async def test_longest_names_are_taken(self, files: Files) -> None:
        """255 bytes, and directories as deep as a model will ever make them."""
        longest, deep = "/" + "n" * 255, "/d" * 100 + "/f"
        await files.write(longest, "x")
        await files.write(deep, "y")
        assert (await files.lines(longest), await files.lines(deep)) == (["x"], ["y"])
        assert await files.glob("**/f") == [deep]
