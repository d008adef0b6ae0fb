"""Agents for the workers of the tests, as a user's program has them. The models follow a script.

Each tool writes a line into ``log`` of the working directory, so that a test can count what ran in which process.
"""

from __future__ import annotations

import importlib
import json
import os
import time
from pathlib import Path
from typing import Any

from locus import Agent, ToolContext, tool
from locus.models import ModelRequest
from locus_testkit import ScriptedModel, call

if "WORKER_MUTANT" in os.environ:
    importlib.import_module(os.environ["WORKER_MUTANT"])


def _note(what: str, ctx: ToolContext[Any]) -> None:
    line = json.dumps({"what": what, "run": ctx.run_id, "pid": os.getpid(), "at": time.time()})
    with Path("log").open("a", encoding="utf-8") as file:
        file.write(line + "\n")


@tool(effect="once")
def charge(ctx: ToolContext[None], cents: int) -> str:
    """Take the money for an order."""
    _note(f"charge {cents}", ctx)
    time.sleep(float(os.environ.get("SHOP_SECONDS", "0")))
    return f"{cents} cents charged"


@tool(effect="once")
def gate(ctx: ToolContext[None]) -> str:
    """Wait until the test opens the gate: a file in the working directory."""
    _note("gate", ctx)
    while not Path("gate").exists():
        time.sleep(0.01)
    return "the gate is open"


@tool
def ask(ctx: ToolContext[None], question: str) -> str:
    """Ask a person."""
    return f"the person said {ctx.interrupt(question, options=['yes', 'no'])}"


@tool(effect="pure")
def die(ctx: ToolContext[None]) -> str:
    """End the process, as a bug in a library does."""
    _note("die", ctx)
    if not Path("mended").exists():
        os._exit(9)
    return "alive"


def _agent(name: str, *turns: Any, **options: Any) -> Agent[Any, Any]:
    def script(request: ModelRequest) -> list[Any]:
        return list(turns)

    model = ScriptedModel(script=script, name=f"scripted:{name}", after="cycle")
    return Agent(model, tools=[charge, gate, ask, die], name=name, **options)


agent = _agent("shop", call("charge", cents=5), "It is paid.")
many = _agent("many", *(call("charge", cents=n) for n in range(6)), "All of it is paid.")
slow = _agent("slow", call("charge", cents=1), call("gate"), call("charge", cents=2), "I went through.")
asking = _agent("asking", call("ask", question="Charge it?"), call("charge", cents=7), "Done.")
deadly = _agent("deadly", call("die"), "It went well.")
nameless = Agent(ScriptedModel("Hello."))
dated = _agent("dated", "Done.", version="3")
price = 5


def made() -> Agent[Any, Any]:
    """An agent of a function."""
    return agent


def broken() -> Agent[Any, Any]:
    """A function that fails."""
    raise ValueError("no price list")
