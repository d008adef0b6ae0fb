"""Agents whose lines are kept."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from locus import Agent, Event, tool
from locus_testkit import ScriptedModel

__all__ = ["Kept", "agent", "kept", "run"]


class Kept(logging.Handler):
    """Keeps records."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    @property
    def lines(self) -> list[str]:
        return [record.getMessage() for record in self.records]

    @property
    def values(self) -> list[dict[str, Any]]:
        return [record.__dict__["locus"] for record in self.records]

    def of(self, event: str) -> list[dict[str, Any]]:
        return [values for values in self.values if values["event"] == event]


@contextmanager
def kept(name: str = "locus.run") -> Iterator[Kept]:
    logger, handler = logging.getLogger(name), Kept()
    before = logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield handler
    finally:
        logger.removeHandler(handler)
        logger.propagate = before


@tool(effect="pure")
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(effect="pure")
async def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


def agent(model: ScriptedModel, **options: Any) -> Agent[Any, Any]:
    tools = options.pop("tools", [add, fail])
    return Agent(model, tools=tools, name="calc", **options)


async def run(made: Agent[Any, Any], prompt: str = "What is 1 + 2?", **how: Any) -> tuple[Any, list[Event]]:
    one = made.run(prompt, **how)
    events = [event async for event in one]
    return one.result, events
