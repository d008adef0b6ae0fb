"""An agent with todos in processes that are killed in their writes; run as ``python -m`` with a folder and a stride.

Prints what the undisturbed run comes to, how many processes died, and which deaths have changed something.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from locus import Agent
from locus.core import thaw
from locus.core.errors import RequestSuperseded
from locus_plugin_sqlite import SqliteStore
from locus_testkit import ScriptedModel, call
from locus_testkit.kills import every_kill, let_die

DyingStore = let_die(SqliteStore)


def write(*todos: tuple[str, str]) -> Any:
    return call("write_todos", todos_json=json.dumps([{"content": c, "status": s} for c, s in todos]))


#: The answers of the first turn, and those of the second one.
TURNS = [
    [write(("a", "pending"), ("b", "pending")), call("read_todos")],
    write(("a", "completed"), ("b", "in_progress")),
    "Soon.",
    [call("read_todos"), write(("a", "completed"), ("b", "completed"))],
    "Done.",
    call("read_todos"),
    write(("c", "pending")),
    "Later.",
    "Still later.",
]


async def go(folder: Path) -> Any:
    """Two turns of a thread, or what is left of them."""
    async with DyingStore(folder / "runs.db", sync="normal") as store:
        model = ScriptedModel(script=lambda request: TURNS)
        agent: Agent[Any, Any] = Agent(model, checkpointer=store, todos={"remind": True})
        with suppress(RequestSuperseded):
            await agent.run("Go.", thread_id="t", request_id="first")
        result = await agent.run("Go on.", thread_id="t", request_id="second")
    results = [execution.result for execution in result.state.tool_executions]
    return [result.text, thaw(result.state.metadata["todos"]), len(result.state.messages), results]


def main(folder: Path, stride: int) -> None:
    """Kill at every which write."""
    kills = list(every_kill(folder, go, stride=stride))
    changed = [[kill.at, kill.stored, kill.result] for kill in kills if kill.result != kill.wanted]
    json.dump({"wanted": kills[0].wanted, "deaths": sum(kill.died for kill in kills), "changed": changed}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
