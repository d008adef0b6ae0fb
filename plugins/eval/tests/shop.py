"""A program with agents: their models answer by what they are asked, and note each request in the file ``log``.

Where a file ``gate`` is in the working directory, the request "slow" and the tool for "stuck" wait until that is gone.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from locus import Agent, ModelRequest, Role, tool
from locus_testkit import ScriptedModel, call

__all__ = ["agent", "make", "worse"]


@tool(effect="once")
def price(item: str) -> str:
    """Look up a price."""
    _note(f"tool {item}")
    while item.startswith("stuck") and Path("gate").exists():
        time.sleep(0.01)
    return f"A {item} costs 12 EUR."


def _note(what: str) -> None:
    line = json.dumps({"pid": os.getpid(), "what": what}) + "\n"
    with Path("log").open("a", encoding="utf-8") as log:
        log.write(line)


def _answer(request: ModelRequest) -> Any:
    said = [message.text for message in request.messages if message.role is Role.USER][-1]
    is_first = request.messages[-1].role is Role.USER
    _note(f"{'first' if is_first else 'second'} {said}")
    if is_first:
        return call("price", item=said)
    while said.startswith("slow") and Path("gate").exists():
        time.sleep(0.01)
    return f"A {said} costs 12 EUR."


agent = Agent(ScriptedModel(_answer, after="repeat"), tools=[price], name="shop")
worse = Agent(ScriptedModel("I do not know.", after="repeat"), name="worse")


def make() -> Agent[Any, Any]:
    """Make an agent without a name."""
    return Agent(ScriptedModel("A lamp costs 12 EUR.", after="repeat"))
