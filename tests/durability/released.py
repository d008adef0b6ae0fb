"""Writes the threads that a version leaves behind: ``python -m tests.durability.released tests/data/journals/0.1.0``.

Run once a release, by that release. Between them the threads hold every kind of entry and every kind of block.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
from tests.loop.kit import add, confirm

import locus_plugin_timetravel as timetravel
from locus import Agent, ToolContext, tool
from locus.core.directives import Cancel, Retry
from locus.core.errors import ModelError
from locus.core.events import ModelErrorEvent, ToolCompleteEvent
from locus.core.journal import BLANK, Submitted, fold
from locus.core.messages import (
    Block,
    MediaBlock,
    Message,
    RawBlock,
    Role,
    TextBlock,
    ThinkingBlock,
    Usage,
)
from locus.hooks.hook import Hook
from locus.journal import MemoryStore
from locus_plugin_conversation import SummarizingManager
from locus_plugin_timetravel import export_thread
from locus_testkit import ScriptedModel, call, malformed_call

__all__ = ["AWKWARD", "agent"]

#: What JSON has no word for.
AWKWARD = {
    "keys": {1: "one"},
    "set": frozenset({"a", "b"}),
    "bytes": b"\x00\xff",
    "number": float("inf"),
    "pair": (1, 2),
}


@tool(effect="keyed")
async def picture(n: int, ctx: ToolContext[Any]) -> Any:
    """Draw something."""

    async def sketch() -> Any:
        return {"n": n, "bytes": b"\x00"}

    await ctx.step("sketch", sketch)
    return [f"picture {n}", MediaBlock("image", "image/png", data=b"png", name="p.png")]


@tool(effect="pure")
def lose(n: int) -> str:
    """Fail."""
    raise LookupError(f"lost {n}")


class Stubborn(Hook):
    """Tries a model again that fails, and ends a turn that is to be stopped."""

    def on_model_error(self, event: ModelErrorEvent) -> Retry:
        return Retry("busy")

    def on_tool_complete(self, event: ToolCompleteEvent, run: Any) -> Cancel | None:
        return Cancel("stopped") if "stop" in run.state.metadata else None


def agent(store: Any, *script: Any) -> Agent[Any, Any]:
    """The agent of all threads."""
    summariser = ScriptedModel("They spoke of pictures.", name="scripted:summary", after="repeat")
    return Agent[Any, Any](
        ScriptedModel(*script),
        tools=[add, confirm, picture, lose],
        system_prompt="Be brief.",
        checkpointer=store,
        conversation_manager=SummarizingManager(6, 2, model=summariser),
        hooks=[Stubborn()],
    )


async def written() -> MemoryStore:
    """A thread with everything, a fork of it, one that waits for an answer, and one that was left."""
    store = MemoryStore()
    signed = ThinkingBlock("hm", "signed", extras={"index": 0})
    raw = RawBlock("acme", {"type": "opaque", "data": [1, None]})
    asked: list[Block] = [
        TextBlock("Look: \u2028 \u00e9 \U0001f600", extras={"id": 1}),
        MediaBlock("document", url="https://a/b.pdf"),
    ]
    talk = agent(
        store,
        [signed, raw, "so", call("picture", n=1), call("lose", n=2), call("nope"), malformed_call("add", '{"a":')],
        [signed, call("add", a=1), call("confirm", what="go")],
        [signed, "done"],
        call("add", a=2),
        "again",
        ModelError("busy", retryable=True, usage=Usage(prompt_tokens=3)),
        call("add", a=3),
    )
    await talk.run(asked, thread_id="talk", metadata={"awkward": AWKWARD})
    await talk.resume("talk", "yes")
    await talk.run("And again?", thread_id="talk")
    await talk.run("Stop.", thread_id="talk", metadata={"stop": True})
    claim = await store.claim("talk", "w")
    await store.append(claim, [Submitted(run_id="later", prompt=Message(Role.USER, "Later."), agent="talk")])
    await store.release(claim)
    await agent(store, call("confirm", what="stop")).run("Stop?", thread_id="open")
    await timetravel.fork(talk, "open", into="fork")
    await timetravel.fork(talk, "talk", at=3, into="early")
    return store


async def _main(folder: Path) -> None:
    store = await written()
    states: dict[str, Any] = {}
    for info in await store.threads():
        name = info.thread_id
        (folder / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in await export_thread(store, name)))
        states[name] = fold(BLANK, [entry.body for entry in await store.read(name)]).to_checkpoint()
    (folder / "states.json").write_text(json.dumps(states, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True)
    anyio.run(_main, target)
