"""A run that yields goes on from the state that this process has kept, and only while nobody else has written."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from locus.core.journal import BLANK
from locus.journal import Snapshot
from locus_kit.folds import Folds
from locus_plugin_postgres import PostgresStore, claims, rows
from locus_plugin_postgres.folds import KeptFold
from locus_testkit.folds import FOLD_ACTS, make_counting_agent, show_folds

from .server import Server

pytestmark = pytest.mark.anyio

_EXAMPLES = 4 if os.environ.get("LOCUS_PROOFS", "quick") == "quick" else 200

_names = count(1)


@pytest.fixture
def open_store(server: Server, schema: str) -> Callable[[], PostgresStore]:
    """Opens another store of the same tables."""
    return lambda: PostgresStore(server.url(), schema=schema, sync="normal", connections=1)


@settings(
    max_examples=_EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(acts=st.lists(st.sampled_from(FOLD_ACTS), min_size=2, max_size=8))
def test_store_shows_its_tables_after_any_order_of_writers(
    open_store: Callable[[], PostgresStore], acts: list[str]
) -> None:
    anyio.run(show_folds, open_store, acts, f"t{next(_names)}")


@pytest.mark.parametrize("foreign", ["there", "entry", "snapshot", "again"])
async def test_fold_is_left_where_another_store_has_written(
    open_store: Callable[[], PostgresStore], foreign: str
) -> None:
    await show_folds(open_store, ["here", foreign, "here"])


async def test_state_that_is_taken_without_a_look_at_the_tables_is_found(
    open_store: Callable[[], PostgresStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The row of a thread is never another one's, so a look at its name alone is what would be wrong here.
    monkeypatch.setattr(Folds, "find", lambda self, key, fits: next(reversed(self._kept.values()), None))
    with pytest.raises(AssertionError):
        await show_folds(open_store, ["here", "again"])


def test_fold_counts_only_for_the_entry_with_which_the_thread_ended() -> None:
    kept = KeptFold(Snapshot(at=2, state=BLANK, last=None), 3, "token", 0, BLANK)  # type: ignore[arg-type]
    assert kept.fits(3, "token")
    assert not kept.fits(4, "token")
    assert not kept.fits(3, "other")


async def test_segment_after_a_yield_reads_no_more_the_longer_the_run_is(
    open_store: Callable[[], PostgresStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[int] = []
    real = rows.entries_of

    def watched(thread_id: str, found: Any, *rest: Any) -> Any:
        shown.append(len(found))
        return real(thread_id, found, *rest)

    monkeypatch.setattr(claims, "entries_of", watched)
    async with open_store() as store:
        one = make_counting_agent(store)
        await one.submit("Count.", thread_id="t")
        for _ in range(20):
            await one.resume("t", yield_after=1)
    assert len(shown) >= 19
    assert max(shown) <= 2


async def test_run_that_yields_writes_snapshots_for_other_stores(
    open_store: Callable[[], PostgresStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "SNAPSHOT_EVERY", 8)
    async with open_store() as store, open_store() as other:
        one = make_counting_agent(store)
        await one.submit("Count.", thread_id="t")
        ats = set()
        for _ in range(20):
            await one.resume("t", yield_after=1)
            shown = await other.peek("t")
            assert shown is not None
            ats.add(0 if shown.snapshot is None else shown.snapshot.at)
        assert len(ats) > 2
