"""A deep agent with all its layers in processes that are killed in their writes; run as ``python -m``, see `main`.

Each process appends what it really does to a ledger. Prints what the undisturbed run comes to, how many processes died,
and what is wrong after a death.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from locus import tool
from locus.core.messages import Role
from locus_deepagent import create_deepagent
from locus_plugin_sqlite import SqliteStore
from locus_plugin_subagents import SubAgentDef
from locus_testkit import ScriptedModel, call
from locus_testkit.kills import Killed, every_kill, let_die

DyingStore = let_die(SqliteStore)

YEAR = {"type": "object", "properties": {"year": {"type": "integer"}}, "required": ["year"]}


def todos(status: str) -> str:
    return json.dumps([{"content": "send word", "status": status}, {"content": "submit", "status": "pending"}])


def answer(request: Any) -> Any:
    """The script of the agent, of its judge, and of its subagent."""
    if request.purpose == "reflexion":
        is_submitted = "submit_research" in request.messages[-1].text
        confidence = 0.9 if is_submitted else 0.2
        return [json.dumps({"judgment": "so", "verdict": "on_track", "confidence": confidence, "guidance": ""})]
    if any(spec.name == "task" for spec in request.tools):
        return [
            [
                call("write_todos", todos_json=todos("in_progress")),
                call("write_file", path="/plan.md", contents="plan"),
            ],
            call("task", subagent_type="sender", description="send word"),
            [
                call("write_todos", todos_json=todos("completed")),
                call("edit_file", path="/plan.md", old_str="plan", new_str="done"),
            ],
            call("submit_research", year="soon"),
            call("submit_research", year=1875),
        ]
    what = next(message.text for message in request.messages if message.role is Role.USER)
    return [call("send", what=what), f"{what} is done."]


async def go(folder: Path) -> Any:
    """A run, or what is left of it."""

    @tool(targets=())
    async def send(what: str) -> str:
        """Send it, once."""
        with (folder / "ledger").open("a") as file:
            file.write(f"{what}\n")
        return "sent"

    sender = SubAgentDef(name="sender", description="sends", system_prompt="Send.", tools=[send])
    async with DyingStore(folder / "runs.db", sync="normal") as store:
        agent = create_deepagent(
            model=ScriptedModel(script=answer),
            tools=[],
            system_prompt="Work.",
            output_schema=YEAR,
            checkpointer=store,
            enable_filesystem=True,
            enable_todos=True,
            subagents=[sender],
        )
        result = await agent.run("Go.", thread_id="t", request_id="only")
    return {
        "reason": result.stop_reason,
        "results": [each.result or each.error for each in result.state.tool_executions],
        "parsed": result.parsed,
        "kept": sorted(key for key in result.state.metadata if key.startswith(("todos", "files"))),
        "usage": result.usage.total_tokens,
    }


def problems(kill: Killed) -> list[str]:
    """What is wrong after a death and what followed it."""
    found = [] if kill.result == kill.wanted else [f"the run came to {kill.result}"]
    lines = (kill.folder / "ledger").read_text().splitlines() if (kill.folder / "ledger").exists() else []
    found += [f"{line} happened {times} times" for line, times in Counter(lines).items() if times > 1]
    return [f"write {kill.at}{', stored' if kill.stored else ''}: {each}" for each in found]


def main(folder: Path, stride: int) -> None:
    """Kill at every which write."""
    kills = list(every_kill(folder, go, stride=stride))
    wrong = [each for kill in kills for each in problems(kill)]
    json.dump({"wanted": kills[0].wanted, "deaths": sum(kill.died for kill in kills), "wrong": wrong}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
