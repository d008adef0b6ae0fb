"""Windows of a long thread: together they have every block once, and each costs what it shows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus.core.errors import JournalError
from locus.core.journal import BLANK, Entry, Outcome, StateDelta, StepId, Transition, fold
from locus.core.termination import MaxIterations
from locus.journal import MemoryStore
from locus_plugin_sqlite import SqliteStore
from locus_plugin_viewer.blocks import read_blocks
from locus_plugin_viewer.journal import WINDOW, find_boundary, read_window
from locus_plugin_viewer.states import StateReader, describe_state
from locus_testkit import call

from .shop import make_agent


def entries_of(steps: Sequence[int], rest: int) -> list[Any]:
    """Blocks with so many steps before their transition, and steps of one that is under way."""
    bodies: list[Any] = []
    for iteration, count in enumerate(steps):
        made = [Outcome(run_id="r", step_id=StepId(iteration, "step", i)) for i in range(count)]
        bodies += [*made, Transition(run_id="r", node="think", next_node="think", delta=StateDelta())]
    return [*bodies, *(Outcome(run_id="r", step_id=StepId(len(steps), "step", i)) for i in range(rest))]


async def store_of(bodies: Sequence[Any]) -> MemoryStore:
    store = MemoryStore()
    claim = await store.claim("t", "test")
    await store.append(claim, bodies)
    await store.release(claim)
    return store


@settings(deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 3 * WINDOW), min_size=1, max_size=5), st.integers(0, 2 * WINDOW))
def test_the_windows_of_a_thread_have_every_block_once_and_whole(steps: list[int], rest: int) -> None:
    async def check() -> None:
        store = await store_of(entries_of(steps, rest))
        whole = read_blocks(await store.read("t"))
        first = await read_window(store, "t", 0)
        windows = [await read_window(store, "t", number) for number in range(first.count)]
        found = [block for window in windows for block in read_blocks(window.entries)]
        assert [(b.first, b.last, b.is_open) for b in found] == [(b.first, b.last, b.is_open) for b in whole]
        assert [window.is_last for window in windows] == [False] * (first.count - 1) + [True]

    anyio.run(check)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 100), min_size=1, max_size=8), st.integers(0, 1_000))
def test_the_boundary_before_an_entry_is_the_newest_transition(steps: list[int], n: int) -> None:
    async def check() -> None:
        store = await store_of(entries_of(steps, 0))
        entries: tuple[Entry, ...] = await store.read("t")
        known = [entry.n for entry in entries if isinstance(entry.body, Transition) and entry.n <= n]
        assert await find_boundary(store, "t", n) == (known[-1] if known else 0)

    anyio.run(check)


class _Impatient(MemoryStore):
    """A store that may be read a few times only."""

    reads = 0

    async def read(self, thread_id: str, after: int = 0) -> tuple[Entry, ...]:
        self.reads += 1
        assert self.reads < 10, "the thread is searched for something that is not there"
        return await super().read(thread_id, after)


@pytest.mark.anyio
@pytest.mark.parametrize("n", [10, 1_000, 10**15 - 1])
async def test_the_boundary_before_an_entry_that_is_not_there_is_found_at_once(n: int) -> None:
    store = _Impatient()
    claim = await store.claim("t", "test")
    await store.append(claim, entries_of([2, 3], 1))
    assert await find_boundary(store, "t", n) == 7
    assert await find_boundary(store, "nobody", n) == 0


@pytest.mark.anyio
async def test_a_state_is_what_the_thread_committed_there() -> None:
    store = MemoryStore()
    agent = make_agent(*[[call("find_order", number=n)] for n in range(9)], "All.", store=store)
    result = await agent.run("Go.", thread_id="t")
    entries = await store.read("t")
    reader = StateReader(store)
    expected = BLANK
    order = [*range(len(entries), 0, -3), *range(1, len(entries) + 1)]
    states = {n: await reader.at("t", n) for n in order}
    for entry in entries:
        if isinstance(entry.body, Transition):
            assert states[entry.n].iteration >= expected.iteration
            expected = states[entry.n]
    assert states[len(entries)] == result.state


class _Counting:
    """A store that counts the entries that were read of it."""

    def __init__(self, store: MemoryStore) -> None:
        self._store, self.entries = store, 0

    async def read_page(self, thread_id: str, after: int, count: int) -> Any:
        found = (await self._store.read(thread_id, after))[:count]
        self.entries += len(found)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.mark.anyio
async def test_a_state_near_one_that_was_passed_costs_what_lies_between() -> None:
    deltas = [StateDelta(changed={"iteration": number}) for number in range(20_000)]
    bodies = [Transition(run_id="r", node="think", next_node="think", delta=each) for each in deltas]
    counting: Any = _Counting(await store_of(bodies))
    reader = StateReader(counting)
    assert (await reader.at("t", 20_000)).iteration == 19_999
    assert counting.entries == 20_000
    for n in (10_000, 3, 19_000, 10_001, 10_500):
        counting.entries = 0
        assert (await reader.at("t", n)).iteration == n - 1
        assert counting.entries <= 4_096 + 512
    with pytest.raises(JournalError, match="has 20000 entries, and entry 20001 was asked for"):
        await reader.at("t", 20_001)


class _Pageless(SqliteStore):
    """A file of which no page may be read."""

    async def read_page(self, thread_id: str, after: int, count: int) -> Any:
        raise AssertionError("a page was read")


@pytest.mark.anyio
async def test_a_store_that_gives_states_is_not_read_for_a_far_one(tmp_path: Path) -> None:
    async with _Pageless(tmp_path / "long.db") as store:
        turns = [[call("find_order", number=n)] for n in range(400)]
        agent = make_agent(*turns, "All.", store=store, max_iterations=500, termination=MaxIterations(500))
        await agent.run("Go.", thread_id="t")
        entries = await store.read("t")
        reader = StateReader(store)
        for n in (len(entries), 1_400, 700):
            assert await reader.at("t", n) == fold(BLANK, [entry.body for entry in entries[:n]])


@pytest.mark.anyio
async def test_of_what_grows_the_newest_items_are_shown() -> None:
    store = MemoryStore()
    agent = make_agent(*[[call("find_order", number=n)] for n in range(9)], "All.", store=store)
    shown = json.loads(describe_state((await agent.run("Go.", thread_id="t")).state))
    assert shown["tool_executions"][0] == "4 earlier"
    assert [each["arguments"] for each in shown["tool_executions"][1:]] == [{"number": n} for n in range(4, 9)]
    assert "messages" not in shown
    assert shown["run_id"]
