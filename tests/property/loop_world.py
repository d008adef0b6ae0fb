"""Tools that do everything a tool can do wrong, and scripts of a model that does everything a model can do wrong."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import anyio.lowlevel
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from locus import RetryableToolError, tool
from locus.core.messages import MediaBlock, TextBlock, ThinkingBlock, ToolCall
from locus.tools.definition import Tool
from locus_testkit import Turn, call, malformed_call
from locus_testkit import strategies as values

__all__ = ["BEHAVIOURS", "World", "awkward_scripts", "calls", "polite_scripts"]


class Odd:
    """Has no data form, and its repr fails."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class Panic(BaseException):
    """What an extension module raises when it breaks: no `Exception`."""


class Shy(Exception):
    """Its text cannot be read."""

    def __str__(self) -> str:
        raise RuntimeError("no comment")


def _on_asyncio() -> bool:
    trio = sys.modules.get("trio")
    return trio is None or not trio.lowlevel.in_trio_task()


def _behave(how: str, n: int) -> Any:
    match how:
        case "none":
            return None
        case "huge":
            return "x" * 200_000
        case "odd":
            return {"odd": Odd(), "n": n}
        case "cycle":
            cycle: list[Any] = [n]
            cycle.append(cycle)
            return cycle
        case "surrogate":
            return "half \ud800"
        case "picture":
            return [f"picture {n}", MediaBlock("image", "image/png", data=b"png")]
        case "raise":
            raise ValueError(f"broken {n}")
        case "shy":
            raise Shy
        case "panic":
            raise Panic(n)
        case "retryable":
            raise RetryableToolError("nothing happened")
        case "group":
            raise ExceptionGroup("several", [ValueError("a"), KeyError("b")])
        case "stop":
            raise StopIteration(n)
        case "cancelled" if _on_asyncio():
            raise asyncio.CancelledError
        case _:
            return f"{how} {n}"


BEHAVIOURS = (
    "fine",
    "none",
    "huge",
    "odd",
    "cycle",
    "surrogate",
    "picture",
    "raise",
    "shy",
    "panic",
    "retryable",
    "group",
    "stop",
    "cancelled",
)


class World:
    """The tools of one run, and how often each body was entered for which arguments."""

    def __init__(self) -> None:
        self.entered: Counter[tuple[Any, ...]] = Counter()

    def tools(self) -> list[Tool[..., Any]]:
        @tool
        async def act(how: str = "fine", n: int = 0) -> Any:
            """Do something."""
            self.entered["act", how, n] += 1
            await anyio.lowlevel.checkpoint()
            return _behave(how, n)

        @tool
        def act_in_thread(how: str = "fine", n: int = 0) -> Any:
            """Do something in a worker thread."""
            self.entered["act_in_thread", how, n] += 1
            return _behave("raise" if how == "cancelled" else how, n)

        @tool(idempotent=True)
        async def once(how: str = "fine", n: int = 0) -> Any:
            """Do something that must not be done twice."""
            self.entered["once", how, n] += 1
            await anyio.lowlevel.checkpoint()
            return _behave(how, n)

        @tool(effect="pure")
        async def look(n: int = 0) -> str:
            """Look at something."""
            self.entered["look", n] += 1
            return f"saw {n}"

        return [act, act_in_thread, once, look]


NAMES = ("act", "once", "look", "act_in_thread")


def calls(*, names: Sequence[str] = NAMES, how: Sequence[str] = BEHAVIOURS) -> SearchStrategy[ToolCall]:
    """Calls that the tools accept."""

    def made(name: str, how: str, n: int) -> ToolCall:
        return call(name, n=n) if name == "look" else call(name, how=how, n=n)

    return st.builds(made, st.sampled_from(names), st.sampled_from(how), st.integers(0, 2))


def _wrong() -> SearchStrategy[ToolCall]:
    return st.one_of(
        st.builds(call, st.sampled_from(["nope", "Act", "functions.act", ""]), n=st.integers(0, 1)),
        st.builds(call, st.sampled_from(NAMES), n=st.sampled_from(["x", None, [], {}, 1.5, True, "2"])),
        st.builds(call, st.sampled_from(NAMES), other=st.integers(0, 1)),
        st.builds(malformed_call, st.sampled_from(NAMES), st.sampled_from(["", "[]", '{"n":', "null", "\ud800"])),
        st.builds(ToolCall, st.just(""), values.texts(surrogates=True), values.json_values().map(lambda v: {"n": v})),
    )


def _turns(call: SearchStrategy[ToolCall]) -> SearchStrategy[Turn]:
    thought = st.builds(ThinkingBlock, values.texts(), st.none() | values.texts())
    several = st.lists(call | st.builds(TextBlock, values.texts()) | thought, min_size=1, max_size=4)
    return call | several | call.map(lambda one: [one, one])


def _mostly(usual: SearchStrategy[Any], seldom: SearchStrategy[Any]) -> SearchStrategy[Any]:
    # Not `usual | seldom`: a choice of choices is one flat choice, in which what has many branches wins.
    return st.sampled_from([usual, usual, usual, seldom]).flatmap(lambda one: one)


def polite_scripts(*, max_turns: int = 3, **options: Any) -> SearchStrategy[list[Turn]]:
    """Scripts whose every call is accepted, and that end with an answer."""
    before = st.lists(_turns(calls(**options)), min_size=1, max_size=max_turns)
    return st.builds(lambda script, last: [*script, last], before, values.texts())


def awkward_scripts(*, max_turns: int = 4) -> SearchStrategy[list[Turn]]:
    """Scripts of a weak model and of a bad provider."""
    turns = _mostly(_turns(_mostly(calls(), _wrong())), values.turns(NAMES))
    return st.builds(
        lambda script, last: [*script, last], st.lists(turns, min_size=1, max_size=max_turns), values.texts()
    )
