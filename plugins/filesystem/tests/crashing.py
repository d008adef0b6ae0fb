"""An agent with files and a child, in processes that are killed at every write; run as ``python -m``, see `main`.

What a killed process leaves is the file of the journal.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from locus import Agent, tool
from locus.core.messages import Message, Role, ToolCall
from locus.core.state import ToolExecution
from locus.models import ModelRequest, ModelResponse
from locus.plugins.discovery import Catalogue
from locus.tools import ToolContext
from locus_plugin_filesystem import hook
from locus_plugin_filesystem.manifest import plugin
from locus_plugin_filesystem.thread import Turn
from locus_plugin_sqlite import SqliteStore
from locus_testkit.kills import every_kill, let_die

DyingStore = let_die(SqliteStore)


def write(path: str, contents: str) -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": path, "contents": contents}


def edit(path: str, old: str, new: str) -> tuple[str, dict[str, Any]]:
    return "edit_file", {"path": path, "old_str": old, "new_str": new}


def read(path: str) -> tuple[str, dict[str, Any]]:
    return "read_file", {"path": path}


PARENT = [
    [write("/a", "one\n"), write("/b", "b\n"), write("/a", "never")],
    [edit("/a", "one", "two"), read("/a"), write("/b", "b2\n")],
    [("ask_child", {}), read("/b"), ("fetch", {})],
    [read("/a"), read("/c"), ("ls", {"recursive": True})],
]
CHILD = [[read("/a"), write("/c", "of the child\n")], [edit("/a", "two", "three"), edit("/c", "child", "kid")]]


class Following:
    """A model that gives the turns of a script, in whatever process: by the answers that it finds."""

    price = None

    def __init__(self, name: str, turns: list[Any], ids: str) -> None:
        self.name, self._turns, self._ids = name, turns, ids

    async def complete(self, request: ModelRequest, on_chunk: Any = None) -> ModelResponse:
        turn = sum(message.role is Role.ASSISTANT for message in request.messages)
        if turn >= len(self._turns):
            return ModelResponse(message=Message(Role.ASSISTANT, f"{self.name} is done"))
        calls = [ToolCall(self._ids.format(turn, i), name, given) for i, (name, given) in enumerate(self._turns[turn])]
        return ModelResponse(message=Message(Role.ASSISTANT, tuple(calls)))


#: How calls are named, by turn and number: each call apart, or all of them alike.
IDS = {"unique": "c{}_{}", "same": "c"}


def build(store: Any, ids: str) -> Agent[Any, str]:
    options: dict[str, Any] = {"filesystem": True, "catalogue": Catalogue.only(plugin)}
    child = Agent(Following("child", CHILD, ids), **options)

    @tool(effect="pure")
    async def ask_child(ctx: ToolContext) -> str:
        """Ask the child."""
        return (await ctx.run_child(child, "go")).text or ""

    @tool(effect="pure")
    async def fetch() -> str:
        """Fetch much."""
        return "much\n" * 20_000

    return Agent(Following("parent", PARENT, ids), tools=[ask_child, fetch], checkpointer=store, **options)


async def go(folder: Path, ids: str) -> dict[str, Any]:
    """Run the agent to its end, or go on with it."""
    # Where files are flushed to the disk does not matter to a process that is killed.
    async with DyingStore(folder / "runs.db", sync="normal") as store:
        agent = build(store, ids)
        known = await store.peek("t")
        result = await (agent.run("go", thread_id="t", request_id="only") if known is None else agent.resume("t"))
    state = result.state
    files = {_name(key): entry["text"] for key, entry in state.metadata.items() if key.startswith("files/")}
    said = [_name(each.result or each.error or "") for each in state.tool_executions if each.tool_name != "ls"]
    return {"files": files, "said": said, "text": result.text}


def _name(text: str) -> str:
    """A text without what is of one run only: the names of large results are made of the run's id."""
    return re.sub(r"/large_results/\w+", "/large_results/one", text)[:1_000]


def forget(control: str) -> None:
    """Break on purpose what brings files back after a crash.

    Args:
        control: ``"calls"``: only what was entered in this process is applied; ``"children"``: a child that was over
            before the crash brings nothing; ``"large"``: so does a large result.
    """
    if control == "calls":
        compose, changes = Turn.compose, Turn.changes

        def composed(self: Turn, call: str, path: str, contents: str) -> bytes:
            ENTERED.add((call, path))
            return compose(self, call, path, contents)

        def changed(self: Turn, done: Iterable[tuple[str, ToolExecution]], now: datetime) -> Any:
            entered = [(name, each) for name, each in done if (name, each.arguments.get("path")) in ENTERED]
            return changes(self, entered, now)

        Turn.compose, Turn.changes = composed, changed  # type: ignore[method-assign]
    if control == "large":

        async def recalled(path: str, run: Any) -> None:
            return None

        hook._recall = recalled
    if control == "children":
        bring = hook._bring

        async def brought(above: Any, state: Any, run: Any) -> None:
            recorded = above.run
            await bring(type(above)(above.turn, Unrecorded(recorded), above.call), state, run)

        hook._bring = brought


ENTERED: set[tuple[str, Any]] = set()


class Unrecorded:
    """A run whose steps are not recorded."""

    def __init__(self, run: Any) -> None:
        self.thread_id = run.thread_id

    async def step(self, name: str, fn: Any, *, effect: str) -> Any:
        return await fn()


def main(folder: Path, control: str, stride: int, ids: str) -> None:
    """Kill at every write and print what came of it.

    Args:
        folder: for the journals.
        control: ``""``, or what is broken on purpose, see `forget`.
        stride: every which write.
        ids: see `IDS`.
    """
    build(None, IDS[ids]).run_sync("go")  # what a process imports late is there before it is forked
    forget(control)
    found, kills = [], []
    for kill in every_kill(folder, partial(go, ids=IDS[ids]), stride=stride, from_end=True):
        kills.append(kill)
        if kill.result != kill.wanted:
            found.append(f"{kill.folder.name}: {kill.result}")
            if control:
                break
    json.dump({"found": found, "deaths": sum(kill.died for kill in kills), "wanted": kills[0].wanted}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4])
