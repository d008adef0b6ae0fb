"""Servers that others have made, as they are installed: they are started, listed and called."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from locus import Agent
from locus_testkit import ScriptedModel, call

from .kit import python, reported, results

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_time_server_tells_the_time_of_places() -> None:
    script = [
        call("time__convert_time", source_timezone="Asia/Tokyo", time="12:00", target_timezone="Asia/Kolkata"),
        call("time__get_current_time", timezone="Moon/Sea"),
    ]
    servers = {"time": python("-m", "mcp_server_time", trust=True)}
    result = await Agent(ScriptedModel(script, "done"), mcp={"servers": servers}).run("go")

    converted, wrong = results(result)
    assert json.loads(converted)["time_difference"] == "-3.5h"
    assert wrong.startswith("Error: ToolError: Error executing tool get_current_time: Invalid timezone")
    assert reported(result, "time").tools == ("time__get_current_time", "time__convert_time")


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_the_git_server_reads_a_repository_and_does_not_write_where_it_is_not_let(tmp_path: Path) -> None:
    await anyio.run_process(["git", "init", "-q", str(tmp_path)])
    (tmp_path / "new.txt").write_text("hello")
    server = python("-m", "mcp_server_git", "--repository", str(tmp_path), exclude=["git_commit", "git_reset"])
    model = ScriptedModel(
        call("git__git_status", repo_path=str(tmp_path)), call("git__git_commit", message="x"), "done"
    )
    result = await Agent(model, mcp={"servers": {"git": server}}).run("go")

    status, refused = results(result)
    assert "new.txt" in status
    assert refused.startswith("Error: UnknownTool: 'git__git_commit' is not a tool")
    assert len(reported(result, "git").tools) > 5
