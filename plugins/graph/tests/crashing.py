"""A graph of everything, in processes that are killed at every write; run as ``python -m`` with what `main` takes.

Each process is forked from one that has imported everything, so a death costs milliseconds. The killed process leaves
two things: the file of the journal, and a ledger, a file to which each effect appends its name and its key.
"""

from __future__ import annotations

import json
import operator
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import anyio

from locus import Agent, tool
from locus.core.messages import Message, Role, ToolCall
from locus.models import ModelRequest, ModelResponse
from locus_plugin_graph import END, START, NodeContext, Send, StateGraph, superstep
from locus_plugin_sqlite import SqliteStore

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


class Dying(SqliteStore):
    """Kills its process in one of its writes, before it is made or right after it was begun or made."""

    at = 0
    stored = False
    count = 0

    def _die(self, *, stored: bool) -> None:
        type(self).count += not stored
        if self.count == self.at and stored == self.stored:
            os.kill(os.getpid(), signal.SIGKILL)

    async def append(self, *arguments: Any) -> Any:
        self._die(stored=False)
        made = await super().append(*arguments)
        self._die(stored=True)
        return made

    def post(self, *arguments: Any, **options: Any) -> Any:
        self._die(stored=False)
        made = super().post(*arguments, **options)
        self._die(stored=True)
        return made

    async def snapshot(self, *arguments: Any) -> Any:
        self._die(stored=False)
        made = await super().snapshot(*arguments)
        self._die(stored=True)
        return made


async def go(folder: Path, sync: Any, effect: str) -> dict[str, Any]:
    """Run the graph to its end, or go on with it; a person says yes, and lets what is unknown run again."""
    async with Dying(folder / "runs.db", sync=sync) as store:
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
    return {"values": result.values, "reason": result.stop_reason, "writes": Dying.count, "detail": result.detail}


def forked(folder: Path, sync: str, effect: str, at: int, *, stored: bool) -> dict[str, Any] | None:
    """What a process of its own comes to; None where it was killed."""
    out = folder / "out.json"
    out.unlink(missing_ok=True)
    pid = os.fork()
    if not pid:
        status = 1
        try:
            Dying.at, Dying.stored, Dying.count = at, stored, 0
            out.write_text(json.dumps(anyio.run(go, folder, sync, effect)))
            status = 0
        finally:
            os._exit(status)
    os.waitpid(pid, 0)
    return json.loads(out.read_text()) if out.exists() else None


def problems(folder: Path, ended: dict[str, Any] | None, wanted: dict[str, Any]) -> list[str]:
    """What is wrong after a death and what followed it."""
    if ended is None:
        return ["the run did not come to an end"]
    found = []
    if (ended["values"], ended["reason"]) != (wanted["values"], wanted["reason"]):
        found.append(f"ended with {ended['reason']} {ended['detail']} {ended['values']}")
    lines = (folder / "ledger").read_text().split()
    words = Counter((folder / "words").read_text().split()) if (folder / "words").exists() else Counter()
    done = Counter(line.partition("|")[0] for line in lines)
    for name, node in ONCE.items():
        if done[name] > TIMES.get(name, 1) + words[node]:
            found.append(f"{name} happened {done[name]} times, and a person was asked {words[node]} times")
    keys = {line for line in lines if line.startswith("work|")}
    if len(keys) != 3:
        found.append(f"the keyed effects had the keys {sorted(keys)}")
    return found


def main(folder: Path, sync: str, control: str, stride: int) -> None:
    """Kill at every write and print what came of it.

    Args:
        folder: for journals and ledgers.
        sync: of the store.
        control: ``""``, or what is broken on purpose: ``"pure"`` (no effect is recorded before it happens) or
            ``"unstable"`` (a step has another id in each process).
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
    whole = folder / "whole"
    whole.mkdir()
    wanted = forked(whole, sync, effect, 0, stored=False)
    assert wanted is not None
    found, deaths, asked = [], {True: 0, False: 0}, 0
    for at in range(1, wanted["writes"] + 1, stride):
        for stored in (False, True):
            place = folder / f"{at}{'after' if stored else 'before'}"
            place.mkdir()
            # What follows a write that is begun inside of another one may come before its end.
            ended = forked(place, sync, effect, at, stored=stored)
            deaths[stored] += ended is None
            if ended is None:
                ended = forked(place, sync, effect, 0, stored=False)
            found += [
                f"write {at} {'after' if stored else 'before'}: {each}" for each in problems(place, ended, wanted)
            ]
            asked += (place / "words").exists()
    came = {"writes": wanted["writes"], "before": deaths[False], "after": deaths[True], "asked": asked, "found": found}
    json.dump(came | {"wanted": wanted}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))
