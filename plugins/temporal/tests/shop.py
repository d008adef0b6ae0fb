"""An agent that sells, a workflow that runs it, and what its tools have done: a line each in a file."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

from temporalio import workflow

from locus import Agent, tool
from locus.core.state import AgentState
from locus.models import ModelRequest
from locus.tools import ToolContext
from locus_plugin_temporal import run
from locus_testkit import ScriptedModel, Turn, call

#: What the tools do, in order.
DONE = ["think 1", "pay", "look", "think 4", "ship", "think 6"]


class Shop:
    """Makes the agent.

    Args:
        folder: where ``done`` gets a line for each effect that begins, and where ``kills`` lists those in which the
            process is to die, once each.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def note(self, what: str) -> None:
        """Write what begins, and die in it if that is wanted."""
        with (self.folder / "done").open("a", encoding="utf-8") as done:
            done.write(f"{what}\n")
            done.flush()
            os.fsync(done.fileno())
        kills = self.folder / "kills"
        left = kills.read_text(encoding="utf-8").split(",") if kills.exists() else []
        if what in left:
            left.remove(what)
            kills.write_text(",".join(left), encoding="utf-8")
            os.kill(os.getpid(), signal.SIGKILL)

    def done(self) -> list[str]:
        """What has begun."""
        path = self.folder / "done"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def agent(self, **options: Any) -> Agent[Any, Any]:
        """The agent."""

        @tool(effect="once")
        def pay(total: int) -> str:
            """Pay."""
            self.note("pay")
            return f"paid {total}"

        @tool(effect="pure")
        async def look(what: str) -> str:
            """Look."""
            self.note("look")
            return f"seen {what}"

        @tool(effect="keyed")
        async def ship(ctx: ToolContext[Any]) -> str:
            """Ship."""
            self.note("ship")
            return f"shipped as {ctx.idempotency_key.partition('/')[2]} after {len(ctx.state.messages)} messages"

        def script(request: ModelRequest) -> list[Turn]:
            self.note(f"think {len(request.messages)}")
            return [[call("pay", total=3), call("look", what="x")], call("ship"), "Done."]

        model = ScriptedModel(script=script, ids="per_turn")
        return Agent(model, tools=[pay, look, ship], name="shop", **{"tool_execution": "sequential", **options})


@workflow.defn(name="Sell")
class Sell:
    """A workflow of a user's own, in the default sandbox."""

    @workflow.run
    async def run(self, prompt: str) -> AgentState:
        """Run the agent and give its state."""
        result = await run("shop", prompt)
        return result.state


@workflow.defn(name="Both")
class Both:
    """Two runs side by side."""

    @workflow.run
    async def run(self) -> list[list[str | None]]:
        """What their tools returned."""
        both = await asyncio.gather(*(run("shop", "Go.", thread_id=name) for name in ("left", "right")))
        return [[each.result for each in result.state.tool_executions] for result in both]
