"""Runs of which everything that was told and recorded is kept, to look for what must not be in it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from attrs import frozen

from locus import Agent, AgentResult, Event, tool
from locus.core.events import event_to_json
from locus.journal import MemoryStore
from locus_plugin_timetravel import export_thread
from locus_testkit import ScriptedModel

__all__ = ["SECRETS", "Told", "Tools", "clean", "run"]

#: One of each kind that the default rules know.
SECRETS = (
    "alice@example.com",
    "4111 1111 1111 1111",
    "536-90-4399",
    "DE89370400440532013000",
    "ghp_0123456789abcdefghij",
    "+41446681800",
    "8.8.4.4",
)


class Tools:
    """Tools that note with what their bodies ran.

    Args:
        says: what `read` returns.
    """

    def __init__(self, says: Any = "nothing") -> None:
        self.says, self.ran = says, list[tuple[str, Any]]()

    def all(self) -> list[Any]:
        @tool(effect="pure")
        async def read(what: str) -> Any:
            """Read something."""
            self.ran.append(("read", what))
            if isinstance(self.says, BaseException):
                raise self.says
            return self.says

        @tool
        async def send(body: Any) -> str:
            """Send something out."""
            self.ran.append(("send", body))
            return "sent"

        @tool
        def query(sql: str) -> str:
            """Ask the database."""
            self.ran.append(("query", sql))
            return "rows"

        return [read, send, query]


@frozen
class Told:
    """A run, with all that anybody could read of it."""

    result: AgentResult[Any]
    events: tuple[Event, ...]
    journal: str
    seen: str

    @property
    def everything(self) -> str:
        """Events, journal and result, as text."""
        shown = json.dumps([event_to_json(event) for event in self.events], ensure_ascii=False)
        return "\n".join([shown, repr(self.events), self.journal, repr(self.result.state), repr(self.result.reports)])


async def run(model: ScriptedModel, prompt: Any = "Go.", tools: Tools | None = None, **options: Any) -> Told:
    store = MemoryStore()
    bodies = [] if tools is None else tools.all()
    options.setdefault("guardrails", True)
    agent: Agent[Any, Any] = Agent(model, tools=bodies, checkpointer=store, **options)
    one = agent.run(prompt, thread_id="t")
    events = [event async for event in one]
    lines = await export_thread(store, "t")
    journal = "\n".join([*lines, *(repr(entry) for entry in await store.read("t"))])
    return Told(one.result, tuple(events), journal, "".join(repr(request.messages) for request in model.requests))


def clean(text: str, secrets: Iterable[str] = SECRETS) -> bool:
    left = [text[max(0, text.index(s) - 60) : text.index(s) + 60] for s in secrets if s in text]
    if left:
        print(left)  # noqa: T201  # for whoever reads the failure
    return not left
