"""What the tests of hooks share: hooks that go wrong in every way a hook can, and a process that dies."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from locus import AgentResult, Hook, Interrupt, Message, ModelRequest, Role
from locus.plugin import hookimpl
from locus.plugins.report import HookFailure, PluginReport, RunReport

__all__ = [
    "ASYNC_WAYS",
    "WAYS",
    "Crash",
    "Wrong",
    "asked",
    "enough",
    "failures",
    "go_wrong",
    "plugins",
    "question",
    "wrong",
]

#: How a hook can go wrong. All but the last group are written both as ``def`` and as ``async def``.
WAYS = (
    "raises",
    "raises sync",
    "asks",
    "asks sync",
    "nonsense",
    "nonsense sync",
    "cancels itself",
    "hangs",
    "hangs in an awaitable",
)

#: The same for hooks that must be async, such as wrappers.
ASYNC_WAYS = ("raises", "asks", "nonsense", "cancels itself", "hangs")


def enough(how: str) -> float:
    """The ``hook_timeout`` of a hook that goes wrong in one case: a busy machine must not make the others late."""
    return 0.3 if how == "hangs" else 30.0


class Crash(GeneratorExit):
    """The process dies here: no clean-up of the run may count on it."""


class Wrong(Hook):
    """A hook all of whose methods go wrong, and which counts how often they were called."""

    name = "bad"
    hook_timeout = 0.01
    calls = 0


async def go_wrong(how: str, nonsense: Any) -> Any:
    """Do what a broken async hook does."""
    if how == "raises":
        raise LookupError("my mistake")
    if how == "asks":
        raise Interrupt("May I?")
    if how == "cancels itself":
        # What awaiting a task does that somebody else cancelled; trio has no such thing.
        raise asyncio.CancelledError if _on_asyncio() else LookupError("my mistake")
    if how == "hangs":
        await anyio.sleep_forever()
    return nonsense


def _on_asyncio() -> bool:
    return anyio.get_cancelled_exc_class() is asyncio.CancelledError


def wrong(how: str, *hooks: str, nonsense: Any = "nonsense", guard: bool = False, name: str = "bad") -> Wrong:
    """A hook object whose implementations of ``hooks`` go wrong.

    Args:
        how: one of `WAYS`.
        hooks: ``locus_*`` names.
        nonsense: what is no answer to these hooks.
        guard: fails closed.
        name: as in reports.
    """

    async def later(self: Wrong) -> Any:
        self.calls += 1
        return await go_wrong(how, nonsense)

    def now(self: Wrong) -> Any:
        self.calls += 1
        if how == "raises sync":
            raise LookupError("my mistake")
        if how == "asks sync":
            raise Interrupt("May I?")
        return go_wrong("hangs", None) if how == "hangs in an awaitable" else nonsense

    method: Callable[..., Any] = now if how.endswith("sync") or how == "hangs in an awaitable" else later
    made: Wrong = type("Wrong", (Wrong,), {hook: _copy(method) for hook in hooks})()
    made.guard, made.name = guard, name
    return made


def _copy(method: Callable[..., Any]) -> Callable[..., Any]:
    if asyncio.iscoroutinefunction(method):

        async def later(self: Wrong) -> Any:
            return await method(self)

        return hookimpl(later)

    def now(self: Wrong) -> Any:
        return method(self)

    return hookimpl(now)


def question(text: str, *, purpose: str = "judge") -> ModelRequest:
    """A request of a plugin."""
    return ModelRequest(messages=(Message(Role.USER, text),), purpose=purpose)


def asked(text: str, answer: str) -> Callable[[ModelRequest], str]:
    """A turn of a script that insists on what it is asked."""

    def turn(request: ModelRequest) -> str:
        assert request.messages[-1].text == text, request.messages[-1].text
        return answer

    return turn


def plugins(result: AgentResult[Any]) -> RunReport:
    """What became of the plugins of a run."""
    report: RunReport = result.reports["plugins"]
    return report


def failures(result: AgentResult[Any], name: str = "bad") -> tuple[HookFailure, ...]:
    """What failed of one plugin or hook."""
    report: PluginReport | None = plugins(result).of(name)
    assert report is not None, f"the run knows no {name!r}"
    return report.failures


Turn = Callable[..., Awaitable[Any]]
