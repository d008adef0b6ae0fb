"""One program and its outside world: tools of every policy, a model that never says the same twice, hooks that decide.

Whatever an answer of the model leads to carries that answer's mark (``~1.7~``): calls, effects, results. So two
branches of one run differ wherever they were mixed, although the run is the same once the marks are taken away.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

import anyio
import anyio.lowlevel
from tests.durability.log import Log
from tests.durability.points import Points

from locus import (
    Accept,
    Agent,
    Hook,
    ModelErrorEvent,
    Retry,
    RetryableToolError,
    Revise,
    TerminateEvent,
    ThinkEvent,
    ToolCompleteEvent,
    ToolContext,
    tool,
)
from locus.core.directives import Suspended
from locus.core.errors import ModelError
from locus.core.journal import Asked, StepId
from locus.core.messages import Message, Role, TextBlock, ThinkingBlock, ToolCall, Usage
from locus.journal.effects import Clock
from locus.journal.host import JournalHost
from locus.journal.store import JournalStore
from locus.models.protocol import ModelRequest, ModelResponse, OnChunk
from locus.plugin import hookimpl
from locus.tools.definition import Tool
from locus_kit.reflect import OnToolError

__all__ = ["EFFECTS", "MARK", "Answer", "Mode", "Script", "World", "unmarked"]

#: One answer of the model: a text, or the names of the tools that it calls.
Answer = str | Sequence[str]
Script = Sequence[Answer]
Mode = Literal["concurrent", "sequential"]

MARK = re.compile(r"~[0-9.]+~")

#: What each tool declares; ``book`` is ``once`` and runs once a run for the same arguments.
EFFECTS = {
    "charge": "once",
    "slow": "once",
    "book": "once",
    "flaky": "once",
    "ask": "once",
    "fail": "once",
    "stamp": "once",
    "send": "keyed",
    "sendto": "keyed",
    "delegate": "keyed",
    "look": "pure",
    "lose": "pure",
}


def unmarked(text: str) -> str:
    """The text without the marks of answers."""
    return MARK.sub("~", text)


class Marking:
    """A model that answers from a script; each answer has a mark of its own, also the second one to one question."""

    price = None

    def __init__(self, world: World, script: Script, above: str = "") -> None:
        self.world, self.script, self.above, self.name = world, script, above, f"scripted:marking {above}".strip()

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        """Answer, or fail the first time where the script says ``"!..."``."""
        world, turn = self.world, sum(m.role is Role.ASSISTANT for m in request.messages)
        review = request.messages[-1].text.startswith("review")
        asked = f"{self.name} review" if review else f"{self.name} {turn}"
        world.points.reach("model: before")
        again = any(line["asked"] == asked for line in world.log.lines("model"))
        mark = world.mark()
        world.log.add("model", asked=asked, mark=mark)
        world.points.reach("model: inside")
        script = ["it is well"] if review else self.script
        answer = script[0 if review else min(turn, len(script) - 1)]
        if isinstance(answer, str) and answer.startswith("!") and not again:
            raise ModelError(f"busy {answer}")
        await anyio.lowlevel.checkpoint()
        said = TextBlock(f"{asked} {mark}: {answer}")
        calls = () if isinstance(answer, str) else answer
        blocks = [
            ToolCall("call", name, {"id": self.above + _named(name, turn, i), "mark": mark})
            for i, name in enumerate(calls)
        ]
        thought = ThinkingBlock(f"thought {mark}", f"signed {mark}")
        return ModelResponse(
            message=Message(Role.ASSISTANT, (thought, said, *blocks)),
            usage=Usage(prompt_tokens=10, completion_tokens=5),
            stop_reason="tool_calls" if calls else "stop",
            model=self.name,
        )


def _named(name: str, turn: int, ordinal: int) -> str:
    # The calls of `book` in one answer are duplicates of each other.
    return f"{turn}.{name}" if name == "book" else f"{turn}.{ordinal}"


class Deciding(Hook):
    """Has things done again: an answer thrown away, a busy tool, a failed model; and sends the first answer back."""

    name = "deciding"

    def __init__(self, world: World, *, retries: bool, reviews: bool) -> None:
        self.world, self.retries, self.reviews = world, retries, reviews

    async def on_think(self, event: ThinkEvent, run: Any) -> Retry | None:
        self.world.points.reach("hook: think")
        if not self.retries or run.state.iteration != 1 or run.attempt:
            return None
        # Where the first attempt may have failed, a crash decides which one is the first to be heard of.
        return None if "!" in event.text else Retry("once more")

    def on_model_error(self, event: ModelErrorEvent) -> Retry | None:
        return Retry() if "busy" in event.error else None

    async def on_tool_complete(self, event: ToolCompleteEvent) -> Retry | None:
        self.world.points.reach("hook: tool complete")
        self.world.log.add("told", call=str(event.arguments.get("id")), replayed=event.replayed)
        return Retry() if "busy" in (event.error or "") else None

    async def on_terminate(self, event: TerminateEvent) -> None:
        self.world.points.reach("hook: terminate")
        self.world.log.add("end", thread=event.thread_id, reason=event.reason, replayed=event.replayed)

    @hookimpl
    async def locus_review_answer(self, answer: Message, state: Any, run: Any) -> Any:
        if not self.reviews or state.revisions:
            return Accept()
        request = ModelRequest(messages=(Message(Role.USER, f"review {answer.text}"),))
        said = await run.call_model(request, purpose="review")
        self.world.points.reach("hook: review")
        return Revise(f"well, but once more: {said.message.text}")

    @hookimpl
    def locus_register_reflect_policies(self) -> Any:
        return [OnToolError()]

    @hookimpl
    async def locus_reflect(self, state: Any, run: Any) -> Any:
        async def think() -> str:
            self.world.note("reflect", f"{state.iteration}", "", "")
            self.world.points.reach("hook: reflect")
            return f"reflected {state.iteration}"

        reflected = await run.step("reflect", think, effect="pure")
        self.world.points.reach("hook: before it sleeps")
        await run.host.flush()
        await anyio.lowlevel.checkpoint()
        self.world.points.reach("hook: before it waits")
        said = await _answer(run.host, "gate", f"go on after {state.iteration}?")
        self.world.points.reach("hook: after it waited")
        return state.with_metadata("reflected", (reflected, said))


async def _answer(host: JournalHost, name: str, question: str) -> Any:
    """The answer that a person gave to a question of the node under way; asks it first."""
    step_id = StepId(host.state.iteration, "wait", name=name)
    given = host.answers(step_id)
    if given:
        return given[0][1]
    await host.ask(Asked(run_id=host.run_id, interrupt_id=name, step_id=step_id, question=question))
    raise Suspended


class World:
    """Everything around one segment of a run: build one a process, on the log that all of them share.

    Args:
        log: where effects are written down.
        points: where the segment may end.
    """

    def __init__(self, log: Log, points: Points | None = None) -> None:
        self.log, self.points = log, points if points is not None else Points()

    def mark(self) -> str:
        """A mark that nothing else has."""
        return f"~{os.getpid()}.{len(self.log.lines('model')) + 1}~"

    def note(self, tool: str, call: str, mark: str, key: str, kind: str = "effect") -> None:
        """Write down that something happens; the dead do nothing."""
        self.points.alive()
        self.log.add(kind, tool=tool, call=call, mark=mark, key=key)

    def agent(
        self,
        script: Script,
        store: JournalStore | None,
        mode: Mode,
        *,
        retries: bool = True,
        reviews: bool = True,
        clock: Clock | None = None,
    ) -> Agent[Any, Any]:
        """The program: the same one in every process."""
        return Agent[Any, Any](
            Marking(self, script),
            tools=TOOLS,
            tool_execution=mode,
            max_iterations=len(script) + 3,
            hooks=[Deciding(self, retries=retries, reviews=reviews)],
            checkpointer=store,
            clock=clock,
        )

    async def body(self, name: str, call: str, mark: str, key: str) -> str:
        """What every tool does: enter, wait, have an effect, wait."""
        self.note(name, call, mark, key, "enter")
        self.points.reach(f"{EFFECTS[name]}: before the effect")
        await anyio.lowlevel.checkpoint()
        self.note(name, call, mark, key)
        self.points.reach(f"{EFFECTS[name]}: after the effect")
        return f"{name} {call} {mark}"


# -- one tool a kind of effect, and a few that behave badly ---------------------------------------------


Context: TypeAlias = ToolContext[World]


def _key(ctx: Context) -> str:
    return ctx.idempotency_key.removeprefix(ctx.run_id)


@tool
async def charge(id: str, mark: str, ctx: Context) -> str:  # noqa: A002
    """May happen once only."""
    return await ctx.deps.body("charge", id, mark, _key(ctx))


@tool
async def slow(id: str, mark: str, ctx: Context) -> str:  # noqa: A002
    """May happen once only, and takes its time."""
    for _ in range(3):
        await anyio.lowlevel.checkpoint()
    return await ctx.deps.body("slow", id, mark, _key(ctx))


@tool(idempotent=True)
async def book(id: str, mark: str, ctx: Context) -> str:  # noqa: A002
    """Once a run for the same arguments."""
    return await ctx.deps.body("book", id, mark, _key(ctx))


@tool(effect="keyed")
async def send(id: str, mark: str, ctx: Context) -> str:  # noqa: A002
    """May happen again under the same key."""
    return await ctx.deps.body("send", id, mark, _key(ctx))


@tool(effect="keyed", idempotent=True)
async def sendto(id: str, mark: str, ctx: Context) -> str:  # noqa: A002
    """May happen again under the same key, which is the arguments'."""
    return await ctx.deps.body("sendto", id, mark, _key(ctx))


@tool(effect="pure")
async def look(id: str, mark: str, ctx: Context) -> str:  # noqa: A002
    """May happen any number of times."""
    return await ctx.deps.body("look", id, mark, _key(ctx))


@tool(effect="pure")
async def lose(id: str, mark: str, ctx: Context) -> str:  # noqa: A002
    """Fails, always."""
    await ctx.deps.body("lose", id, mark, _key(ctx))
    raise LookupError(f"lost {id}")


@tool
async def fail(id: str, mark: str, ctx: Context) -> str:  # noqa: A002
    """Has its effect and fails."""
    await ctx.deps.body("fail", id, mark, _key(ctx))
    raise ValueError(f"failed {id}")


@tool
def stamp(id: str, mark: str, ctx: Context) -> str:  # noqa: A002
    """May happen once only, in a thread of its own."""
    ctx.deps.note("stamp", id, mark, _key(ctx), "enter")
    ctx.deps.points.here("thread: before the effect")
    ctx.deps.note("stamp", id, mark, _key(ctx))
    ctx.deps.points.here("thread: after the effect")
    return f"stamp {id} {mark}"


@tool
async def flaky(id: str, mark: str, ctx: Context) -> str:  # noqa: A002
    """The first time nothing happens."""
    entered = [line for line in ctx.deps.log.lines("enter") if line["call"] == id]
    if not entered:
        ctx.deps.note("flaky", id, mark, _key(ctx), "enter")
        ctx.deps.points.reach("once: nothing happened")
        raise RetryableToolError("busy")
    return await ctx.deps.body("flaky", id, mark, _key(ctx))


@tool
async def ask(id: str, mark: str, ctx: Context) -> str:  # noqa: A002
    """Asks a person, with an effect before and one after."""

    async def reserve() -> str:
        ctx.deps.note("reserve", id, mark, _key(ctx))
        ctx.deps.points.reach("step: after the effect")
        return f"reserved {id}"

    reserved = await ctx.step("reserve", reserve)
    said = ctx.interrupt(f"ship {id}?")
    return f"{reserved}, {said}: {await ctx.deps.body('ask', id, mark, _key(ctx))}"


@tool(effect="keyed")
async def delegate(id: str, mark: str, ctx: Context) -> str:  # noqa: A002
    """Has another agent do it."""
    script: Script = [["charge", "look"], "that is all"]
    child = Agent[Any, Any](Marking(ctx.deps, script, f"{id}/"), tools=TOOLS)
    done = await ctx.run_child(child, f"do {id} {mark}")
    return f"delegated {id}: {done.message}"


TOOLS: Final[list[Tool[..., Any]]] = [charge, slow, book, send, sendto, look, lose, fail, stamp, flaky, ask, delegate]
