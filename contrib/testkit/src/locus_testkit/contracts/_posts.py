"""Laws 2 and 3 for a store with the feature ``post``: what is begun is as good as appended, once it is known."""

from __future__ import annotations

from typing import cast

import anyio

from locus.core.journal import Outcome, StepId
from locus.journal import Appended, JournalStore, PostingStore
from locus_testkit.contracts._law_2_commit import Unstorable
from locus_testkit.contracts._samples import bodies_of, texts
from locus_testkit.contracts._store import StoreContract, add
from locus_testkit.contracts.features import needs

__all__ = ["PostLaws"]


def _posting(store: JournalStore) -> PostingStore:
    assert callable(getattr(store, "post", None)), f"{type(store).__name__} declares the feature post and has no post()"
    return cast(PostingStore, store)


class PostLaws(StoreContract):
    """An append that is begun, and waited for later or never."""

    @needs("post")
    async def test_law_2_posts_are_stored_in_their_order(self, store: JournalStore) -> None:
        """Each is stored after the one before, whole, in whatever order their results are awaited."""
        claim = await store.claim("t", "w")
        batches = [texts(2, f"run-{i}") for i in range(6)]
        begun = [_posting(store).post(claim, batches[0])]
        for batch in batches[1:]:
            begun.append(_posting(store).post(claim, batch, after=begun[-1]))
        assert [await each.wait() for each in reversed(begun)] == [Appended.OK] * 6
        assert bodies_of(await store.read("t")) == [body for batch in batches for body in batch]

    @needs("post")
    async def test_law_2_what_is_asked_after_a_post_comes_behind_it(self, store: JournalStore) -> None:
        """An append, and the end of the claim, do not overtake earlier posts that are not awaited."""
        claim = await store.claim("t", "w")
        first, second, third = texts(2, "first"), texts(3, "second"), texts(2, "third")
        begun = _posting(store).post(claim, first)
        await add(store, claim, *second)
        last = _posting(store).post(claim, third)
        await store.release(claim)
        assert (await store.claim("t", "next")).head == 7
        assert bodies_of(await store.read("t")) == [*first, *second, *third]
        assert (await begun.wait(), await last.wait()) == (Appended.OK, Appended.OK)

    @needs("post")
    async def test_law_2_what_came_of_a_post_is_reported_late_as_well(self, store: JournalStore) -> None:
        """The result of a post can be awaited long after it is known, and after other posts."""
        claim = await store.claim("t", "w")
        begun = _posting(store).post(claim, texts(1))
        await add(store, claim, *texts(1))
        assert await _posting(store).post(claim, texts(1)).wait() is Appended.OK
        await store.release(claim)
        refused = _posting(store).post(claim, texts(1))
        assert len(await store.read("t")) == 3
        assert (await begun.wait(), await refused.wait()) == (Appended.OK, Appended.FENCED)

    @needs("post")
    async def test_law_2_cancelled_wait_takes_nothing_back(self, store: JournalStore) -> None:
        """A cancelled wait may be repeated, and the post goes on."""
        claim = await store.claim("t", "w")
        begun = _posting(store).post(claim, texts(3))
        with anyio.CancelScope() as scope:
            scope.cancel()
            await begun.wait()
        assert await begun.wait() is Appended.OK
        assert bodies_of(await store.read("t")) == list(texts(3))
        await add(store, claim, *texts(1))

    @needs("post")
    async def test_law_2_post_that_cannot_be_stored_stores_nothing(self, store: JournalStore) -> None:
        """A batch with a value that cannot be stored is stored whole or not at all; those around it are kept."""
        claim = await store.claim("t", "w")
        begun = _posting(store).post(claim, texts(1))
        bad = Outcome(run_id="run", step_id=StepId(0, "bad"), value=Unstorable())
        stored = 0
        try:
            got = await _posting(store).post(claim, [*texts(1), bad, *texts(1)], after=begun).wait()
        except Exception:  # noqa: BLE001  # whatever a store raises for it
            assert await begun.wait() is Appended.OK
        else:
            stored = 3 if got is Appended.OK else 0
        await add(store, claim, *texts(1))
        assert len(await store.read("t")) == 2 + stored

    @needs("post")
    async def test_law_3_stale_claim_cannot_post(self, store: JournalStore) -> None:
        """What is begun with a claim that is over is refused like an append."""
        stale = await store.claim("t", "w")
        await store.release(stale)
        fresh = await store.claim("t", "another")
        assert await _posting(store).post(stale, texts(2)).wait() is Appended.FENCED
        await add(store, fresh, *texts(1))
        assert len(await store.read("t")) == 1

    @needs("post")
    async def test_law_3_nothing_is_stored_behind_a_refused_post(self, store: JournalStore) -> None:
        """A post after one that was not stored is refused as well, even if it could be stored alone."""
        stale = await store.claim("t", "w")
        await store.release(stale)
        fresh = await store.claim("t", "another")
        refused = _posting(store).post(stale, texts(1))
        behind = _posting(store).post(fresh, texts(2), after=refused)
        last = _posting(store).post(fresh, texts(2), after=behind)
        assert await last.wait() is Appended.FENCED
        assert (await refused.wait(), await behind.wait()) == (Appended.FENCED, Appended.FENCED)
        await add(store, fresh, *texts(1))
        assert bodies_of(await store.read("t")) == list(texts(1))
