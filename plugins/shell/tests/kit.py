"""What the tests share: an agent with the shell, and commands that are run by it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio

from locus import Agent
from locus_plugin_shell import Sandbox, ShellSettings
from locus_plugin_shell.settings import Way
from locus_testkit import ScriptedModel, call

__all__ = ["agent", "children", "gone", "outcomes", "run_command", "sandbox"]

#: What makes the sandboxes of the present test; the fixture `way` sets it.
way: Way = "auto"


def agent(root: Path, *turns: Any, **options: Any) -> Agent[Any, Any]:
    """An agent whose model makes these turns and then says "done"."""
    model = ScriptedModel(script=lambda _: [*turns, "done"])
    shell = {"root": str(root), "sandbox": way, **options.pop("shell", {})}
    return Agent[Any, Any](model, shell=shell, **options)


async def run_command(root: Path, command: str, *, timeout: float = 30.0, **settings: Any) -> str:
    """What the model reads of a command."""
    made = agent(root, call("execute", command=command, timeout=timeout), shell=settings)
    result = await made.run("x")
    (done,) = result.state.tool_executions
    assert done.error is None, done.error
    return str(done.result)


def sandbox(root: Path, **settings: Any) -> Sandbox:
    """The sandbox by itself."""
    return Sandbox.find(ShellSettings(**{"root": str(root), "sandbox": way, **settings}), root)


def children() -> set[int]:
    """The processes of this machine, those of other PID namespaces below included, that have a marker in their argv."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                text = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"sleep\x00" + MARK in text or (MARK in text and (b"launcher.py" in text or b"/bwrap\x00" in text)):
                found.add(int(entry.name))
    return found


def outcomes(result: Any) -> list[str]:
    """What came of each call."""
    return [str(done.result or done.error) for done in result.state.tool_executions]


async def gone() -> bool:
    """Whether nothing of this test is left, within a few seconds."""
    for _ in range(100):
        if not children():
            return True
        await anyio.sleep(0.05)
    return False


#: Seconds that no other process of this machine sleeps: it names those of this test process.
MARK = str(100_000 + os.getpid()).encode()
