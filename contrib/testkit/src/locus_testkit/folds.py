"""The law of stores that keep folds: they show a thread as it is stored, also where another store has written.

`show_folds` lets a run yield again and again in one store, while another store of the same place writes, snapshots,
deletes and begins anew; after each act the claim of the first is compared with what a third reads, which keeps nothing.
Draw the acts from `FOLD_ACTS` with hypothesis, and prove the test by a store that takes its folds unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from locus import Agent, Message, ModelRequest, ModelResponse, Role, tool
from locus.core.journal import BLANK, fold
from locus.core.messages import ToolCall
from locus.journal import JournalHost

__all__ = ["FOLD_ACTS", "make_counting_agent", "show_folds"]

#: What may happen between two segments of the first store: one in the other store, an entry alone, a claim alone, a
#: snapshot, a store that is opened again, and another thread in the place of this one.
FOLD_ACTS = ("here", "here", "there", "entry", "claim", "snapshot", "restart", "again")


class _Counting:
    """Asks for a tool each time, with no regard to what was said before."""

    name = "test:counting"

    def __init__(self) -> None:
        self.calls = 0

    async def complete(self, request: ModelRequest, on_chunk: Any = None) -> ModelResponse:
        """Another call."""
        self.calls += 1
        call = ToolCall(f"c{self.calls}", "count", {"n": self.calls})
        return ModelResponse(message=Message(Role.ASSISTANT, (call,)), stop_reason="tool_calls")


@tool(effect="once")
async def count(n: int) -> str:
    """Count."""
    return f"{n}"


def make_counting_agent(store: Any) -> Agent[None, str]:
    """An agent whose run does not end by itself: for `Agent.resume` with ``yield_after``."""
    return Agent(_Counting(), tools=[count], checkpointer=store, max_iterations=10**6)


async def show_folds(open_store: Callable[[], Any], acts: Sequence[str], thread_id: str = "t") -> None:
    """Play these acts on a new thread, and insist that the first store shows what is stored after each of them.

    Args:
        open_store: opens another store of the same place; closed here.
        acts: of `FOLD_ACTS`.
        thread_id: the thread.

    Raises:
        AssertionError: it shows something else.
        ValueError: an act is unknown.
    """
    async with open_store() as there, open_store() as reader:
        here = open_store()
        try:
            await make_counting_agent(here).submit("Count.", thread_id=thread_id)
            await make_counting_agent(here).resume(thread_id, yield_after=1)
            for act in acts:
                if act == "restart":
                    await here.aclose()
                    here = open_store()
                else:
                    await _act(act, here, there, thread_id)
                await _check(await here.peek(thread_id), reader, thread_id)
            claim = await here.claim(thread_id, "test")
            await here.release(claim)
            await _check(claim, reader, thread_id)
        finally:
            await here.aclose()


async def _act(act: str, here: Any, there: Any, thread_id: str) -> None:
    if act in ("here", "there"):
        await make_counting_agent(here if act == "here" else there).resume(thread_id, yield_after=1)
    elif act == "again":
        await here.delete(thread_id)
        await make_counting_agent(there).submit("Count again.", thread_id=thread_id)
        await make_counting_agent(there).resume(thread_id, yield_after=1)
    elif act in ("entry", "claim", "snapshot"):
        host = await JournalHost.open(there, thread_id, "another")
        if act == "entry":
            await host.resume()
        elif act == "snapshot" and host.last is not None:
            assert await there.snapshot(host.claim, host.last_at, host.state, host.last)
        await host.release()
    else:
        raise ValueError(f"act: expected one of {', '.join(sorted(set(FOLD_ACTS)))}, got {act!r}")


async def _check(shown: Any, reader: Any, thread_id: str) -> None:
    """Insist that a claim shows what is stored."""
    entries = await reader.read(thread_id)
    assert shown is not None
    at = 0 if shown.snapshot is None else shown.snapshot.at
    state = BLANK if shown.snapshot is None else shown.snapshot.state
    assert (shown.head, list(shown.entries)) == (len(entries), list(entries[at:]))
    assert fold(state, [entry.body for entry in shown.entries]) == fold(BLANK, [entry.body for entry in entries])
    assert shown.snapshot is None or shown.snapshot.last == entries[at - 1].body
