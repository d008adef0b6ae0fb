"""AG-UI, asked by the client of npm that user interfaces are made with. It checks the order of the events by itself."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from locus import tool
from locus_kit.pinned import cache_folder
from locus_testkit import call

from .conftest import PATIENCE, Served, StartServer, make_agent

pytestmark = pytest.mark.e2e

_PROGRAM = Path(__file__).with_name("agui")
_FILES = ("ask.mjs", "package.json", "package-lock.json")


@tool(effect="once")
def charge(cents: int) -> str:
    """Take money."""
    return f"{cents} cents charged"


@pytest.fixture(scope="module")
def program() -> Path:
    """The program with its packages, from the cache folder or from npm, which checks the hash of each of them."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.fail("the client of AG-UI comes from npm: install Node.js with npm, 20 or newer")
    digest = sha256(b"".join((_PROGRAM / name).read_bytes() for name in _FILES)).hexdigest()
    home = cache_folder(os.environ, sys.platform) / "npm" / f"ag-ui-{digest[:16]}"
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent) as folder:
            made = Path(folder) / "made"
            made.mkdir()
            for name in _FILES:
                shutil.copy(_PROGRAM / name, made)
            command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            done = subprocess.run(command, cwd=made, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.fail(f"{' '.join(command)} failed with exit status {done.returncode}:\n{done.stderr[-2000:]}")
            try:
                made.rename(home)
            except OSError:  # another process was quicker
                if not home.exists():
                    raise
    return home / "ask.mjs"


def _ask(program: Path, server: Served, *turns: dict[str, str], token: str = "") -> list[dict[str, Any]]:
    given = {"url": f"{server.url}/agui", "token": token, "threadId": "order", "turns": turns}
    node = shutil.which("node")
    assert node is not None, "npm comes with node"
    done = subprocess.run(
        [node, str(program), json.dumps(given)], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    said: list[dict[str, Any]] = json.loads(done.stdout)
    return said


def _kinds(said: dict[str, Any]) -> list[str]:
    kinds = [each["type"] for each in said["events"]]
    return [kind for n, kind in enumerate(kinds) if n == 0 or kind != kinds[n - 1]]


SAID = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
CALLED = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"]


def test_a_client_makes_messages_of_text_and_tool_calls(program: Path, start_server: StartServer) -> None:
    server = start_server(make_agent(["Let me see.", call("charge", cents=5)], "It is paid.", tools=[charge]))
    turns = [{"runId": f"run-{n}", "say": "Pay."} for n in (1, 2)]
    first, second = _ask(program, server, *turns)
    assert first["error"] is None, first
    assert _kinds(first) == ["RUN_STARTED", *SAID, *CALLED, *SAID, "RUN_FINISHED"]
    messages = first["messages"]
    assert [each["role"] for each in messages] == ["user", "assistant", "assistant", "tool", "assistant"]
    assert [each.get("content") for each in messages if each["role"] != "assistant"] == ["Pay.", "5 cents charged"]
    assert [each["content"] for each in messages if each.get("content") and each["role"] == "assistant"] == [
        "Let me see.",
        "It is paid.",
    ]
    (called,) = [each for message in messages for each in message.get("toolCalls", ())]
    assert (called["function"]["name"], json.loads(called["function"]["arguments"])) == ("charge", {"cents": 5})
    # The next turn has all of that with it, and the server takes what is new.
    assert (second["error"], _kinds(second)) == (None, _kinds(first))
    assert len(second["messages"]) == 2 * len(messages)
    with server.client() as own:
        assert own.get("/api/threads/order").text.count('"Pay."') == 2


def test_a_client_answers_a_question_and_the_run_goes_on(program: Path, start_server: StartServer) -> None:
    server = start_server(make_agent(call("ask", question="Sure?"), "As you wish."))
    asked, done = _ask(program, server, {"runId": "run-1", "say": "Pay."}, {"runId": "run-2", "answer": "yes"})
    assert [each["message"] for each in asked["interrupts"]] == ["Sure?"]
    assert (done["error"], done["interrupts"], _kinds(done)[-1]) == (None, [], "RUN_FINISHED")
    assert done["messages"][-1]["content"] == "As you wish."
    assert "the person said yes" in [each.get("content") for each in done["messages"]]


def test_a_client_reads_failures_and_needs_its_token(program: Path, start_server: StartServer) -> None:
    token = secrets.token_hex(32)
    server = start_server(make_agent(ValueError("the model is down")), tokens={"alice": token})
    (failed,) = _ask(program, server, {"runId": "run-1", "say": "Pay."}, token=token)
    assert "the model is down" in failed["error"]
    assert _kinds(failed) == ["RUN_STARTED", "RUN_ERROR"]
    (refused,) = _ask(program, server, {"runId": "run-1", "say": "Pay."})
    assert "401" in refused["error"]
    assert refused["events"] == []
