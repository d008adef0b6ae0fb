"""`StoreBackend`: files that outlive a run, and a search that asks an index first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from locus import Agent
from locus.files import BackendError, FileContent, FileInfo
from locus_kit.sqlite_files import SqliteFiles
from locus_plugin_filesystem import StateBackend, StoreBackend, make_filesystem_tools
from locus_testkit import ScriptedModel, call


class _Counting:
    """A store that counts what is loaded."""

    def __init__(self, backend: StoreBackend) -> None:
        self.store: SqliteFiles = backend._store
        self.loaded: list[str] = []
        backend._store = self

    def load(self, path: str) -> FileContent:
        self.loaded.append(path)
        return self.store.load(path)

    def save(self, path: str, data: bytes, *, version: str | None = None) -> None:
        self.store.save(path, data, version=version)

    def remove(self, path: str, *, version: str | None = None) -> None:
        self.store.remove(path, version=version)

    def list(self, folder: str) -> Sequence[FileInfo]:
        return self.store.list(folder)

    def candidates(self, folder: str, texts: Sequence[str]) -> Sequence[str]:
        return self.store.candidates(folder, texts)


def test_search_loads_only_what_can_have_it(tmp_path: Path) -> None:
    backend = StoreBackend(tmp_path / "f.db")
    for n in range(50):
        backend.write(f"/notes/{n}.txt", f"this is note {n} of many")
    counting = _Counting(backend)
    assert [match.path for match in backend.grep(r"note 17 \w+")] == ["/notes/17.txt"]
    assert counting.loaded == ["/notes/17.txt"]
    assert backend.grep("nowhere to be found") == []
    assert counting.loaded == ["/notes/17.txt"]


def test_search_of_what_is_missing_or_invalid_fails_as_ever(tmp_path: Path) -> None:
    backend = StoreBackend(tmp_path / "f.db")
    backend.write("/a.txt", "x")
    with pytest.raises(BackendError, match="file_not_found"):
        backend.grep("nowhere", path="/b")
    with pytest.raises(BackendError, match="invalid_pattern"):
        backend.grep("nowhere(")
    assert backend.grep("nowhere", path="/a.txt") == StateBackend().grep("nowhere") == []


@pytest.mark.anyio
async def test_what_one_agent_notes_another_one_finds(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    note = call("write_file", path="/people/ann.md", contents="Ann likes green tea.\n")
    writer = Agent(ScriptedModel(note, "Noted."), tools=make_filesystem_tools(StoreBackend(path, namespace="ann")))
    await writer.run("Remember that Ann likes green tea.")
    model = ScriptedModel(call("grep", pattern="green"), "Green tea.")
    reader = Agent(model, tools=make_filesystem_tools(StoreBackend(path, namespace="ann")))
    result = await reader.run("What does Ann like?")
    assert "Ann likes green tea." in str(result.state.tool_executions[0].result)
    assert StoreBackend(path, namespace="bob").grep("green") == []
