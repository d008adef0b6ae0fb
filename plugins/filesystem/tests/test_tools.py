"""The six tools over files in memory: their order, texts, codes, numbering and bounds."""

from __future__ import annotations

import inspect
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from locus.core.errors import ConfigError
from locus.files import BackendError, BackendProtocol, FileContent, FileInfo, FileStore, GrepMatch
from locus.tools import Tool
from locus_plugin_filesystem import StateBackend, as_backend, make_filesystem_tools

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.fixture
def backend() -> StateBackend:
    return StateBackend(clock=lambda: NOON)


@pytest.fixture
def tools(backend: StateBackend) -> dict[str, Any]:
    return {each.name: each for each in make_filesystem_tools(backend)}


def paths(listing: str) -> list[str]:
    return [each["path"] for each in json.loads(listing)]


def test_there_are_six_in_this_order_with_these_parameters(backend: StateBackend) -> None:
    made = make_filesystem_tools(backend)

    assert all(isinstance(each, Tool) for each in made)
    assert {each.name: str(inspect.signature(each)).partition(" ->")[0] for each in made} == {
        "write_file": "(path: 'str', contents: 'str')",
        "read_file": "(path: 'str', offset: 'int' = 0, limit: 'int' = 100)",
        "ls": "(path: 'str' = '/', recursive: 'bool' = False)",
        "edit_file": "(path: 'str', old_str: 'str', new_str: 'str')",
        "glob": "(pattern: 'str', path: 'str' = '/')",
        "grep": "(pattern: 'str', path: 'str' = '/', recursive: 'bool' = True)",
    }
    assert [each.name for each in made] == ["write_file", "read_file", "ls", "edit_file", "glob", "grep"]
    assert {each.name: each.effect for each in made if each.effect != "pure"} == {
        "write_file": "keyed",
        "edit_file": "keyed",
    }


def test_a_write_makes_parents_overwrites_and_returns_the_path(tools: dict[str, Any]) -> None:
    assert tools["write_file"]("/notes/deep/a.md", "one") == "/notes/deep/a.md"
    assert tools["write_file"]("notes//deep/../deep/a.md", "two") == "/notes/deep/a.md"
    assert tools["read_file"]("/notes/deep/a.md") == "     1\ttwo"
    assert paths(tools["ls"]()) == ["/notes"]


def test_reading_counts_lines_from_1_and_offsets_from_0_and_shows_100(tools: dict[str, Any]) -> None:
    tools["write_file"]("/a", "".join(f"line {n}\n" for n in range(1, 251)))

    first = tools["read_file"]("/a").split("\n")
    assert first[0] == "     1\tline 1"
    assert first[99:] == ["   100\tline 100", "[lines 1 to 100; offset=100 goes on]"]
    assert tools["read_file"]("/a", 248, 1).split("\n")[0] == "   249\tline 249"
    assert tools["read_file"]("/a", offset=200) == "\n".join(f"{n:>6}\tline {n}" for n in range(201, 251))
    assert len(tools["read_file"]("/a", limit=0).split("\n")) == 250
    assert len(tools["read_file"]("/a", limit=-3).split("\n")) == 250
    assert tools["read_file"]("/a", offset=900) == ""


def test_only_a_line_feed_ends_a_line(tools: dict[str, Any]) -> None:
    text = "a\x0bb\x0cc\u2028d\u0085e\rf\r\ng"
    tools["write_file"]("/a", text)
    assert tools["read_file"]("/a") == "     1\ta\x0bb\x0cc\u2028d\u0085e\rf\r\n     2\tg"
    assert paths(tools["grep"]("^g$")) == ["/a"]
    assert json.loads(tools["grep"]("g"))[0]["line"] == 2


def test_long_lines_and_long_pages_are_cut_and_say_so(tools: dict[str, Any]) -> None:
    tools["write_file"]("/long", "x" * 3000 + "\nnext")
    first, second = tools["read_file"]("/long").split("\n")
    assert first == "     1\t" + "x" * 2000 + " [and 1,000 characters more]"
    assert second == "     2\tnext"
    tools["write_file"]("/many", ("y" * 99 + "\n") * 5000)
    page = tools["read_file"]("/many", limit=0)
    assert len(page) <= 100_100
    last = int(page.split("\n")[-2].split("\t")[0])
    assert page.endswith(f"[lines 1 to {last}; offset={last} goes on]")
    assert tools["read_file"]("/many", offset=last, limit=1).startswith(f"{last + 1:>6}\t")


def test_failures_are_answered_with_their_codes(tools: dict[str, Any]) -> None:
    tools["write_file"]("/d/f", "x")
    assert tools["read_file"]("/none") == "file_not_found"
    assert tools["read_file"]("/d") == "is_directory"
    assert tools["write_file"]("/d", "x") == "is_directory"
    assert tools["write_file"]("/", "x") == "is_directory"
    assert tools["write_file"]("/d/f/g", "x") == "invalid_path"
    assert tools["edit_file"]("/none", "a", "b") == "file_not_found"
    assert tools["ls"]("/none") == "file_not_found"
    assert tools["glob"]("*", "/none") == "file_not_found"
    assert tools["grep"]("x", "/none") == "file_not_found"
    for name, arguments in {"write_file": ("x",), "read_file": (), "ls": (), "edit_file": ("a", "b")}.items():
        for path in ("/a\0b", "../up", "/" + "a" * 300, "/a\nb", "/\ud800"):
            assert tools[name](path, *arguments) == "invalid_path"
    assert tools["grep"]("(", "/").startswith("invalid_pattern: missing )")
    assert tools["grep"](r"(a)\1", "/").startswith("invalid_pattern: invalid escape sequence")
    assert tools["write_file"]("/s", "\ud800").startswith("not_text: ")
    assert tools["write_file"]("/s", "x" * 10_000_001).startswith("too_large: ")


def test_an_edit_replaces_the_only_occurrence(tools: dict[str, Any]) -> None:
    tools["write_file"]("/a", "one two\nthree one\n")
    assert tools["edit_file"]("/a", "two", "2") == "/a"
    assert tools["read_file"]("/a") == "     1\tone 2\n     2\tthree one"
    assert "does not occur in /a" in tools["edit_file"]("/a", "four", "4")
    assert "occurs 2 times in /a" in tools["edit_file"]("/a", "one", "1")
    assert "empty" in tools["edit_file"]("/a", "", "1")
    tools["write_file"]("/b", "aaa")
    assert "occurs 2 times" in tools["edit_file"]("/b", "aa", "b")


def test_an_edit_keeps_the_line_ends_of_the_file(tools: dict[str, Any], backend: StateBackend) -> None:
    tools["write_file"]("/dos", "a\r\nb\r\nc\r\n")
    assert tools["edit_file"]("/dos", "a\nb", "x\ny\nz") == "/dos"
    assert backend.load("/dos").data == b"x\r\ny\r\nz\r\nc\r\n"


def test_a_listing_has_directories_files_sizes_and_times(tools: dict[str, Any]) -> None:
    tools["write_file"]("/b/c/d.md", "é")
    tools["write_file"]("/a.md", "")
    assert json.loads(tools["ls"]()) == [
        {"path": "/a.md", "is_dir": False, "size": 0, "modified_at": "2026-01-02T12:00:00+00:00"},
        {"path": "/b", "is_dir": True, "size": 0, "modified_at": None},
    ]
    assert paths(tools["ls"](recursive=True)) == ["/a.md", "/b", "/b/c", "/b/c/d.md"]
    assert paths(tools["ls"]("/b")) == ["/b/c"]
    assert paths(tools["ls"]("/a.md")) == ["/a.md"]
    assert json.loads(tools["ls"]("/b/c"))[0]["size"] == 2


@pytest.mark.parametrize(
    ("pattern", "folder", "expected"),
    [
        ("*.md", "/", ["/a.md"]),
        ("**/*.md", "/", ["/a.md", "/n/b.md", "/n/o/c.md"]),
        ("/n/*.md", "/", ["/n/b.md"]),
        ("*.md", "/n", ["/n/b.md"]),
        ("n/**", "/", ["/n/b.md", "/n/o/c.md", "/n/o/d.txt"]),
        ("**/[cd].{md,txt}", "/", ["/n/o/c.md", "/n/o/d.txt"]),
        ("?.md", "/n/o", ["/n/o/c.md"]),
        (".h*", "/", [".h"]),
        ("b.md", "/n/b.md", []),
    ],
)
def test_a_star_stays_within_a_directory_and_two_do_not(
    tools: dict[str, Any], pattern: str, folder: str, expected: list[str]
) -> None:
    for path in ("/a.md", "/n/b.md", "/n/o/c.md", "/n/o/d.txt", "/.h", "/.git/x.md"):
        tools["write_file"](path, "x")
    assert paths(tools["glob"](pattern, folder)) == [p if p.startswith("/") else f"/{p}" for p in expected]


@pytest.mark.parametrize("pattern", ["", "[z-a]", "a" * 2000, "\0", "\ud800*"])
def test_a_pattern_that_cannot_be_is_refused(tools: dict[str, Any], pattern: str) -> None:
    assert tools["glob"](pattern).startswith("invalid_pattern: ")


def test_a_search_gives_files_lines_and_texts(tools: dict[str, Any]) -> None:
    tools["write_file"]("/a.txt", "One\ntwo one\n\nend one")
    tools["write_file"]("/d/b.txt", "one\r\n")
    tools["write_file"]("/bin", "one\0")
    assert json.loads(tools["grep"]("one")) == [
        {"path": "/a.txt", "line": 2, "text": "two one"},
        {"path": "/a.txt", "line": 4, "text": "end one"},
        {"path": "/d/b.txt", "line": 1, "text": "one"},
    ]
    assert [each["line"] for each in json.loads(tools["grep"]("(?i)^one$", "/a.txt"))] == [1]
    assert paths(tools["grep"]("one", recursive=False)) == ["/a.txt", "/a.txt"]
    assert paths(tools["grep"]("one", "/d")) == ["/d/b.txt"]
    assert [each["line"] for each in json.loads(tools["grep"]("^$", "/a.txt"))] == [3]
    assert [each["line"] for each in json.loads(tools["grep"]("", "/a.txt"))] == [1, 2, 3, 4]
    assert json.loads(tools["grep"](r"e[^x]*e\s+two")) == []  # no match goes beyond a line


def test_a_search_that_finds_too_much_says_so(tools: dict[str, Any]) -> None:
    tools["write_file"]("/a", "x\n" * 3000)
    shown, note = tools["grep"]("x").split("\n")
    assert len(json.loads(shown)) == 1000
    assert note == "[the first 1,000 matches; narrow the pattern or the path]"


def test_a_listing_of_many_files_says_how_many_there_are(backend: StateBackend, tools: dict[str, Any]) -> None:
    for n in range(1100):
        backend.write(f"/f{n:04}", "")
    shown, note = tools["glob"]("*").split("\n")
    assert len(json.loads(shown)) == 1000
    assert note == "[the first 1,000 of 1,100 entries; narrow the path or the pattern]"


def test_a_regular_expression_takes_linear_time(tools: dict[str, Any]) -> None:
    tools["write_file"]("/a", "a" * 100_000 + "!")
    assert json.loads(tools["grep"]("(a+)+$")) == []


def test_versions_protect_what_others_wrote(backend: StateBackend) -> None:
    backend.write("/a", "1")
    seen = backend.load("/a")
    backend.save("/a", b"2", version=seen.version)
    with pytest.raises(BackendError, match="conflict"):
        backend.save("/a", b"3", version=seen.version)
    with pytest.raises(BackendError, match="conflict"):
        backend.save("/a", b"3", version="")
    backend.remove("/a")
    with pytest.raises(BackendError, match="file_not_found"):
        backend.remove("/a")
    assert backend.ls("/") == []


def test_a_directory_goes_with_its_last_file(backend: StateBackend) -> None:
    backend.write("/d/e/f", "x")
    backend.remove("/d/e/f")
    backend.write("/d", "now a file")
    assert backend.read("/d") == "     1\tnow a file"


# -- backends of others ----------------------------------------------------------------------------


class AsyncPlace:
    """An async file store, with the kernel alone."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    async def load(self, path: str) -> FileContent:
        if path not in self.files:
            raise BackendError("file_not_found")
        return FileContent(self.files[path], str(hash(self.files[path])))

    async def save(self, path: str, data: bytes, *, version: str | None = None) -> None:
        self.files[path] = data

    async def remove(self, path: str, *, version: str | None = None) -> None:
        del self.files[path]

    async def list(self, folder: str) -> Any:
        return [FileInfo(path, False, len(data)) for path, data in sorted(self.files.items())]


@pytest.mark.anyio
async def test_an_async_store_becomes_a_backend_with_async_tools() -> None:
    place = AsyncPlace()
    assert isinstance(place, FileStore)
    assert not isinstance(place, BackendProtocol)
    tools: dict[str, Any] = {each.name: each for each in make_filesystem_tools(as_backend(place))}

    assert tools["write_file"].is_async
    assert await tools["write_file"]("/a.md", "hello world") == "/a.md"
    assert await tools["read_file"]("/a.md") == "     1\thello world"
    assert await tools["edit_file"]("/a.md", "world", "you") == "/a.md"
    assert await tools["read_file"]("/none") == "file_not_found"
    assert paths(await tools["ls"]()) == paths(await tools["glob"]("*.md")) == ["/a.md"]
    assert json.loads(await tools["grep"]("you")) == [{"path": "/a.md", "line": 1, "text": "hello you"}]
    # Files that outlive the process: a crash in the middle of an edit is a question.
    assert (tools["edit_file"].effect, tools["edit_file"].ask_on_unknown) == ("once", True)


def test_what_is_not_a_place_for_files_is_refused() -> None:
    with pytest.raises(ConfigError, match="expected a backend for files"):
        make_filesystem_tools("memory")  # type: ignore[arg-type]


def test_a_match_of_a_backend_is_a_dataclass(backend: StateBackend) -> None:
    backend.write("/a", "x")
    assert backend.grep("x") == [GrepMatch("/a", 1, "x")]
