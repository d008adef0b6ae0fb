"""`CompositeBackend`: one tree of several backends."""

from __future__ import annotations

import inspect
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from locus.core.errors import ConfigError
from locus.files import MAX_MATCHES, BackendError, BackendProtocol, FileContent, FileInfo, FileStore, GrepMatch
from locus_plugin_filesystem import CompositeBackend, FilesystemBackend, StateBackend, StoreBackend

_FILES = {
    "/README.md": "words of the readme\n",
    "/memories/a.md": "words of a memory\n",
    "/memories/deep/b.txt": "words, deep\n",
    "/memories/shared/c.md": "words that are shared\n",
    "/memories-not/d.md": "words elsewhere\n",
    "/src/lib/e.py": "words of code\n",
    "/src/main.py": "words of main\n",
}


@pytest.fixture
def composite(tmp_path: Path) -> CompositeBackend:
    routes: dict[str, BackendProtocol | FileStore] = {
        "/memories/": StoreBackend(tmp_path / "files.db"),
        "/memories/shared": StateBackend(),
        "src//lib/": FilesystemBackend(tmp_path / "lib"),
    }
    made = CompositeBackend(StateBackend(), routes)
    for path, text in _FILES.items():
        assert made.write(path, text) == path
    return made


def files_of(backend: Any) -> list[str]:
    return [info.path for info in backend.ls("/", recursive=True) if not info.is_dir]


def test_longest_route_wins(composite: CompositeBackend) -> None:
    assert files_of(composite.default) == [
        "/README.md",
        "/memories-not/d.md",
        "/src/main.py",
    ]
    assert {route: files_of(backend) for route, backend in composite.routes.items()} == {
        "/memories": ["/a.md", "/deep/b.txt"],
        "/memories/shared": ["/c.md"],
        "/src/lib": ["/e.py"],
    }


def test_it_reads_like_one_tree(composite: CompositeBackend) -> None:
    whole = StateBackend(_FILES)
    for path in ("/", "/memories", "/memories/shared", "/src", "/src/lib", "/memories/deep", "/memories-not"):
        for recursive in (False, True):
            listed = [(i.path, i.is_dir, i.size) for i in composite.ls(path, recursive=recursive)]
            assert listed == [(i.path, i.is_dir, i.size) for i in whole.ls(path, recursive=recursive)]
            searched = composite.grep("words (of|that)", path=path, recursive=recursive)
            assert searched == whole.grep("words (of|that)", path=path, recursive=recursive)
        for pattern in (
            "*",
            "**",
            "*.md",
            "**/*.md",
            "*/*",
            "memories/*.md",
            "{memories,src}/**/[a-e].*",
            "/src/lib/*",
        ):
            found = [i.path for i in composite.glob(pattern, path=path)]
            assert (pattern, path, found) == (pattern, path, [i.path for i in whole.glob(pattern, path=path)])
    for path, text in _FILES.items():
        assert composite.read(path) == f"     1\t{text.rstrip()}"
        assert composite.edit(path, "words", "WORDS") == path
        assert composite.read(path).endswith(text.replace("words", "WORDS").rstrip())


def test_routes_are_directories_before_anything_is_in_them(tmp_path: Path) -> None:
    made = CompositeBackend(StateBackend(), {"/a/b/": StateBackend(), "/c": StateBackend()})
    assert [(i.path, i.is_dir) for i in made.ls("/")] == [("/a", True), ("/c", True)]
    assert [i.path for i in made.ls("/", recursive=True)] == ["/a", "/a/b", "/c"]
    assert [i.path for i in made.ls("/a")] == ["/a/b"]
    assert made.ls("/a/b") == made.glob("**") == made.grep("x") == made.grep("x", path="/a/b") == []
    for path in ("/", "/a", "/a/b", "/c"):
        with pytest.raises(BackendError, match="is_directory"):
            made.write(path, "x")
        with pytest.raises(BackendError, match="is_directory"):
            made.read(path)
    with pytest.raises(BackendError, match="file_not_found"):
        made.ls("/a/bc")


def test_what_the_default_has_below_a_route_is_hidden() -> None:
    default = StateBackend({"/m/hidden.txt": "x", "/seen.txt": "x"})
    made = CompositeBackend(default, {"/m/": StateBackend({"/shown.txt": "x"})})
    assert [i.path for i in made.ls("/", recursive=True)] == ["/m", "/m/shown.txt", "/seen.txt"]
    assert [i.path for i in made.glob("**/*.txt")] == ["/m/shown.txt", "/seen.txt"]
    assert [match.path for match in made.grep("x")] == ["/m/shown.txt", "/seen.txt"]
    with pytest.raises(BackendError, match="file_not_found"):
        made.read("/m/hidden.txt")


def test_no_path_leaves_its_route(composite: CompositeBackend) -> None:
    assert composite.read("/memories/../README.md") == "     1\twords of the readme"
    with pytest.raises(BackendError, match="invalid_path"):
        composite.read("/memories/../../README.md")
    for call in (composite.ls, composite.read):
        with pytest.raises(BackendError, match="file_not_found"):
            call("/memories/none")


def test_errors_name_the_path_as_it_was_asked_for(composite: CompositeBackend) -> None:
    with pytest.raises(ValueError, match=r"/memories/a\.md"):
        composite.edit("/memories/a.md", "none", "x")
    with pytest.raises(BackendError, match=r"/src/lib/e\.py/f"):
        composite.write("/src/lib/e.py/f", "x")
    for call in (composite.ls, partial(composite.grep, "x"), partial(composite.glob, "*")):
        with pytest.raises(BackendError, match="file_not_found: /src/lib/none"):
            call(path="/src/lib/none")


@pytest.mark.parametrize(
    "routes", [{"/": StateBackend()}, {"/a": StateBackend(), "a/": StateBackend()}, {"/../a": StateBackend()}]
)
def test_route_that_cannot_be_is_refused(routes: dict[str, StateBackend]) -> None:
    with pytest.raises(ConfigError, match="route"):
        CompositeBackend(StateBackend(), routes)


def test_what_is_not_a_backend_is_refused() -> None:
    with pytest.raises(ConfigError):
        CompositeBackend(StateBackend(), {"/a": "sqlite:x.db"})  # type: ignore[dict-item]


def test_matches_are_bounded_over_all_backends() -> None:
    many = StateBackend({"/a.txt": "x\n" * MAX_MATCHES})
    made = CompositeBackend(many, {"/b": many})
    assert {match.path for match in made.grep("x")} == {"/a.txt"}
    assert len(made.grep("x")) == MAX_MATCHES


class _Slow(StateBackend):
    """Takes a quarter of a second for whatever is searched."""

    seconds: float | None = None

    def grep(self, pattern: str, path: str = "/", recursive: bool = True, timeout_s: float = 20.0) -> list[GrepMatch]:
        self.seconds = timeout_s
        time.sleep(0.25)
        return super().grep(pattern, path, recursive)


def test_bound_of_time_is_one_for_all_backends() -> None:
    first, second, third = _Slow({"/a": "x"}), _Slow({"/a": "x"}), _Slow({"/a": "x"})
    made = CompositeBackend(first, {"/b": second, "/c": third})
    with pytest.raises(BackendError, match="timeout"):
        made.grep("x", timeout_s=0.2)
    assert first.seconds == pytest.approx(0.2, abs=0.1)
    assert [second.seconds, third.seconds] == [None, None]
    with pytest.raises(BackendError, match="timeout"):
        made.glob("**", timeout_s=-1)


class _Remote:
    """Files in another place, which are asked for without blocking."""

    def __init__(self, files: StateBackend) -> None:
        self.files = files

    async def load(self, path: str) -> FileContent:
        return self.files.load(path)

    async def save(self, path: str, data: bytes, *, version: str | None = None) -> None:
        self.files.save(path, data, version=version)

    async def remove(self, path: str, *, version: str | None = None) -> None:
        self.files.remove(path, version=version)

    async def list(self, folder: str) -> Sequence[FileInfo]:
        return self.files.list(folder)


@pytest.mark.anyio
async def test_one_async_backend_makes_the_composite_async(tmp_path: Path) -> None:
    remote = _Remote(StateBackend())
    made: Any = CompositeBackend(FilesystemBackend(tmp_path), {"/remote/": remote})
    assert all(inspect.iscoroutinefunction(getattr(made, n)) for n in ("write", "read", "edit", "ls", "glob", "grep"))
    assert await made.write("/remote/a.txt", "words\n") == "/remote/a.txt"
    assert await made.write("/b.txt", "words\n") == "/b.txt"
    assert await made.edit("/remote/a.txt", "words", "texts") == "/remote/a.txt"
    assert await made.read("/remote/a.txt") == "     1\ttexts"
    assert [i.path for i in await made.ls("/", recursive=True)] == ["/b.txt", "/remote", "/remote/a.txt"]
    assert [i.path for i in await made.glob("**/*.txt")] == ["/b.txt", "/remote/a.txt"]
    assert [match.path for match in await made.grep("s$")] == ["/b.txt", "/remote/a.txt"]
    with pytest.raises(BackendError, match="file_not_found"):
        await made.read("/remote/none")
    with pytest.raises(ValueError, match=r"/remote/a\.txt"):
        await made.edit("/remote/a.txt", "none", "x")
