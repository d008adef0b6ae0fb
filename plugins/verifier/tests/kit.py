"""An agent with a tool that works, a tool that submits, and what ran of them."""

from __future__ import annotations

import json
from typing import Any

from locus import Agent, AgentResult, Event, tool
from locus.plugins.discovery import Catalogue
from locus_plugin_verifier.manifest import plugin
from locus_testkit import ScriptedModel, call

__all__ = ["DONE", "INSTALLED", "SUBMIT", "WORK", "Bodies", "agent", "played", "verdict"]

INSTALLED = Catalogue.only(plugin)
WORK, SUBMIT, DONE = call("work", part="a"), call("submit", answer="42"), "All of it is done."


class Bodies:
    """Tools, and what ran of them."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def all(self) -> list[Any]:
        @tool(effect="pure")
        async def work(part: str) -> str:
            """Work on a part."""
            self.ran.append(f"work {part}")
            return f"{part} is done"

        @tool
        async def submit(answer: str) -> str:
            """Submit the final answer."""
            self.ran.append(f"submit {answer}")
            return "submitted"

        return [work, submit]


def verdict(verified: bool, missing: str = "") -> str:
    return json.dumps({"verified": verified, "missing": missing})


def agent(model: ScriptedModel, bodies: Bodies | None = None, **options: Any) -> Agent[Any, str]:
    return Agent(model, tools=(bodies or Bodies()).all(), **{"catalogue": INSTALLED, **options})


async def played(
    *script: Any, bodies: Bodies | None = None, **options: Any
) -> tuple[AgentResult[Any], list[Event], ScriptedModel]:
    model = ScriptedModel(*script)
    run = agent(model, bodies, **options).run("Do all of it.", thread_id="t")
    events = [event async for event in run]
    return run.result, events, model
