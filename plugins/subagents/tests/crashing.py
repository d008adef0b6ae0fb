"""An agent with subagents in processes that are killed in their writes; run as ``python -m`` with what `main` takes.

Each process appends what it really does to a ledger. Prints what the undisturbed run comes to, how many processes died,
and what is wrong after a death.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

from locus import Agent, ToolContext, tool
from locus.core.messages import Role
from locus_plugin_sqlite import SqliteStore
from locus_plugin_subagents import SubAgentDef, SubagentsSettings, task
from locus_testkit import ScriptedModel, call
from locus_testkit.kills import Killed, every_kill, let_die

DyingStore = let_die(SqliteStore)


def answer(request: Any) -> Any:
    """The script of the agent, and that of a subagent."""
    if any(spec.name == "task" for spec in request.tools):
        one, two, three = (call("task", subagent_type="worker", description=name) for name in ("one", "two", "three"))
        return [[one, two], three, "All is done."]
    what = next(message.text for message in request.messages if message.role is Role.USER)
    return [[call("once", what=what), call("keyed", what=what)], f"{what} is done."]


async def go(folder: Path) -> Any:
    """A run with three subagents, or what is left of it."""

    def note(line: str) -> None:
        with (folder / "ledger").open("a") as file:
            file.write(f"{line}\n")

    @tool
    async def once(what: str) -> str:
        """Do it, once."""
        note(f"once {what}")
        return f"did {what}"

    @tool(effect="keyed")
    async def keyed(what: str, ctx: ToolContext[Any]) -> str:
        """Do it, by its key."""
        note(f"keyed {what} {ctx.idempotency_key}")
        return f"did {what}"

    worker = SubAgentDef(name="worker", description="works", system_prompt="Work.", tools=[once, keyed])
    async with DyingStore(folder / "runs.db", sync="normal") as store:
        model = ScriptedModel(script=answer)
        agent: Agent[Any, Any] = Agent(model, checkpointer=store, subagents=SubagentsSettings(agents=(worker,)))
        result = await agent.run("Go.", thread_id="t", request_id="only")
    return [result.text, [execution.result for execution in result.state.tool_executions]]


def problems(kill: Killed) -> list[str]:
    """What is wrong after a death and what followed it."""
    found = [] if kill.result == kill.wanted else [f"the run came to {kill.result}"]
    lines = (kill.folder / "ledger").read_text().splitlines() if (kill.folder / "ledger").exists() else []
    for line, times in Counter(lines).items():
        if line.startswith("once") and times > 1:
            found.append(f"{line} {times} times")
    keys = {line for line in lines if line.startswith("keyed")}
    if len(keys) != 3:
        found.append(f"the keys {sorted(keys)}")
    return [f"write {kill.at}{', stored' if kill.stored else ''}: {each}" for each in found]


def main(folder: Path, stride: int, control: str = "") -> None:
    """Kill at every which write.

    Args:
        folder: for journals and ledgers.
        stride: every which write.
        control: ``""``, or what is broken on purpose: ``"once"``, a call of `task` that a crash interrupts is given up.
    """
    if control == "once":
        made = vars(task)["tool"]
        vars(task)["tool"] = lambda **options: made(**options | {"effect": "once"})
    # Two writes are enough to find what is broken.
    kills = list(islice(every_kill(folder, go, stride=stride), 4 if control else None))
    wrong = [each for kill in kills for each in problems(kill)]
    json.dump({"wanted": kills[0].wanted, "deaths": sum(kill.died for kill in kills), "wrong": wrong}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
