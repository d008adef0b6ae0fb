"""An agent for the servers of the tests, as a user's program has it. The model follows a script.

Each effect is a line in ``ledger`` of the working directory, so that a test can count what happened in which process.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
from pathlib import Path
from typing import Any

from locus import Agent, ToolContext, tool
from locus.models import ModelRequest
from locus_testkit import ScriptedModel, call

#: How many effects a turn has, and how long each takes, in seconds.
EFFECTS, SECONDS = 5, 0.05


@tool(effect="once")
def charge(ctx: ToolContext[Any], number: int) -> str:
    """Take money."""
    line = f"{ctx.run_id} {number}\n".encode()
    file = os.open("ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line)
    os.close(file)
    time.sleep(SECONDS)
    return f"{number} charged"


@tool(effect="pure")
def gate() -> str:
    """Wait until the test opens the gate: a file in the working directory."""
    Path("waiting").touch()
    while not Path("gate").exists():
        time.sleep(0.01)
    return "the gate is open"


@tool(effect="pure")
async def describe_process() -> str:
    """Say which event loop this runs on, and whether the garbage collector leaves out what is loaded."""
    return f"{type(asyncio.get_running_loop()).__module__}, {gc.get_freeze_count() > 0}, {gc.get_threshold()[0]}"


def _agent(name: str, *turns: Any) -> Agent[Any, Any]:
    def script(request: ModelRequest) -> list[Any]:
        return list(turns)

    model = ScriptedModel(script=script, chunks=True, after="cycle")
    return Agent(model, tools=[charge, gate, describe_process], name=name)


agent = _agent("shop", *(call("charge", number=n) for n in range(EFFECTS)), "It is paid.")
waiting = _agent("waiting", call("gate"), call("charge", number=1), "I went through.")
tuned = _agent("tuned", call("describe_process"), "That is it.")
