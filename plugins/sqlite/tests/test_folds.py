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

from locus.core.journal import BLANK, fold
from locus.journal import JournalHost
from locus_plugin_sqlite import SqliteStore
from locus_plugin_sqlite.claims import Claiming
from locus_plugin_sqlite.folds import KeptFold
from locus_testkit.folds import FOLD_ACTS, make_counting_agent, show_folds

pytestmark = pytest.mark.anyio

_EXAMPLES = 15 if os.environ.get("LOCUS_PROOFS", "quick") == "quick" else 300


async def play(folder: Path, acts: Sequence[str]) -> None:
    await show_folds(lambda: SqliteStore(folder / "runs.db", sync="normal"), acts)


@settings(max_examples=_EXAMPLES, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(FOLD_ACTS), min_size=2, max_size=8))
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
        one = make_counting_agent(store)
        await one.submit("Count.", thread_id="t")
        for _ in range(30):
            await one.resume("t", yield_after=1)
        assert max(read) <= 4
        # The snapshots in the file go on from the last one, and not from the state that was kept.
        host = await JournalHost.open(store, "t", "w")
        assert host.last is not None
        assert await store.snapshot(host.claim, host.last_at, host.state, host.last)
        await host.release()
    async with SqliteStore(tmp_path / "runs.db", sync="normal") as fresh:
        shown, entries = await fresh.peek("t"), await fresh.read("t")
        assert shown is not None
        assert shown.snapshot is not None
        assert shown.snapshot.state == fold(BLANK, [entry.body for entry in entries[: shown.snapshot.at]])
