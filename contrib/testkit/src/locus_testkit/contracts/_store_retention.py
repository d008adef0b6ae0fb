"""Retention: a thread is forgotten when its run has ended and nothing needs it, and not a moment earlier."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from locus import Agent
from locus.core.journal import END
from locus.journal import JournalStore, ThreadQuery
from locus_kit.retention import prune
from locus_testkit.contracts._samples import texts
from locus_testkit.contracts._store import StoreContract, add
from locus_testkit.contracts._store_listing import BEGUN, STORIES, transition_between, write_bodies
from locus_testkit.contracts.features import needs
from locus_testkit.scripted_model import ScriptedModel

__all__ = ["RetentionLaws"]

_ENDED = (BEGUN, transition_between("terminate", END))

#: The thread of a child run, see `locus.journal.listing.parent_thread`.
_CHILD = "{}/0a1b2c3d/0/execute/0"


async def _later(store: JournalStore) -> datetime:
    """Later than anything in the store, by the store's own clock."""
    return max(info.updated_at for info in await store.threads() if info.updated_at is not None) + timedelta(days=1)


async def _ids(store: JournalStore) -> set[str]:
    return {info.thread_id for info in await store.threads()}


class RetentionLaws(StoreContract):
    """What may be forgotten is known from the listing, and is compared again when it is deleted."""

    @needs("queries")
    async def test_listing_names_the_agent(self, store: JournalStore) -> None:
        """Two agents over one store tell their runs apart; the newest run of a thread counts."""
        for name in ("one", "two", None):
            await Agent(ScriptedModel("hi"), name=name, checkpointer=store).run("x", thread_id=f"of {name}")
        await Agent(ScriptedModel("hi"), name="two", checkpointer=store).run("y", thread_id="of one")
        listed = {info.thread_id: info.agent_id for info in await store.threads()}
        assert listed == {"of one": "two", "of two": "two", "of None": ""}
        for agent_id, wanted in (("one", set()), ("two", {"of one", "of two"}), ("", {"of None"})):
            found = await store.threads(ThreadQuery(agent_id=agent_id))
            assert {info.thread_id for info in found} == wanted

    @needs("queries", "forks", "history")
    async def test_plain_fork_of_an_open_run_has_not_crashed(self, store: JournalStore) -> None:
        """A fork that no worker has resumed is paused; once a worker has resumed it and died, it has crashed."""
        await write_bodies(store, "t", BEGUN)
        await store.fork("t", 1, "fork")
        listed = {info.thread_id: (info.status, info.node) for info in await store.threads()}
        assert listed == {"t": ("crashed", "think"), "fork": ("paused", "think")}
        assert [info.thread_id for info in await store.threads(ThreadQuery(status={"crashed"}))] == ["t"]
        await write_bodies(store, "fork", transition_between("think", "execute"))
        assert {info.status for info in await store.threads()} == {"crashed"}

    @needs("queries", "forks", "history", "delete")
    async def test_fork_names_the_thread_whose_entries_it_shares(self, store: JournalStore) -> None:
        """... as long as that one exists; then the one whose entries that one shared."""
        await write_bodies(store, "t", *_ENDED)
        await store.fork("t", 2, "one")
        await write_bodies(store, "one", *texts(2))
        await store.fork("one", 4, "two")
        listed = {info.thread_id: info.forked_from for info in await store.threads()}
        assert listed == {"t": None, "one": "t", "two": "one"}
        assert await store.delete("one")
        assert {i.thread_id: i.forked_from for i in await store.threads()} == {"t": None, "two": "t"}
        assert await store.delete("t")
        assert {i.thread_id: i.forked_from for i in await store.threads()} == {"two": None}

    @needs("delete")
    async def test_thread_that_went_on_is_not_deleted(self, store: JournalStore) -> None:
        """Deleting what a listing showed does not delete what was written since."""
        await write_bodies(store, "t", BEGUN)
        (listed,) = await store.threads()
        claim = await store.claim("t", "w")
        await add(store, claim, *texts(1))
        await store.release(claim)
        assert await store.delete("t", head=listed.head) is False
        assert await _ids(store) == {"t"}
        assert await store.delete("t", head=listed.head + 1) is True
        assert await store.delete("t", head=0) is False
        assert await _ids(store) == set()

    @needs("queries", "delete")
    async def test_pruning_leaves_what_is_open_or_at_work(self, store: JournalStore) -> None:
        """Only a run that ended is over: not one that crashed, waits, was cancelled or set aside, or is under way."""
        for name, (bodies, _, _) in STORIES.items():
            await write_bodies(store, name, *bodies)
        await write_bodies(store, "held", *_ENDED)
        await store.claim("held", "w")
        await store.release(await store.claim("fresh", "w"))
        every = await _ids(store)
        with pytest.raises(ValueError, match="'crashed'"):
            await prune(store, await _later(store), status=("crashed",))
        before = min(info.updated_at for info in await store.threads() if info.updated_at is not None)
        assert await prune(store, before) == ()
        told = await prune(store, await _later(store), dry_run=True)
        assert ({info.thread_id for info in told}, await _ids(store)) == ({"ended", "failed"}, every)
        assert [info.thread_id for info in await prune(store, await _later(store), status=("failed",))] == ["failed"]
        assert [info.thread_id for info in await prune(store, await _later(store))] == ["ended"]
        assert await _ids(store) == every - {"ended", "failed"}
        assert await prune(store, await _later(store)) == ()

    @needs("queries", "delete")
    async def test_pruning_leaves_what_an_open_run_began(self, store: JournalStore) -> None:
        """The thread of a child run goes with its parent's, also where the child ended long before."""
        for parent, bodies in (("open", (BEGUN,)), ("over", _ENDED)):
            child = _CHILD.format(parent)
            await write_bodies(store, child, *_ENDED)
            await write_bodies(store, _CHILD.format(child), *_ENDED)
            await write_bodies(store, parent, *bodies)
        await prune(store, await _later(store))
        assert await _ids(store) == {"open", _CHILD.format("open"), _CHILD.format(_CHILD.format("open"))}

    @needs("queries", "delete", "forks", "history")
    async def test_pruning_leaves_what_a_fork_shares(self, store: JournalStore) -> None:
        """A thread goes when the last fork of it that is kept has gone, or goes with it."""
        await write_bodies(store, "t", *_ENDED)
        await store.fork("t", 2, "ended")
        await store.fork("t", 1, "between")
        await write_bodies(store, "between", _ENDED[1])
        await store.fork("between", 2, "ended, too")
        await store.fork("between", 2, "open")
        await write_bodies(store, "open", BEGUN)
        await prune(store, await _later(store))
        assert await _ids(store) == {"t", "between", "open"}
        await write_bodies(store, "open", _ENDED[1])
        await prune(store, await _later(store))
        assert await _ids(store) == set()
