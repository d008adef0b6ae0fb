"""A run that yields goes on from the state that this process has kept, and only while nobody else has written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus import Agent, Message, ModelRequest, ModelResponse, Role, tool
from locus.core.journal import BLANK, Transition, fold
from locus.core.messages import ToolCall
from locus.journal import JournalHost
from locus_plugin_sqlite import SqliteStore
from locus_plugin_sqlite.claims import Claiming
from locus_plugin_sqlite.folds import Folds, KeptFold

pytestmark = pytest.mark.anyio

_EXAMPLES = 15 if os.environ.get("LOCUS_PROOFS", "quick") == "quick" else 300

#: What may happen between two segments of the first store: one in the other store, an entry alone, a snapshot, a file
#: that is opened again, and another thread in the place of this one.
_ACTS = ("here", "here", "there", "entry", "snapshot", "restart", "again")


class Counting:
    """Asks for a tool as often as it is asked, with no regard to what was said before."""

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


def agent(store: SqliteStore) -> Agent[None, str]:
    return Agent(Counting(), tools=[count], checkpointer=store, max_iterations=10**6)


async def is_as_written(store: SqliteStore, path: Path) -> None:
    """What the store shows of the thread is what is in the file."""
    async with SqliteStore(path, sync="normal") as fresh:
        entries, shown = await fresh.read("t"), await fresh.peek("t")
    claim = await store.peek("t")
    assert claim is not None
    assert shown is not None
    for each in (claim, shown):
        at = 0 if each.snapshot is None else each.snapshot.at
        state = BLANK if each.snapshot is None else each.snapshot.state
        rest = [entry.body for entry in each.entries]
        assert (each.head, rest) == (len(entries), [entry.body for entry in entries[at:]])
        assert fold(state, rest) == fold(BLANK, [entry.body for entry in entries])


async def play(folder: Path, acts: Sequence[str]) -> None:
    path = folder / "runs.db"
    async with SqliteStore(path, sync="normal") as there:
        here = SqliteStore(path, sync="normal")
        await agent(here).submit("Count.", thread_id="t")
        await agent(here).resume("t", yield_after=1)
        for act in acts:
            if act in ("here", "there"):
                await agent(here if act == "here" else there).resume("t", yield_after=1)
            elif act == "restart":
                await here.aclose()
                here = SqliteStore(path, sync="normal")
            elif act == "again":
                await here.delete("t")
                await agent(there).submit("Count again.", thread_id="t")
                await agent(there).resume("t", yield_after=1)
            else:
                host = await JournalHost.open(there, "t", "another")
                if act == "entry":
                    await host.resume()
                elif host.last is not None:
                    assert await there.snapshot(host.claim, host.last_at, host.state, host.last)
                await host.release()
            await is_as_written(here, path)
        await here.aclose()


@settings(max_examples=_EXAMPLES, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(_ACTS), min_size=2, max_size=8))
def test_store_shows_its_file_after_any_order_of_writers(acts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(play, Path(folder), acts)


async def test_a_state_that_is_kept_without_a_look_at_the_file_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KeptFold, "fits", lambda self, db, row: True)
    with pytest.raises(AssertionError):
        await play(tmp_path, ["here", "again"])


async def test_segment_after_a_yield_reads_no_more_the_longer_the_run_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    finish = Claiming.finish

    def watched(self: Claiming, session: Any) -> None:
        assert self._found is not None
        read.append(len(self._found.rows) + len(self._found.chunks))
        finish(self, session)

    monkeypatch.setattr(Claiming, "finish", watched)
    async with SqliteStore(tmp_path / "runs.db", sync="normal") as store:
        one = agent(store)
        await one.submit("Count.", thread_id="t")
        for _ in range(30):
            await one.resume("t", yield_after=1)
        assert max(read) <= 4
        # The snapshots in the file go on from the last one, and not from the state that was kept.
        host = await JournalHost.open(store, "t", "w")
        assert host.last is not None
        assert await store.snapshot(host.claim, host.last_at, host.state, host.last)
        await host.release()
    await is_as_written(SqliteStore(tmp_path / "runs.db", sync="normal"), tmp_path / "runs.db")


async def test_only_the_newest_states_are_kept(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "runs.db", sync="normal") as store:
        host = await JournalHost.open(store, "t", "w")
        await host.release()
        await agent(store).submit("Count.", thread_id="t")
        await agent(store).resume("t", yield_after=1)
        kept = store._session.folds
        (found,) = kept._kept.values()
        for n in range(1000):
            kept.keep(n, found)
        assert (len(kept._kept), 999 in kept._kept, 0 in kept._kept) == (64, True, False)
        assert isinstance(kept, Folds)
        assert isinstance(found.fold.last, Transition)
