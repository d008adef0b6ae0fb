"""Waits that pass by a clock that stands still, and agents that use them."""

from __future__ import annotations

from typing import Any

import anyio.lowlevel

from locus import Agent, AgentResult, Event
from locus.core.errors import ModelError
from locus_plugin_retry import ModelRetryHook
from locus_testkit import FakeClock, ScriptedModel

__all__ = ["Waits", "busy", "collected", "hook", "model"]


class Waits:
    """In place of sleeping: the clock goes on at once."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.pieces = list[float]()

    @property
    def total(self) -> float:
        return sum(self.pieces)

    async def __call__(self, seconds: float) -> None:
        await anyio.lowlevel.checkpoint()
        self.pieces.append(seconds)
        self.clock.advance(seconds)


def busy(status: int = 503, **more: Any) -> ModelError:
    return ModelError("busy", status=status, **more)


def hook(waits: Waits, **options: Any) -> ModelRetryHook:
    return ModelRetryHook(sleep=waits, **options)


def model(*turns: Any, name: str = "acme:big", **options: Any) -> ScriptedModel:
    return ScriptedModel(*turns, name=name, **options)


async def collected(
    agent: Agent[Any, Any], prompt: str = "Hi.", **options: Any
) -> tuple[AgentResult[Any], list[Event]]:
    run = agent.run(prompt, **options)
    events = [event async for event in run]
    return run.result, events
