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

from locus_plugin_nats import DevServer, NatsSettings, NatsStore, claims, entries
from locus_plugin_nats.folds import KeptFold
from locus_testkit.folds import FOLD_ACTS, make_counting_agent, show_folds

pytestmark = pytest.mark.anyio

_EXAMPLES = 4 if os.environ.get("LOCUS_PROOFS", "quick") == "quick" else 200

_names = count(1)


@pytest.fixture
def open_store(server: DevServer, prefix: str) -> Callable[[], NatsStore]:
    """Opens another store of the same streams."""
    return lambda: NatsStore(server.url, NatsSettings(prefix=prefix))


@settings(
    max_examples=_EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(acts=st.lists(st.sampled_from(FOLD_ACTS), min_size=2, max_size=8))
def test_store_shows_its_streams_after_any_order_of_writers(
    open_store: Callable[[], NatsStore], acts: list[str]
) -> None:
    anyio.run(show_folds, open_store, acts, f"t{next(_names)}")


@pytest.mark.parametrize("foreign", ["there", "entry", "claim", "snapshot", "again"])
async def test_fold_is_left_where_another_store_has_written(open_store: Callable[[], NatsStore], foreign: str) -> None:
    await show_folds(open_store, ["here", foreign, "here"])


async def test_state_that_is_taken_without_a_look_at_the_stream_is_found(
    open_store: Callable[[], NatsStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KeptFold, "fits", lambda self, tip: True)
    with pytest.raises(AssertionError):
        await show_folds(open_store, ["here", "there"])


async def test_segment_after_a_yield_reads_no_more_the_longer_the_run_is(
    open_store: Callable[[], NatsStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    real = entries.read_entries

    async def watched(*given: Any) -> Any:
        found = await real(*given)
        read.append(len(found[1]))
        return found

    monkeypatch.setattr(claims, "read_entries", watched)
    asked: list[object] = []
    monkeypatch.setattr(entries, "read_stream", lambda *given, **options: asked.append(given))
    async with open_store() as store:
        one = make_counting_agent(store)
        await one.submit("Count.", thread_id="t")
        for _ in range(20):
            await one.resume("t", yield_after=1)
    assert len(read) >= 19
    assert max(read) <= 2
    assert not asked


async def test_run_that_yields_writes_snapshots_for_other_stores(
    open_store: Callable[[], NatsStore], monkeypatch: pytest.MonkeyPatch
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
