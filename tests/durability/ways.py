"""Ways back to a thread whose program has changed meanwhile, drawn as plans: what was begun is never begun again.

A run is cut off, by a death or by its caller's time, inside of a turn of tools. Then the thread is visited: resumed,
resumed and cancelled at once, given a new turn, or forked; by a program whose tools were removed, renamed in a
parameter, given another effect or an optional parameter, or that lacks the hook which asked for another try. Each visit
may be cut off as well. ``python -m tests.durability.ways '{"folder": ..., "seed": 1, "count": 100}'`` plays plans with
real processes and SIGKILL, and prints a line of JSON for each.
"""

from __future__ import annotations

import gc
import json
import os
import random
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import anyio
import anyio.lowlevel
from attrs import asdict, frozen
from tests.durability.explore import forked
from tests.durability.log import Log
from tests.durability.pointed import Pointed
from tests.durability.points import How, Points
from tests.durability.subjects import SUBJECTS, Subject
from tests.durability.unsynced import Unsynced, connect_through
from tests.loop.kit import assert_valid_history

from locus import Agent, Hook, Retry, RetryableToolError, RunStartEvent, ToolCompleteEvent, ToolContext, tool
from locus.core.errors import InterruptMismatch, NothingToResume, StepMismatch
from locus.core.journal import EXECUTE, Entry, Intent, Outcome, Step, StepId
from locus.core.messages import Message, Role, TextBlock, ToolCall, Usage
from locus.journal.host import JournalHost
from locus.journal.store import JournalStore
from locus.models.protocol import ModelRequest, ModelResponse, OnChunk
from locus_plugin_timetravel import fork
from locus_testkit.crashes import is_crash

__all__ = ["Plan", "Played", "draw_plan", "play_plan"]

T = TypeVar("T")

UNKNOWN = "outcome unknown"

Effect = Literal["once", "keyed", "pure"]
Way = Literal["resume", "cancelled resume", "new turn", "fork"]
Tools = Literal["same", "renamed", "removed", "optional"]

WAYS: tuple[Way, ...] = ("resume", "cancelled resume", "new turn", "fork")
EFFECTS: tuple[Effect, ...] = ("once", "keyed", "pure")
TOOLS: tuple[Tools, ...] = ("same", "renamed", "removed", "optional")
CALLS = ("pay", "retry", "ask", "look")


@frozen
class Visit:
    """One process's part.

    Args:
        way: how it comes to the thread.
        at: at which of its points it is cut off; 0 = it goes on to its end.
        cut: ``"die"``, or ``"cancel"``: its caller's time ends.
        tools: what became of the tools.
        effect: what they declare now, ``""`` = what they did first.
        has_hook: whether the hook is there that asks for another try.
        on_fork: whether it visits the newest fork, where there is one.
    """

    way: Way = "resume"
    at: int = 0
    cut: Literal["die", "cancel"] = "die"
    tools: Tools = "same"
    effect: Effect | Literal[""] = ""
    has_hook: bool = True
    on_fork: bool = False


@frozen
class Plan:
    """A turn of calls, what ``pay`` and ``retry`` declare at first, and the visits; the first one begins the run."""

    calls: tuple[str, ...]
    effect: Effect
    visits: tuple[Visit, ...]


def draw_plan(choose: Callable[[Sequence[Any]], Any]) -> Plan:
    """A plan, from choices that somebody else makes: a seed, or hypothesis."""
    calls = tuple(choose(CALLS) for _ in range(choose((1, 1, 2, 3))))
    first = Visit(at=choose(range(1, 40)), cut=choose(("die", "cancel")))
    more = [
        Visit(
            choose(WAYS),
            choose((0, 0, *range(1, 30))),
            choose(("die", "cancel")),
            choose(TOOLS),
            choose(("", *EFFECTS)),
            choose((True, False)),
            choose((True, False)),
        )
        for _ in range(choose((1, 2, 3)))
    ]
    return Plan(calls, choose(("once", "once", "keyed", "pure")), (first, *more))


# -- the program ---------------------------------------------------------------------------------------


class Shop(Hook):
    """What is outside of a visit, its model and its hook."""

    name = "shop"
    price = None

    def __init__(self, plan: Plan, visit: Visit, thread: str, log: Log, points: Points) -> None:
        self.plan, self.visit, self.thread, self.log, self.points = plan, visit, thread, log, points
        self.agent = Agent[Any, Any](self, tools=self.tools(), hooks=[self])

    def over(self, store: JournalStore) -> Agent[Any, Any]:
        """The program on a store."""
        self.agent = Agent[Any, Any](self, tools=self.tools(), hooks=[self], checkpointer=store)
        return self.agent

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        """Ask for the calls in the first turn, and answer everything else with a text."""
        self.points.reach("model: before")
        mark = f"{os.getpid()}.{len(self.log.lines('model'))}"
        self.log.add("model", mark=mark)
        await anyio.lowlevel.checkpoint()
        first = sum(m.role is not Role.SYSTEM for m in request.messages) == 1
        calls = [ToolCall("call", name, {"id": f"{mark}-{i}"}) for i, name in enumerate(self.plan.calls)]
        return ModelResponse(
            message=Message(Role.ASSISTANT, (TextBlock(mark), *calls) if first else (TextBlock(f"{mark}: done"),)),
            usage=Usage(prompt_tokens=1, completion_tokens=1),
            stop_reason="tool_calls" if first else "stop",
            model="shop",
        )

    def on_run_start(self, event: RunStartEvent) -> None:
        if self.visit.way == "cancelled resume" and event.resumed:
            self.agent.cancel("not now")

    async def on_tool_complete(self, event: ToolCompleteEvent) -> Retry | None:
        self.points.reach("hook: tool complete")
        return Retry("once more") if self.visit.has_hook and "busy" in (event.error or "") else None

    async def act(self, name: str, call: str, key: str) -> str:
        """Have an effect, with a point before and one after."""
        self.points.reach(f"{name}: before the effect")
        await anyio.lowlevel.checkpoint()
        self.points.alive()
        self.log.add("effect", thread=self.thread, call=call, key=key)
        self.points.reach(f"{name}: after the effect")
        await anyio.lowlevel.checkpoint()
        return f"did {call}"

    def tools(self) -> list[Any]:
        """The tools as this version of the program has them."""
        effect = self.visit.effect or self.plan.effect
        bodies = {"pay": (self.pay, effect), "retry": (self.retry, effect), "ask": (self.ask, "keyed")}
        look = self._tool("look", self.pay, "pure")
        if self.visit.tools == "removed":
            return [look]
        return [look, *(self._tool(name, body, declared) for name, (body, declared) in bodies.items())]

    def _tool(self, name: str, body: Any, effect: Any) -> Any:
        if self.visit.tools == "renamed":

            async def renamed(number: str, ctx: ToolContext[Any]) -> str:
                """Act."""
                return str(await body(name, number, ctx))

            return tool(renamed, name=name, effect=effect)
        if self.visit.tools == "optional":

            async def optional(id: str, ctx: ToolContext[Any], note: str = "") -> str:  # noqa: A002
                """Act."""
                return str(await body(name, id, ctx))

            return tool(optional, name=name, effect=effect)

        async def same(id: str, ctx: ToolContext[Any]) -> str:  # noqa: A002
            """Act."""
            return str(await body(name, id, ctx))

        return tool(same, name=name, effect=effect)

    async def pay(self, name: str, call: str, ctx: ToolContext[Any]) -> str:
        return await self.act(name, call, ctx.idempotency_key)

    async def retry(self, name: str, call: str, ctx: ToolContext[Any]) -> str:
        """The first time nothing happens."""
        if not any(line["call"] == call and line["thread"] == self.thread for line in self.log.lines("tried")):
            self.log.add("tried", call=call, thread=self.thread)
            raise RetryableToolError("busy")
        return await self.act(name, call, ctx.idempotency_key)

    async def ask(self, name: str, call: str, ctx: ToolContext[Any]) -> str:
        """An effect under a key, and a question."""
        did = await self.act(name, call, ctx.idempotency_key)
        return f"{did}, {ctx.interrupt('Sure?')}"


# -- a visit -------------------------------------------------------------------------------------------


def _steps(host: JournalHost | None) -> dict[str, Step | None]:
    """What is on record of each open call, by the call's id."""
    if host is None:
        return {}
    step_ids = {
        str(c.arguments["id"]): StepId(host.state.iteration, EXECUTE, i) for i, c in enumerate(host.state.unanswered)
    }
    return {call: host.find_last_attempt(step_id) for call, step_id in step_ids.items()}


def _name_record(step: Step) -> str:
    """What is on record of a call: the policy of its intent, or what came of it."""
    if isinstance(step, Intent):
        return step.policy
    return "busy" if "busy" in str(getattr(getattr(step, "value", None), "content", "")) else "done"


async def _visit(plan: Plan, visit: Visit, store: JournalStore, thread: str, log: Log, points: Points) -> str:
    """Play one visit; gives what became of it."""
    if visit.way == "fork" and await store.peek(thread) is not None:
        into = f"{thread}+{len(log.lines('forked'))}"
        in_flight = [c for c, s in _steps(await JournalHost.peek(store, thread)).items() if isinstance(s, Intent)]
        await fork(store, thread, into=into)
        log.add("forked", into=into, of=thread, in_flight=in_flight)
        thread = into
    host = await JournalHost.peek(store, thread)
    on_record = {call: _name_record(step) for call, step in _steps(host).items() if step}
    log.add("visit", thread=thread, on_record=on_record)
    shop = Shop(plan, visit, thread, log, points)
    agent = shop.over(Pointed(store, points, log))
    with anyio.CancelScope() as scope:
        points._stall = scope.cancel
        try:
            if host is None:
                await agent.run("go", thread_id=thread)
            elif host.open_node is None or visit.way == "new turn":
                await agent.run("And now?", thread_id=thread)
            else:
                answers = dict.fromkeys(host.open_questions, "yes")
                await agent.resume(thread, answers or None)
        except (NothingToResume, InterruptMismatch):
            return "ended"
        except StepMismatch as e:
            log.add("mismatch", thread=thread, error=str(e))
            return "mismatch"
        except BaseException as e:
            if is_crash(e):
                return "died"
            raise
    return "cancelled" if scope.cancelled_caught else "ended"


# -- the oracle ----------------------------------------------------------------------------------------


async def _judge(store: JournalStore, log: Log) -> list[str]:
    """What is wrong: an effect that was begun and is begun again, or a model that reads of it what nobody knows."""
    wrong = [f"{line['thread']}: {line['error']}" for line in log.lines("mismatch")]
    visits: dict[str, dict[str, str]] = {}
    keys: dict[tuple[str, str], str] = {}
    counted: set[tuple[str, str]] = set()
    inherited = {line["into"]: set(line["in_flight"]) for line in log.lines("forked")}
    for line in log.lines():
        thread, call = line.get("thread", ""), line.get("call", "")
        if line["kind"] == "visit":
            visits[thread] = line["on_record"]
            counted = set()
        elif line["kind"] == "effect":
            known = visits[thread].get(call)
            if known in ("once", "done"):
                wrong.append(f"{thread}: {call} happened although its record says {known!r}")
            if call in inherited.get(thread, ()):
                wrong.append(f"{thread}: {call} happened although it was in flight when the thread was forked")
            if known == "keyed" and keys.get((thread, call), line["key"]) != line["key"]:
                wrong.append(f"{thread}: {call} happened under several keys")
            if (thread, call) in counted:
                wrong.append(f"{thread}: {call} happened twice in one visit")
            counted.add((thread, call))
            keys[thread, call] = line["key"]
    for thread in dict.fromkeys(line["thread"] for line in log.lines("visit")):
        wrong += await _read_results(store, thread)
    return wrong


async def _read_results(store: JournalStore, thread: str) -> list[str]:
    host = await JournalHost.peek(store, thread)
    if host is None:
        return []
    assert_valid_history(host.state.messages)
    open_intents = _open_intents(await store.read(thread))
    wrong: list[str] = []
    calls = [call for message in host.state.messages for call in message.tool_calls]
    results = [str(result.content) for message in host.state.messages for result in message.tool_results]
    for ordinal, (call, result) in enumerate(zip(calls, results, strict=True)):
        if ordinal in open_intents and UNKNOWN not in result:
            wrong.append(f"{thread}: nobody knows what came of {call.arguments['id']}, and the model reads {result!r}")
    return wrong


def _open_intents(entries: Sequence[Entry]) -> set[int]:
    """The calls whose last attempt has an intent and no outcome. One run of a thread has calls, in its first turn."""
    newest: dict[int, Step] = {}
    for entry in entries:
        body = entry.body
        if isinstance(body, Intent | Outcome) and body.step_id.node == EXECUTE and body.step_id.parent is None:
            newest[body.step_id.ordinal] = body
    return {ordinal for ordinal, step in newest.items() if isinstance(step, Intent)}


# -- a plan --------------------------------------------------------------------------------------------


@frozen
class Played:
    """What came of a plan: how often a visit died, was cancelled, forked, and what is wrong."""

    cuts: tuple[str, ...]
    wrong: tuple[str, ...]


def _thread(log: Log, visit: Visit) -> str:
    forks = log.lines("forked")
    return str(forks[-1]["into"]) if forks and visit.on_fork else "t"


#: Nobody is cut off any more, and every thread comes to its end.
_LAST = Visit()


async def play_plan(plan: Plan, subject: Subject) -> Played:
    """Play the visits in this process, where dying is an exception."""
    log, cuts = Log(), list[str]()

    async def visit(each: Visit, thread: str) -> str:
        points = Points(each.at, "die" if each.cut == "die" else "stall")
        became = await _visit(plan, each, subject.open(points), thread, log, points)
        if became == "died":
            await subject.settle()
            subject.bury()
        return became

    for each in plan.visits:
        cuts.append(await visit(each, _thread(log, each)))
    for thread in ["t", *(str(line["into"]) for line in log.lines("forked"))]:
        for _ in range(4):
            host = await JournalHost.peek(subject.open(Points()), thread)
            if host is not None and host.open_node is None:
                break
            await visit(_LAST, thread)
    wrong = await _judge(subject.open(Points()), log)
    await subject.close()
    return Played(tuple(cuts), tuple(wrong))


def _killed_plan(plan: Plan, folder: Path, kind: str) -> Played:
    """Play the visits in processes of their own, where dying is SIGKILL."""
    subject = SUBJECTS[kind](folder)
    subject.impatient()
    log_path, cuts = folder / "log", list[str]()

    def visit(each: Visit, thread: str) -> str:
        how: How = "kill" if each.cut == "die" else "stall"

        async def run() -> str:
            points = Points(each.at, how)
            became = await _visit(plan, each, subject.open(points), thread, Log(log_path), points)
            await subject.close()
            return became

        return str(forked(lambda: anyio.run(run), folder / "visit") or "killed")

    async def look() -> Any:
        ends = {}
        for thread in ["t", *(str(line["into"]) for line in Log(log_path).lines("forked"))]:
            host = await JournalHost.peek(subject.open(Points()), thread)
            ends[thread] = host is not None and host.open_node is None
        wrong = await _judge(subject.open(Points()), Log(log_path)) if all(ends.values()) else ["it does not end"]
        await subject.close()
        return ends, wrong

    for each in plan.visits:
        cuts.append(visit(each, _thread(Log(log_path), each)))
    for _ in range(6):
        ends, wrong = forked(lambda: anyio.run(look), folder / "verdict")
        if all(ends.values()):
            break
        for thread in [each for each, ended in ends.items() if not ended]:
            visit(_LAST, thread)
    return Played(tuple(cuts), tuple(wrong))


def main(order: dict[str, Any]) -> None:
    """Play plans drawn from a seed, and print what was found."""
    connect_through(Unsynced)
    folder, draw = Path(order["folder"]), random.Random(order["seed"])
    gc.collect()
    gc.freeze()
    for n in range(order["count"]):
        plan, place = draw_plan(draw.choice), folder / str(n)
        place.mkdir(parents=True)
        played = _killed_plan(plan, place, order.get("subject", "sqlite"))
        line = {"kills": played.cuts.count("killed"), "cancels": played.cuts.count("cancelled"), "wrong": played.wrong}
        sys.stdout.write(json.dumps(line | ({"plan": asdict(plan)} if played.wrong else {})) + "\n")
        if not played.wrong:
            shutil.rmtree(place)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
