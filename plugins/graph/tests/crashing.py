"""A graph of everything, in processes that are killed in every write; run as ``python -m`` with what `main` takes.

A killed process leaves two things: the file of the journal, and a ledger, a file to which each effect appends its name
and its key. What the run comes to in the end is compared with the same graph on a store in memory, undisturbed.
"""

from __future__ import annotations

import json
import operator
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from attrs import evolve

from locus import Agent, tool
from locus.core.journal import Transition
from locus.core.messages import Message, Role, ToolCall
from locus.journal import MemoryStore
from locus.models import ModelRequest, ModelResponse
from locus_plugin_graph import END, START, NodeContext, Send, StateGraph, superstep
from locus_plugin_sqlite import SqliteStore
from locus_testkit.kills import Killed, every_kill, let_die


class Altering(SqliteStore):
    """Keeps something else than what it was given, in any process."""

    async def append(self, claim: Any, bodies: Any, *more: Any) -> Any:
        return await super().append(claim, _altered(bodies), *more)

    def post(self, claim: Any, bodies: Any, *more: Any, **options: Any) -> Any:
        return super().post(claim, _altered(bodies), *more, **options)


def _altered(bodies: Any) -> tuple[Any, ...]:
    return tuple(evolve(each, why="") if isinstance(each, Transition) else each for each in bodies)


DyingStore, AlteringStore = let_die(SqliteStore), let_die(Altering)

#: Effects that must not happen twice without a person's word -> the node whose question the word answers, or "".
ONCE = {"plan": "plan", "side": "side", "pay": "check", "inner": "inner", "deep": "inner2", "send": "", "loop": "loop"}
TIMES = {"loop": 2}

#: How often a person answers one process; more than a run asks.
MOST_ANSWERS = 20


class Told:
    """A model that sends once and says so, in whatever process."""

    name = "told"
    price = None

    async def complete(self, request: ModelRequest, on_chunk: Any = None) -> ModelResponse:
        if any(message.role is Role.TOOL for message in request.messages):
            return ModelResponse(message=Message(Role.ASSISTANT, "sent"))
        return ModelResponse(message=Message(Role.ASSISTANT, ToolCall("c1", "send", {})))


def build(ledger: Path, store: Any, *, effect: str = "once") -> Any:
    def note(name: str, key: str = "") -> None:
        with ledger.open("a") as file:
            file.write(f"{name}|{key}\n")
            file.flush()

    def noting(name: str) -> Any:
        async def node(values: dict[str, Any]) -> dict[str, Any]:
            note(name)
            return {"log": [name]}

        return node

    def stepping(name: str, step: str) -> Any:
        async def node(values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
            async def happen() -> str:
                note(step)
                return step

            return {"log": [name, await ctx.step(step, happen)]}

        return node

    async def work(values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
        note("work", ctx.idempotency_key)
        await anyio.lowlevel.checkpoint()
        return {"log": [f"work{values['i']}"]}

    def side(values: dict[str, Any]) -> dict[str, Any]:
        note("side")
        return {"log": ["side"]}

    async def ask(values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
        return {"log": [f"ask={ctx.interrupt('go on?', options=['yes', 'no'])}"]}

    @tool
    async def send() -> str:
        """Send."""
        note("send")
        return "ok"

    add = {"log": operator.add}
    inner = StateGraph(reducers=add, effect=effect).add_node("inner", noting("inner"))
    inner.add_node("inner2", stepping("inner2", "deep"), effect="pure")
    inner.add_edge(START, "inner").add_edge("inner", "inner2").add_edge("inner2", END)
    graph = StateGraph(reducers=add, effect=effect)
    graph.add_node("plan", noting("plan")).add_node("work", work, effect="keyed").add_node("side", side)
    graph.add_node("check", stepping("check", "pay"), effect="pure").add_node("sub", inner.compile())
    graph.add_node("mail", Agent(Told(), tools=[send]), prompt=lambda values: "go", into="mail")
    graph.add_node("ask", ask).add_node("loop", noting("loop"))
    graph.add_edge(START, "plan").add_edge(START, "side").add_edge("work", "check").add_edge(["check", "side"], "sub")
    graph.add_conditional_edges("plan", lambda values: [Send("work", {"i": i}) for i in range(3)], ["work"])
    graph.add_edge("sub", "mail").add_edge("mail", "ask").add_edge("ask", "loop")
    graph.add_conditional_edges(
        "loop", lambda values: END if values["log"].count("loop") > 1 else "loop", ["loop", END]
    )
    return graph.compile(checkpointer=store)


async def go(folder: Path, open_store: Callable[[Path], Any], effect: str) -> dict[str, Any]:
    """Run the graph to its end, or go on with it; a person says yes, and lets what is unknown run again.

    Returns:
        How it ended, and of each transition that was committed why it was made and the values behind it.
    """
    async with open_store(folder) as store:
        app = build(folder / "ledger", store, effect=effect)
        known = await store.peek("t")
        result = await (
            app.run({"log": ["in"]}, thread_id="t", request_id="only") if known is None else app.resume("t")
        )
        for _ in range(MOST_ANSWERS):
            if not result.interrupts:
                break
            answers = {}
            for asked in result.interrupts:
                is_unknown = "Has it happened?" in asked.question
                answers[asked.interrupt_id] = "run again" if is_unknown else "yes"
                if is_unknown:
                    with (folder / "words").open("a") as file:
                        file.write(f"{asked.question.split(chr(39))[1]}\n")
            result = await app.resume("t", answers)
        made = [[entry.why, await app.state_at("t", entry.n)] for entry in await app.history("t")]
    return {"values": result.values, "reason": result.stop_reason, "detail": result.detail, "transitions": made}


@asynccontextmanager
async def in_memory(folder: Path) -> AsyncIterator[MemoryStore]:
    """The store of the run to compare with."""
    yield MemoryStore()


def problems(kill: Killed, wanted: Any) -> list[str]:
    """What is wrong after a death and what followed it."""
    found = [] if kill.result == wanted else [f"the run came to {kill.result}"]
    lines = (kill.folder / "ledger").read_text().split()
    words = Counter((kill.folder / "words").read_text().split()) if has_asked(kill) else Counter()
    done = Counter(line.partition("|")[0] for line in lines)
    for name, node in ONCE.items():
        if done[name] > TIMES.get(name, 1) + words[node]:
            found.append(f"{name} happened {done[name]} times, and a person was asked {words[node]} times")
    keys = {line for line in lines if line.startswith("work|")}
    if len(keys) != 3:
        found.append(f"the keyed effects had the keys {sorted(keys)}")
    return [f"write {kill.at}{', stored' if kill.stored else ''}: {each}" for each in found]


def has_asked(kill: Killed) -> bool:
    """Whether a person was asked about something whose outcome is unknown."""
    return (kill.folder / "words").exists()


def main(folder: Path, sync: Any, control: str, stride: int) -> None:
    """Kill in every write and print what came of it.

    Args:
        folder: for journals and ledgers.
        sync: of the store.
        control: ``""``, or what is broken on purpose: ``"pure"`` (no effect is recorded before it happens),
            ``"unstable"`` (a step has another id in each process) or ``"altering"`` (the store keeps something else).
        stride: every which write.
    """
    effect = "pure" if control == "pure" else "once"
    if control == "unstable":
        entry = superstep._SuperStep._entry

        def renamed(self: Any, task: int, due: Any) -> Any:
            made = entry(self, task, due)
            made.step_id = made.step_id.inner("node", name=str(os.getpid()))
            return made

        superstep._SuperStep._entry = renamed  # type: ignore[method-assign]
    kind = AlteringStore if control == "altering" else DyingStore
    run = partial(go, open_store=lambda place: kind(place / "runs.db", sync=sync), effect=effect)
    kills = []
    for kill in every_kill(folder, run, stride=stride):
        kills.append(kill)
        if control == "altering" or (control and problems(kill, kill.wanted)):
            break
    # Last, as its nodes that are not async start threads.
    wanted = anyio.run(partial(go, open_store=in_memory, effect="once"), folder)
    came = {
        "wanted": wanted,
        "found": [each for kill in kills for each in problems(kill, wanted)],
        "writes": len(kills) // 2,
        "before": sum(kill.died for kill in kills if not kill.stored),
        "after": sum(kill.died for kill in kills if kill.stored),
        "asked": sum(map(has_asked, kills)),
    }
    json.dump(came, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))
