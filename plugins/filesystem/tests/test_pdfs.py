"""PDF files that `read_file` shows as lines of text, from any place, within bounds."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from locus import Agent
from locus.files import FileContent, FileInfo
from locus.plugins import Catalogue
from locus_kit.sqlite_files import SqliteFiles
from locus_plugin_filesystem import CompositeBackend, StateBackend, StoreBackend
from locus_plugin_filesystem.manifest import plugin
from locus_plugin_filesystem.pdfs import MAX_PDF_BYTES
from locus_testkit import ScriptedModel, call
from locus_testkit.pdf_files import make_pdf

pytestmark = pytest.mark.anyio

PAPER = make_pdf(["Gallium (Ga) melts\nat 29.8 degrees.", "It costs 5 dollars."])
LINES = "\n".join(
    (
        "     1\t[page 1]",
        "     2\tGallium (Ga) melts",
        "     3\tat 29.8 degrees.",
        "     4\t[page 2]",
        "     5\tIt costs 5 dollars.",
    )
)


class Papers:
    """An async place for whole files, all of them the same PDF."""

    async def load(self, path: str) -> FileContent:
        return FileContent(PAPER, "1")

    async def save(self, path: str, data: bytes, *, version: str | None = None) -> None:
        """Unused."""

    async def remove(self, path: str, *, version: str | None = None) -> None:
        """Unused."""

    async def list(self, folder: str) -> list[FileInfo]:
        return []


async def read(path: str, lines: dict[str, int] | None = None, **settings: Any) -> Any:
    """What the model gets for a file, and what is recorded of the call."""
    turns = (call("read_file", path=path, **(lines or {})), "done")
    agent = Agent[Any, Any](ScriptedModel(*turns), filesystem=settings, catalogue=Catalogue.only(plugin))
    result = await agent.run("Look.")
    (message,) = [m for m in result.state.messages if m.tool_results]
    return message.tool_results[0].content, result.state.tool_executions[0]


async def test_a_pdf_is_read_as_lines_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "plan.txt").write_bytes(PAPER)
    content, done = await read("/plan.txt", root=tmp_path)
    assert content == LINES
    assert done.known_label.is_tainted


async def test_a_page_of_lines_says_where_it_goes_on(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(PAPER)
    content, _ = await read("/a.pdf", {"offset": 1, "limit": 2}, root=tmp_path)
    assert content == "\n".join([*LINES.split("\n")[1:3], "[lines 2 to 3; offset=3 goes on]"])
    content, _ = await read("/a.pdf", {"offset": 3, "limit": 2}, root=tmp_path)
    assert content == "\n".join(LINES.split("\n")[3:])


async def test_a_pdf_is_read_from_every_place(tmp_path: Path) -> None:
    store = StoreBackend(tmp_path / "files.db")
    SqliteFiles(tmp_path / "files.db").save("/a.pdf", PAPER)
    several = CompositeBackend(StateBackend(), {"/store/": store, "/async/": Papers()})
    for backend, path in ((store, "/a.pdf"), (several, "/store/a.pdf"), (several, "/async/a.pdf")):
        content, _ = await read(path, backend=backend)
        assert content == LINES


async def test_a_pdf_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "half.pdf").write_bytes(PAPER[: len(PAPER) // 2])
    content, _ = await read("/half.pdf", root=tmp_path)
    assert content == "not_text: /half.pdf is a PDF that cannot be read: it is damaged, or not a PDF"
    with (tmp_path / "huge.pdf").open("wb") as file:
        file.write(PAPER)
        file.truncate(MAX_PDF_BYTES + 10)
    content, _ = await read("/huge.pdf", root=tmp_path)
    assert content == "too_large: /huge.pdf is a PDF of more than 20,000,000 bytes"


async def test_what_may_not_be_read_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(PAPER)
    _, done = await read("/a.pdf", root=tmp_path, permissions=["deny /a.pdf"])
    assert "permission_denied" in str(done.error)


async def test_without_the_library_the_model_reads_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.pdf").write_bytes(PAPER)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "pypdf" else find(name, *rest))
    content, _ = await read("/a.pdf", root=tmp_path)
    assert content == (
        "not_text: /a.pdf: it is a PDF, and reading these needs a library; "
        'run: pip install "locus-plugin-filesystem[pdf]"'
    )
