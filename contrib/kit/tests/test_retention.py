"""Threads are pruned when their run ended long ago, and nothing that goes on meanwhile is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import AsyncMock

import pytest

from locus import Agent
from locus.core.errors import JournalError
from locus.journal import MemoryStore, ThreadInfo
from locus_kit.retention import prunable, prune
from locus_testkit import ScriptedModel

pytestmark = pytest.mark.anyio

LATER = datetime.now(UTC) + timedelta(days=1)


def agent(store: MemoryStore, *script: Any) -> Agent:
    return Agent(ScriptedModel(*script), checkpointer=store)


async def test_what_ended_long_ago_is_pruned() -> None:
    store = MemoryStore()
    await agent(store, "hi").run("x", thread_id="ended")
    assert await prune(store, datetime.now(UTC) - timedelta(days=30)) == ()
    found = await prune(store, LATER, dry_run=True)
    assert [info.thread_id for info in found] == ["ended"]
    assert await prune(store, LATER, status=("failed",)) == ()
    assert await prune(store, LATER) == found
    assert await store.threads() == ()


async def test_a_thread_that_continues_while_others_are_pruned_is_kept() -> None:
    store = MemoryStore()
    for name in ("busy", "on", "over"):
        await agent(store, "hi").run("x", thread_id=name)
    listed = await store.threads()
    await agent(store, "again").run("y", thread_id="on")
    await store.claim("busy", "w")
    store.threads = AsyncMock(return_value=listed)  # type: ignore[method-assign]
    assert [info.thread_id for info in await prune(store, LATER)] == ["over"]


def test_only_what_is_over_can_be_pruned() -> None:
    old = LATER - timedelta(days=9)
    infos = [ThreadInfo(thread_id=f"{s}", head=1, status=s, updated_at=old) for s in ("ended", "waiting", "crashed")]
    assert [info.thread_id for info in prunable(infos, LATER)] == ["ended"]
    with pytest.raises(ValueError, match="got \\['ended', 'waiting'\\]; other runs are open"):
        prunable(infos, LATER, status=("ended", "waiting"))
    with pytest.raises(JournalError, match="does not record the status of threads"):
        prunable([ThreadInfo(thread_id="t", head=1)], LATER)
