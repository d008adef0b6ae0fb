"""Listings: how each thread is, what it is about, and which of them a query selects."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from locus import Agent
from locus.core.errors import JournalError
from locus.core.journal import BLANK, END, START, Body, Paused, Resumed, Transition, delta
from locus.core.messages import Message, Role
from locus.core.state import AgentState
from locus.journal import Appended, JournalStore, ThreadInfo, ThreadQuery
from locus_testkit.contracts._store import OpenStore, StoreContract, claim_and_release
from locus_testkit.contracts.features import needs
from locus_testkit.scripted_model import ScriptedModel

__all__ = ["BEGUN", "STORIES", "ListingLaws", "transition_between", "write_bodies"]

_FIRST = (
    BLANK.with_message(Message(Role.USER, "  Check the\n order. "))
    .with_metadata("tenant", "acme")
    .with_metadata("n", 1)
)


def transition_between(
    node: str, next_node: str, old: AgentState = _FIRST, new: AgentState = _FIRST, error: str = ""
) -> Transition:
    return Transition(run_id="r", node=node, next_node=next_node, delta=delta(old, new), error=error or None)


BEGUN = transition_between(START, "think", BLANK)

#: What was written to a thread last -> its status when it is not held, and its node.
STORIES: dict[str, tuple[tuple[Body, ...], str, str]] = {
    "crashed": ((BEGUN,), "crashed", "think"),
    "crashed later": ((BEGUN, transition_between("think", "execute")), "crashed", "execute"),
    "paused": ((BEGUN, Paused(run_id="r", segment=0, kind="cancelled", reason="left")), "paused", "think"),
    "waiting": ((BEGUN, Paused(run_id="r", segment=0, kind="interrupted")), "waiting", "think"),
    "set aside": ((BEGUN, Paused(run_id="r", segment=0, kind="dead_letter", reason="died")), "dead_letter", "think"),
    "resumed": (
        (BEGUN, Paused(run_id="r", segment=0, kind="interrupted"), Resumed(run_id="r", segment=1)),
        "crashed",
        "think",
    ),
    "ended": ((BEGUN, transition_between("think", "terminate"), transition_between("terminate", END)), "ended", "end"),
    "failed": ((BEGUN, transition_between("think", END, error="E: no")), "failed", "end"),
}


async def write_bodies(store: JournalStore, thread_id: str, *bodies: Body) -> None:
    """Write what a worker would: a store without history is given the state with each transition."""
    claim = await store.claim(thread_id, "w")
    at = claim.head
    for body in bodies:
        at += 1
        if isinstance(body, Transition) and not store.keeps_history:
            assert await store.snapshot(claim, at, _FIRST, body)
        else:
            assert await store.append(claim, [body]) is Appended.OK
    await store.release(claim)


async def _by_id(store: JournalStore, query: ThreadQuery | None = None) -> dict[str, ThreadInfo]:
    return {info.thread_id: info for info in await store.threads(query)}


class ListingLaws(StoreContract):
    """A crashed run is found, and a person finds the thread again."""

    @needs("queries")
    async def test_listing_shows_how_each_thread_is(self, store: JournalStore) -> None:
        """The status is that of the newest run, wherever it stopped; a run that a worker holds is running."""
        for name, (bodies, _, _) in STORIES.items():
            await write_bodies(store, name, *bodies)
        listed = await _by_id(store)
        assert {name: (i.status, i.node) for name, i in listed.items()} == {
            name: (status, node) for name, (_, status, node) in STORIES.items()
        }
        claim = await store.claim("crashed", "w")
        await store.claim("fresh", "w")
        listed = await _by_id(store)
        assert (listed["crashed"].status, listed["fresh"].status) == ("running", "running")
        await store.release(claim)
        assert (await _by_id(store))["crashed"].status == "crashed"

    @needs("queries")
    async def test_dead_workers_run_has_crashed(self, open_store: OpenStore) -> None:
        """A listing tells that a worker is gone without folding the thread."""
        store, other = await self.handles(open_store)
        claim = await store.claim("t", "w")
        if store.keeps_history:
            assert await store.append(claim, [BEGUN]) is Appended.OK
        else:
            assert await store.snapshot(claim, 1, _FIRST, BEGUN)
        assert [i.status for i in await other.threads()] == ["running"]
        assert await other.threads(ThreadQuery(status={"crashed"})) == ()
        await self.abandon(store, claim)
        (found,) = await other.threads(ThreadQuery(status={"crashed"}))
        assert (found.thread_id, found.status, found.node, found.holder) == ("t", "crashed", "think", None)

    @needs("queries")
    async def test_listing_shows_what_a_thread_is_about(self, store: JournalStore) -> None:
        """The title is how the first prompt begins; later runs keep it."""
        started = datetime.now(UTC)
        agent = Agent(ScriptedModel("one", "two"), checkpointer=store)
        await agent.run("Check  the\norder. " + "x" * 200, thread_id="t", metadata={"tenant": "acme", "big": "x" * 500})
        (first,) = await store.threads()
        await agent.run("And the next.", thread_id="t", metadata={"vip": True})
        (info,) = await store.threads()
        assert info.title.startswith("Check the order. xxx")
        assert len(info.title) <= 80
        assert (info.status, info.node, info.title) == ("ended", "end", first.title)
        assert info.metadata["tenant"] == "acme"
        assert info.metadata["vip"] is True
        assert "big" not in info.metadata
        assert info.created_at == first.created_at is not None
        assert info.updated_at is not None
        assert first.updated_at is not None
        assert first.updated_at <= info.updated_at
        assert info.updated_at - started < timedelta(days=3650)
        if store.keeps_history:
            assert info.model == "scripted:model"

    @needs("queries")
    async def test_query_selects_by_status_and_metadata(self, store: JournalStore) -> None:
        """What is asked for is decided by the store, a page at a time."""
        for name, (bodies, _, _) in STORIES.items():
            await write_bodies(store, name, *bodies)
        crashed = await _by_id(store, ThreadQuery(status={"crashed"}))
        assert set(crashed) == {"crashed", "crashed later", "resumed"}
        assert set(await _by_id(store, ThreadQuery(status={"ended", "failed"}))) == {"ended", "failed"}
        everything = set(STORIES)
        for metadata, wanted in (
            ({}, everything),
            ({"tenant": "acme"}, everything),
            ({"tenant": "acme", "n": 1}, everything),
            ({"tenant": "Acme"}, set()),
            ({"n": True}, set()),
            ({"n": "1"}, set()),
            ({"nothing": None}, set()),
        ):
            assert set(await _by_id(store, ThreadQuery(metadata=metadata))) == wanted, metadata

    async def test_pages_together_are_the_listing(self, store: JournalStore) -> None:
        """A page begins behind the last thread of the page before."""
        for n in range(7):
            await write_bodies(store, f"t{n}", BEGUN)
        listed = [info.thread_id for info in await store.threads()]
        pages: list[str] = []
        while page := await store.threads(ThreadQuery(limit=3, after=pages[-1] if pages else None)):
            assert len(page) <= 3
            pages += [info.thread_id for info in page]
        assert pages == listed
        assert await store.threads(ThreadQuery(limit=0)) == ()
        with pytest.raises(JournalError, match="thread 'nowhere' does not exist"):
            await store.threads(ThreadQuery(after="nowhere"))

    async def test_query_selects_by_age(self, store: JournalStore) -> None:
        """Only what was changed last before a moment."""
        await write_bodies(store, "t", BEGUN)
        (info,) = await store.threads()
        assert info.updated_at is not None
        assert await store.threads(ThreadQuery(updated_before=info.updated_at)) == ()
        after = info.updated_at + timedelta(seconds=1)
        assert [i.thread_id for i in await store.threads(ThreadQuery(updated_before=after))] == ["t"]

    @needs("queries", "persistent", "lists")
    async def test_another_handle_lists_the_same(self, open_store: OpenStore) -> None:
        """What is listed is in the store, not in the process."""
        store = await open_store()
        for name, (bodies, _, _) in STORIES.items():
            await write_bodies(store, name, *bodies)
        await claim_and_release(store, "ended")
        again = await open_store()
        assert await again.threads() == await store.threads()
