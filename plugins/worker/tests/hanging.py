"""An agent with a tool that blocks the event loop, until a test creates the file ``gate``."""

import time
from pathlib import Path
from typing import Any

from shop import _note  # type: ignore[import-not-found]  # a program in the working directory

from locus import Agent, ToolContext, tool
from locus_testkit import ScriptedModel, call

__all__ = ["agent"]


def _wait() -> None:
    while not Path("gate").exists():
        time.sleep(0.01)


@tool(effect="once")
async def hang(ctx: ToolContext[Any]) -> str:
    """Block the loop: it is a coroutine, and never waits."""
    _note("hang", ctx)
    _wait()
    return "it goes on"


model = ScriptedModel(script=lambda request: [call("hang"), "Done."], name="scripted:hanging", after="cycle")
agent = Agent(model, tools=[hang], name="hanging")
