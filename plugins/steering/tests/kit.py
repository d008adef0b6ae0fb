"""An agent with tools that note what ran, and judges that answer by the call that they are asked about."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from locus import Agent, AgentResult, Event, tool
from locus.models import ModelRequest
from locus_testkit import ScriptedModel

__all__ = ["Bodies", "asked", "judge", "run", "vote"]


class Bodies:
    """Tools and what ran of them.

    Args:
        page: what `read` returns.
    """

    def __init__(self, page: str = "nothing") -> None:
        self.page, self.ran = page, list[str]()

    def all(self) -> list[Any]:
        @tool(effect="pure")
        async def read(what: str) -> str:
            """Read a page."""
            self.ran.append(f"read {what}")
            return self.page

        @tool
        async def wire(to: str, dollars: int) -> str:
            """Wire money."""
            self.ran.append(f"wire {to} {dollars}")
            return "wired"

        return [read, wire]


def vote(decision: str, reason: str = "because") -> str:
    return json.dumps({"decision": decision, "reason": reason})


def asked(request: ModelRequest) -> str:
    """The call in question, as the judge is shown it."""
    return request.messages[-1].text.rpartition("the call in question:\n")[2].splitlines()[1]


def judge(decide: Callable[[str], str], **options: Any) -> ScriptedModel:
    """A judge that looks at the call in question, asked in any order."""
    return ScriptedModel(lambda request: decide(asked(request)), name="scripted:judge", after="repeat", **options)


async def run(model: ScriptedModel, bodies: Bodies, **options: Any) -> tuple[AgentResult[Any], list[Event]]:
    one = Agent(model, tools=bodies.all(), **options).run("Read the page and sum it up.", thread_id="t")
    events = [event async for event in one]
    return one.result, events
