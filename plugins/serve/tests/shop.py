"""An agent for the servers of the tests, as a user's program has it. The model follows a script.

Each effect is a line in ``ledger`` of the working directory, so that a test can count what happened in which process.
"""

from __future__ import annotations

import asyncio
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
async def name_loop() -> str:
    """Say which event loop this runs on."""
    return type(asyncio.get_running_loop()).__module__


def _agent(name: str, *turns: Any) -> Agent[Any, Any]:
    def script(request: ModelRequest) -> list[Any]:
        return list(turns)

    model = ScriptedModel(script=script, chunks=True, after="cycle")
    return Agent(model, tools=[charge, gate, name_loop], name=name)


agent = _agent("shop", *(call("charge", number=n) for n in range(EFFECTS)), "It is paid.")
waiting = _agent("waiting", call("gate"), call("charge", number=1), "I went through.")
loop = _agent("loop", call("name_loop"), "That is it.")
