"""The stored histories of workflows, which every later version must replay.

``python -m plugins.temporal.tests.histories`` at the top of a checkout writes those that are missing. What is there
stays as it is: it was written by the version that people have workflows of.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHistory
from temporalio.worker import Worker

from locus import Agent, tool
from locus.tools import ToolContext
from locus_plugin_temporal import AgentTask, AgentWorkflow, DevServer, LocusPlugin
from locus_testkit import ScriptedModel, Turn, call

from .shop import Sell, Shop

#: Where they are.
FOLDER = Path(__file__).parent / "data"


def asking_agent() -> Agent[Any, Any]:
    """An agent that asks a person, and whose run continues as new."""

    @tool(effect="once")
    async def sign(ctx: ToolContext[Any]) -> str:
        """Sign."""
        return f"signed by {ctx.interrupt('Who signs?')}"

    turns: list[Turn] = [call("sign"), call("sign"), "Done."]
    return Agent(ScriptedModel(script=lambda _: turns, ids="per_turn"), tools=[sign], name="asking")


def stored() -> Iterator[WorkflowHistory]:
    """Those that are stored."""
    for path in sorted(FOLDER.glob("*.json")):
        yield WorkflowHistory.from_json(path.stem, path.read_text(encoding="utf-8"))


def _write(name: str, history: WorkflowHistory) -> None:
    path = FOLDER / f"{name}.json"
    if not path.exists():
        path.write_text(json.dumps(json.loads(history.to_json()), indent=1) + "\n", encoding="utf-8")


async def _make(address: str, folder: Path) -> None:
    plugin = LocusPlugin([Shop(folder).agent(), asking_agent()])
    client = await Client.connect(address, plugins=[plugin], identity="histories")
    async with Worker(client, task_queue="q", workflows=[Sell], identity="histories"):
        await client.execute_workflow("Sell", "Sell.", id="sell", task_queue="q")
        _write("sell", await client.get_workflow_handle("sell").fetch_history())
        task = AgentTask(agent="asking", prompt="Sign.", history_limit=10)
        handle = await client.start_workflow(AgentWorkflow.run, task, id="asking", task_queue="q")
        for _ in range(2):
            while not any("questions" in run for run in await handle.query("locus.state")):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            await handle.signal("locus.answer", "Ann")
            await asyncio.sleep(1)
        await handle.result()
        runs = [
            handle.first_execution_run_id,
            *[r.run_id async for r in client.list_workflows("WorkflowId = 'asking'")],
        ]
        for number, run_id in enumerate(dict.fromkeys(runs)):
            _write(f"asking-{number}", await client.get_workflow_handle("asking", run_id=run_id).fetch_history())


def main() -> None:
    """Write what is missing."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, DevServer(folder) as server:
        asyncio.run(_make(server.address, Path(folder)))


if __name__ == "__main__":
    main()
