"""Request ids on forks and imports: a copy knows the turns that it has, and no others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from locus import AgentResult
from locus.core.errors import RequestSuperseded
from locus.core.journal import START
from locus.journal import JournalStore, MemoryStore
from locus_plugin_sqlite import SqliteStore
from locus_plugin_timetravel import export_thread, fork, history, import_thread
from locus_testkit import call

from .kit import dead, made

pytestmark = pytest.mark.anyio

FIRST_TURN = 3


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[JournalStore]:
    """A store with a thread of two turns, each with a request id."""
    async with SqliteStore(tmp_path / "t.db") as file:
        kept: JournalStore = MemoryStore() if request.param == "memory" else file
        agent = made(kept, "one", call("add", a=1), "two")
        await agent.run("First.", thread_id="t", request_id="r1")
        await agent.run("Second.", thread_id="t", request_id="r2")
        yield kept


async def ask(agent: Any, thread_id: str, request_id: str) -> AgentResult[Any]:
    found: AgentResult[Any] = await agent.run("Again.", thread_id=thread_id, request_id=request_id)
    return found


async def test_a_fork_answers_the_last_turn_that_it_has_without_running_it(store: JournalStore) -> None:
    copy = await fork(store, "t")
    before = await store.read(copy)
    assert (await ask(dead(store), copy, "r2")).text == "two"
    assert await store.read(copy) == before


async def test_a_fork_refuses_an_earlier_turn_like_its_origin(store: JournalStore) -> None:
    copy = await fork(store, "t")
    for thread_id in ("t", copy):
        with pytest.raises(RequestSuperseded, match="r1"):
            await ask(dead(store), thread_id, "r1")


async def test_a_turn_that_a_fork_does_not_have_is_a_new_one_there(store: JournalStore) -> None:
    copy = await fork(store, "t", at=FIRST_TURN)
    assert (await ask(dead(store), copy, "r1")).text == "one"
    assert (await ask(made(store, "another two"), copy, "r2")).text == "another two"
    assert (await ask(dead(store), copy, "r2")).text == "another two"
    assert (await ask(dead(store), "t", "r2")).text == "two"


async def test_the_turn_that_a_fork_leaves_open_is_gone_on_with(store: JournalStore) -> None:
    copy = await fork(store, "t", at=FIRST_TURN + 3)
    result = await ask(made(store, "two, otherwise"), copy, "r2")
    past = await history(store, copy)
    assert result.text == "two, otherwise"
    assert sum(entry.node == START for entry in past) == 2
    assert result.run_id != (await history(store, "t"))[-1].run_id


async def test_an_import_knows_the_turns_of_its_origin(store: JournalStore) -> None:
    elsewhere = MemoryStore()
    await import_thread(elsewhere, await export_thread(store, "t"), into="copy")
    assert (await ask(dead(elsewhere), "copy", "r2")).text == "two"
    with pytest.raises(RequestSuperseded, match="r1"):
        await ask(dead(elsewhere), "copy", "r1")
    assert (await ask(made(elsewhere, "three"), "copy", "r3")).text == "three"
