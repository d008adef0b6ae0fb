"""Writes a file with every kind of entry, of block and of row, and reads it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from locus import Agent, tool
from locus.core.journal import (
    BLANK,
    Body,
    Cancelled,
    Intent,
    ModelFailed,
    Outcome,
    Retried,
    StepId,
    Submitted,
    entry_to_json,
    fold,
)
from locus.core.messages import MediaBlock, Message, RawBlock, Role, TextBlock, ThinkingBlock
from locus.tools import ToolContext
from locus_plugin_conversation import SummarizingManager
from locus_plugin_sqlite import SqliteStore
from locus_testkit import ScriptedModel, Turn, call

#: Values that JSON has no word for.
AWKWARD = {
    "keys": {1: "one"},
    "set": frozenset({"a", "b"}),
    "bytes": b"\x00\xff",
    "time": datetime(2030, 1, 1, tzinfo=UTC),
    "day": date(2030, 1, 1),
    "numbers": [0, -1, 2**63, 2**200, 0.1, 1e300, float("inf")],
    "text": "tab\t nul\x00 \u202e \u00e9 \U0001f600 \ud800",
}


@tool(effect="pure")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(effect="keyed")
def draw(n: int) -> Any:
    """Draw something."""
    return [f"picture {n}", MediaBlock("image", "image/png", data=b"png")]


@tool
def ask(ctx: ToolContext) -> str:
    """Ask a person."""
    return f"they said {ctx.interrupt('Shall I?', options=('yes', 'no'))}"


def agent(store: SqliteStore, *script: Any) -> Agent[None, str]:
    """An agent with all tools."""
    return Agent(ScriptedModel(*script), tools=[add, draw, ask], checkpointer=store, max_iterations=100)


async def _everything(store: SqliteStore) -> None:
    """A thread with every kind of entry and of block, and a summary."""
    signed = ThinkingBlock("hm", "signed", extras={"index": 0})
    script: list[Turn] = [
        [signed, RawBlock("acme", {"type": "opaque"}), "so", call("draw", n=1), call("nope")],
        [signed, call("add", a=1, b=2), call("ask")],
        "done",
    ]
    summariser = ScriptedModel("They drew.", name="scripted:summary", after="repeat")
    talk = Agent[None, str](
        ScriptedModel(*script),
        tools=[add, draw, ask],
        checkpointer=store,
        conversation_manager=SummarizingManager(4, 1, model=summariser),
    )
    await talk.run([TextBlock("Draw this."), MediaBlock("document", url="https://a/b.pdf")], thread_id="all")
    await talk.resume("all", "yes")
    await _append(
        store,
        "all",
        [
            ModelFailed(run_id="r", step_id=StepId(0, "think"), error_type="ModelError", error="busy"),
            Retried(run_id="r", step_id=StepId(0, "think"), reason="busy"),
            Cancelled(run_id="r", reason="stopped"),
            Submitted(run_id="later", prompt=Message(Role.USER, "Later."), metadata={"n": 1}),
        ],
    )


async def _append(store: SqliteStore, thread: str, *batches: Sequence[Body]) -> None:
    claim = await store.claim(thread, "w")
    for batch in batches:
        await store.append(claim, batch)
    await store.release(claim, datetime(2030, 1, 1, tzinfo=UTC))


async def write(path: Path) -> None:
    """Every kind of entry and of row: plain, compressed, with blobs, snapshots, forks and the fork of what is gone."""
    async with SqliteStore(path) as store:
        store.snapshot_every = 40
        talk = agent(store, *(call("add", a=n, b=n) for n in range(40)), "done", "and again")
        await talk.run("Add.", thread_id="long", metadata={"awkward": AWKWARD})
        await talk.run("Again.", thread_id="long")
        await agent(store, [call("add", a=1, b=2), call("ask")]).run("Ask.", thread_id="open")
        await _append(
            store,
            "steps \U0001f600",
            [Intent(run_id="r", step_id=StepId(0, "1"), policy="keyed")],
            [
                Outcome(run_id="r", step_id=StepId(0, "1"), value=AWKWARD),
                Outcome(run_id="r", step_id=StepId(0, "2"), error="E: no"),
            ],
            [Outcome(run_id="r", step_id=StepId(0, "3"), value="words " * 1000)],
            [Outcome(run_id="r", step_id=StepId(0, "4"), value=["large " * 60_000, "\0", "large " * 60_000])],
            [Outcome(run_id="r", step_id=StepId(0, "5"), value=list(range(60_000)))],
        )
        await _everything(store)
        large = ["large " * 60_000, "words " * 10_000]
        await _append(store, "large", [Outcome(run_id="r", step_id=StepId(0, "1"), value=large)])
        await store.fork("long", 150, "fork")
        await agent(store, "somewhere else").run("Hm.", thread_id="fork")
        await store.fork("fork", 3, "early")
        await store.fork("steps \U0001f600", 2, "of what is gone")
        await store.delete("steps \U0001f600")
        await store.fork("open", 1, "again")


async def told(path: Path) -> dict[str, Any]:
    """What a file holds: the entries, writers and state of each thread."""
    async with SqliteStore(path) as store:
        found: dict[str, Any] = {}
        for info in await store.threads():
            entries = await store.read(info.thread_id)
            found[info.thread_id] = {
                "entries": [[entry.n, entry.writer, entry.parent, entry_to_json(entry.body)] for entry in entries],
                "state": fold(BLANK, [entry.body for entry in entries]).to_checkpoint(),
            }
        return dict(sorted(found.items()))
