"""What users write, as type checkers see it: `mypy --strict` must find nothing to say, and infer what stands here.

A line that a checker must refuse carries an ignore with the code of the error: strict mode reports an ignore that is
not needed. The program also runs, so that what it says of types is true of values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, assert_type

import msgspec
import pydantic
from attrs import frozen

import locus_plugin_timetravel as timetravel
from locus import (
    Agent,
    AgentResult,
    AgentState,
    Budget,
    Cancel,
    Directive,
    Event,
    Hook,
    Message,
    Model,
    ModelRequest,
    ModelResponse,
    Reject,
    Role,
    Run,
    ToolContext,
    ToolStartEvent,
    tool,
)
from locus.core.events import IterationEvent
from locus.core.messages import MediaBlock, ToolCall
from locus.core.termination import (
    Bounds,
    CustomCondition,
    MaxIterations,
    TerminationCondition,
    TokenLimit,
    ToolCalled,
)
from locus.journal import MemoryStore
from locus.models import OnChunk
from locus.plugin import Plugin, RunContext, StashKey, hookimpl
from locus.tools import Tool
from locus_kit.snapshots import SnapshotAdapter
from locus_testkit import ScriptedModel, call

# --- tools ---------------------------------------------------------------------------------------


@frozen
class Database:
    """What the tools of this program need."""

    rows: Mapping[str, int]


@tool
def stock(item: str, ctx: ToolContext[Database]) -> int:
    """Say how many pieces of an item are in stock."""
    assert_type(ctx.deps, Database)
    return ctx.deps.rows.get(item, 0)


@tool(idempotent=True, effect="keyed", timeout=10)
async def order(item: str, pieces: int = 1) -> str:
    """Order pieces of an item."""
    return f"{pieces} {item}"


@tool
def plain(text: str) -> str:
    """Give a text back."""
    return text


class Shelf:
    """An object whose methods are tools."""

    @tool
    def tidy(self) -> str:
        """Tidy up."""
        return "tidy"


def tools_keep_their_signatures() -> None:
    assert_type(plain("a"), str)
    kept: Tool[[str], str] = plain
    assert_type(kept.name, str)
    plain(1)  # type: ignore[arg-type]
    tool(timeout="soon")  # type: ignore[call-overload]


# --- answers -------------------------------------------------------------------------------------


@dataclass
class Report:
    """What the agent answers."""

    item: str
    pieces: int


class Row(TypedDict):
    """Another way to say it."""

    item: str


class Parcel(msgspec.Struct):
    """A third way."""

    item: str


class Bill(pydantic.BaseModel):
    """A fourth, for who has pydantic."""

    item: str


@frozen
class Label:
    """And a fifth."""

    item: str


def every_kind_of_answer_is_known(model: Model) -> None:
    assert_type(Agent(model, output_schema=Parcel).run("?"), Run[Parcel])
    assert_type(Agent(model, output_schema=Bill).run("?"), Run[Bill])
    assert_type(Agent(model, output_schema=Label).run("?"), Run[Label])
    assert_type(Agent(model).run_sync("?", output_schema=Parcel).parsed, Parcel | None)
    assert_type(Agent(model).run_sync("?", output_schema=Bill).parsed, Bill | None)
    assert_type(Agent(model).run_sync("?", output_schema=Label).parsed, Label | None)


# --- hooks ---------------------------------------------------------------------------------------

SEEN: StashKey[list[str]] = StashKey("seen")


class Watch(Hook):
    """Methods after events, with and without the run, sync and async."""

    guard = True

    async def on_iteration(self, ev: IterationEvent) -> Directive | None:
        return Cancel("enough") if ev.token_total > 100_000 else None

    def on_tool_start(self, event: ToolStartEvent, run: RunContext) -> None:
        run.stash.setdefault(SEEN, []).append(event.tool_name)
        assert_type(run.stash[SEEN], list[str])

    def on_tool_call(self, call: ToolCall) -> Reject | None:
        return Reject("not that") if call.name == "order" and call.arguments.get("pieces") == 0 else None


class Marked:
    """An object with marked methods."""

    @hookimpl
    def locus_on_event(self, event: Event) -> None:
        assert_type(event.run_id, str)


# --- a model, a store, a plugin ------------------------------------------------------------------


class Echo:
    """Has what `Model` asks for, and derives from nothing."""

    name = "acme:echo"

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        """Give the last message back."""
        return ModelResponse(message=Message(Role.ASSISTANT, request.messages[-1].text))


class NoModel:
    """Lacks the method."""

    name = "acme:nothing"


def saved() -> SnapshotAdapter:
    kept: dict[str, dict[str, Any]] = {}
    return SnapshotAdapter(kept.__setitem__, kept.get)


manifest = Plugin(name="acme", api=(1, 0), summary="Says it again.", provides={"model": "acme:make"}, after=["audit"])

# --- conditions ----------------------------------------------------------------------------------


def conditions_combine() -> TerminationCondition:
    combined = (ToolCalled("order") & CustomCondition(lambda state: state.iteration > 1)) | ~~MaxIterations(8)
    assert_type(combined, TerminationCondition)
    assert_type(combined.bounds(), Bounds)
    return combined | TokenLimit(1000)


# --- agents --------------------------------------------------------------------------------------


def agents_know_their_types() -> None:
    model: Model = Echo()
    simple = Agent(model)
    typed: Agent[Database, Report] = Agent(
        model,
        tools=[stock, order, Shelf(), len],
        output_schema=Report,
        termination=conditions_combine(),
        hooks=[Watch(), Marked()],
        checkpointer=saved(),
    )
    inferred = Agent(model, output_schema=Report)
    rows = Agent(model, output_schema=Row)

    assert_type(typed.run("How many?", deps=Database({})), Run[Report])
    assert_type(typed.run("How many?", output_schema=Row), Run[Row])
    assert_type(typed.run_sync("How many?").usage.total_tokens, int)
    assert_type(inferred.run("?"), Run[Report])
    assert_type(inferred.run_sync("?").parsed, Report | None)
    assert_type(inferred.run(["Which of these?", MediaBlock("image", url="https://example.org/1.png")]), Run[Report])
    assert_type(inferred.run(["One.", "Two."]), Run[Report])
    assert_type(rows.run("?"), Run[Row])
    typed.run("How many?", deps="a database")  # type: ignore[call-overload]
    simple.run("Go.", thread="t")  # type: ignore[call-overload]
    Agent(NoModel())  # type: ignore[arg-type]
    Agent(model, tool_execution="parallel")  # type: ignore[arg-type]
    Agent(model, audit=True, audit_level=3)


async def runs_know_what_they_give(agent: Agent[Database, Report]) -> Report | None:
    result = await agent.run("How many lamps?", deps=Database({"lamp": 4}))
    assert_type(result, AgentResult[Report])
    assert_type(result.state, AgentState)
    assert_type(result.parsed, Report | None)

    async for event in agent.run("How many chairs?", deps=Database({})):
        assert_type(event, Event)

    async with agent.run("And now?", deps=Database({})) as run:
        async for event in run:
            assert_type(event.type, str)
    assert_type(run.result, AgentResult[Report])

    again = await agent.resume(result, "yes", deps=Database({}))
    assert_type(again.parsed, Report | None)
    return result.parsed


async def threads_are_looked_back_on(agent: Agent[Database, Report]) -> None:
    past = await timetravel.history(agent, "t")
    assert_type(past[0].usage.total_tokens, int)
    assert_type(past[0].state, AgentState)
    assert_type([moment.node for moment in past], list[str])
    fork = await timetravel.fork(agent, "t", at=past[-1].n)
    assert_type(await timetravel.state_at(agent, fork, 1), AgentState)
    replay = await timetravel.replay(agent, fork, deps=Database({}))
    if not replay and replay.difference is not None:
        assert_type(replay.difference.step, str)
    assert_type((await timetravel.what_if(agent, "t", termination=conditions_combine())).saved.cost, float | None)
    assert_type((await timetravel.diff_threads(agent, "t", fork)).same, bool)
    assert_type(timetravel.diff(past, await timetravel.history(agent, fork)).same, bool)


@tool
async def ask(question: str, ctx: ToolContext[None]) -> str:
    """Ask another agent."""
    expert = Agent(Echo())
    answer: AgentResult[Any] = await ctx.run_child(expert, question, budget=Budget(tokens=100))
    return answer.text


# --- and it runs ---------------------------------------------------------------------------------


async def main() -> Report | None:
    """One agent with most of the above."""
    agent: Agent[Database, Report] = Agent(
        ScriptedModel(call("stock", item="lamp"), '{"item": "lamp", "pieces": 4}'),
        tools=[stock, order],
        output_schema=Report,
        termination=conditions_combine(),
        hooks=[Watch(), Marked()],
        checkpointer=MemoryStore(),
    )
    result = await agent.run("How many lamps?", deps=Database({"lamp": 4}))
    return result.parsed
