"""``backend="sqlite:files.db"``: files of agents, beside journals and never among them."""

from __future__ import annotations

from pathlib import Path

import pytest

from locus.core.errors import ConfigError
from locus.files import FileStore
from locus.plugins.providers import provide
from locus_kit.sqlite_files import SqliteFiles
from locus_plugin_sqlite import SqliteSettings, SqliteStore
from locus_plugin_sqlite.files import make
from locus_testkit import BackendFeatures, FileStoreContract


class TestFiles(FileStoreContract):
    features = BackendFeatures(persistent=True, shared=True)

    def make_files(self, folder: Path) -> FileStore:
        return make(str(folder / "files.db"))


def test_the_name_of_the_plugin_or_of_a_file_is_enough(tmp_path: Path) -> None:
    settings = {"sqlite": SqliteSettings(busy_timeout=3.0, sync="normal", max_bytes=1_000_000)}
    for text in ("sqlite:files.db", "files.db"):
        made = provide("backend", text, settings=settings, folder=tmp_path)
        assert isinstance(made, SqliteFiles)
        assert (made.path, made.busy_timeout, made.sync) == (tmp_path / "files.db", 3.0, "normal")
        assert made.max_bytes == 1_000_000


def test_a_path_is_needed() -> None:
    with pytest.raises(ConfigError, match=r"write 'sqlite:files\.db'"):
        make("")


@pytest.mark.anyio
async def test_a_file_of_journals_is_left_alone(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "runs.db") as store:
        await store.release(await store.claim("t", "w"))
    with pytest.raises(ConfigError, match="something else"):
        make(str(tmp_path / "runs.db")).save("/a", b"x")
