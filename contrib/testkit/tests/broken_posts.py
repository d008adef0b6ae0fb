"""Stores that break what a law says of appends that are begun, each in one place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import anyio
from attrs import evolve

from locus.core.codec import encode_data
from locus.core.journal import Body, Outcome
from locus.journal import Appended, Claim, MemoryStore
from locus.journal.store import Posted

from .stores import Begun, Complete, at_once

__all__ = ["BROKEN"]


class _Asked(Begun):
    """Written by whoever asks for it."""

    def __init__(self, work: Callable[[], Appended]) -> None:
        super().__init__(Appended.UNKNOWN)
        self._work = work

    def do(self) -> None:
        if self.got is Appended.UNKNOWN:
            self.got = self._work()

    async def wait(self) -> Appended:
        self.do()
        return await super().wait()


class StoresWhatIsAskedFor(Complete):
    """Keeps what was begun until somebody asks for it, or for something else."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[_Asked] = []

    def catch_up(self) -> None:
        for each in self.begun:
            each.do()
        self.begun.clear()

    def post(self, claim: Claim, bodies: Sequence[Body], after: Posted | None = None) -> Posted:
        def work() -> Appended:
            refused = isinstance(after, Begun) and after.got is Appended.FENCED
            return Appended.FENCED if refused else at_once(MemoryStore.append(self, claim, bodies))

        self.begun.append(_Asked(work))
        return self.begun[-1]

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        self.catch_up()
        return await super().append(claim, bodies)

    async def release(self, claim: Claim, not_before: datetime | None = None) -> None:
        self.catch_up()
        await super().release(claim, not_before)


class OvertakesWhatWasBegun(StoresWhatIsAskedFor):
    """An append knows nothing of posts."""

    def post(self, claim: Claim, bodies: Sequence[Body], after: Posted | None = None) -> Posted:
        self.catch_up()
        return super().post(claim, bodies, after)

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        return await Complete.append(self, claim, bodies)


class RemembersTheLastAnswer(Complete):
    last: Begun | None = None

    def post(self, claim: Claim, bodies: Sequence[Body], after: Posted | None = None) -> Posted:
        made = super().post(claim, bodies, after)
        assert isinstance(made, Begun)
        if after is None and self.last is not None:
            self.last.got = Appended.UNKNOWN
        self.last = made
        return made


class _TakesBack(Begun):
    def __init__(self, got: Appended, bodies: list[Body]) -> None:
        super().__init__(got)
        self._bodies = bodies

    async def wait(self) -> Appended:
        try:
            return await super().wait()
        except anyio.get_cancelled_exc_class():
            self._bodies.clear()
            raise


class TakesBackWhatNobodyWaitsFor(Complete):
    def post(self, claim: Claim, bodies: Sequence[Body], after: Posted | None = None) -> Posted:
        made = super().post(claim, bodies, after)
        assert isinstance(made, Begun)
        return _TakesBack(made.got, self._threads[claim.thread_id].bodies)


class PostsUpToWhatItCannotStore(Complete):
    def post(self, claim: Claim, bodies: Sequence[Body], after: Posted | None = None) -> Posted:
        made: Posted = Begun(Appended.OK)
        for body in bodies:
            if isinstance(body, Outcome):
                encode_data(body.value)
            made = super().post(claim, [body], after)
        return made


class PostsForAnybody(Complete):
    def post(self, claim: Claim, bodies: Sequence[Body], after: Posted | None = None) -> Posted:
        return super().post(evolve(claim, token=self.holder(claim.thread_id)), bodies, after)


class PostsBehindAnything(Complete):
    def post(self, claim: Claim, bodies: Sequence[Body], after: Posted | None = None) -> Posted:
        return super().post(claim, bodies)


#: Which tests of the contract each of them must fail.
BROKEN: dict[Callable[[], Any], tuple[str, ...]] = {
    StoresWhatIsAskedFor: ("test_law_2_posts_are_stored_in_their_order",),
    OvertakesWhatWasBegun: ("test_law_2_what_is_asked_after_a_post_comes_behind_it",),
    RemembersTheLastAnswer: ("test_law_2_what_came_of_a_post_is_reported_late_as_well",),
    TakesBackWhatNobodyWaitsFor: ("test_law_2_cancelled_wait_takes_nothing_back",),
    PostsUpToWhatItCannotStore: ("test_law_2_post_that_cannot_be_stored_stores_nothing",),
    PostsForAnybody: (
        "test_law_3_stale_claim_cannot_post",
        "test_law_3_nothing_is_stored_behind_a_refused_post",
    ),
    PostsBehindAnything: ("test_law_3_nothing_is_stored_behind_a_refused_post",),
}
