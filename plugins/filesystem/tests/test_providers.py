"""Files in places that other plugins provide."""

from __future__ import annotations

from pathlib import Path

import pytest

from locus import Agent
from locus.plugins.discovery import Catalogue
from locus_plugin_filesystem.manifest import plugin
from locus_plugin_sqlite.manifest import plugin as sqlite
from locus_testkit import ScriptedModel, call


@pytest.mark.anyio
async def test_a_place_of_another_plugin_is_named_by_its_scheme(tmp_path: Path) -> None:
    file = tmp_path / "files.db"
    write, read = call("write_file", path="/a", contents="kept"), call("read_file", path="/a")
    for turn, expected in ((write, "/a"), (read, "     1\tkept")):
        agent = Agent(
            ScriptedModel(turn, "done"),
            filesystem={"backend": f"sqlite:{file}"},
            catalogue=Catalogue.only(plugin, sqlite),
        )
        result = await agent.run("go")
        assert [each.result for each in result.state.tool_executions] == [expected]
        assert not [key for key in result.state.metadata if key.startswith("files/")]
