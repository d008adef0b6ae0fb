"""An agent with todos in processes that are killed in their writes; run as ``python -m`` with what `main` takes.

Prints what the undisturbed run comes to, how many processes died, and which deaths have changed something.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from locus import Agent
from locus.core import thaw
from locus.core.errors import RequestSuperseded
from locus_plugin_sqlite import SqliteStore
from locus_plugin_todos import TodosHook, TodoState
from locus_plugin_todos.todo import read_list, to_list
from locus_plugin_todos.tools import RUN_TODOS
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


def main(folder: Path, stride: int, control: str = "") -> None:
    """Kill at every which write.

    Args:
        folder: for journals.
        stride: every which write.
        control: ``""``, or what is broken on purpose: ``"bodies"``, the list is what bodies made it in this process,
            and not what is on record.
    """
    if control == "bodies":

        async def execute(self: Any, call_next: Any, state: Any, run: Any) -> Any:
            live = TodoState()
            live.replace(read_list(state.metadata.get("todos", ())))
            token = RUN_TODOS.set(live)
            new = await call_next(state)
            RUN_TODOS.reset(token)
            return new.with_metadata("todos", to_list(live.snapshot()))

        TodosHook._execute = execute  # type: ignore[method-assign]
    # Two writes are enough to find what is broken.
    kills = list(islice(every_kill(folder, go, stride=stride), 4 if control else None))
    changed = [[kill.at, kill.stored, kill.result] for kill in kills if kill.result != kill.wanted]
    json.dump({"wanted": kills[0].wanted, "deaths": sum(kill.died for kill in kills), "changed": changed}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
