"""For each of the ten laws of durability there is a store that breaks it, and no other: the contract says which.

A report that turns red all over says that a store is bad. These say what is bad about it: an optimisation, a column
type, a clock, each plausible by itself.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from datetime import datetime
from typing import Any

import anyio.lowlevel
import pytest
from attrs import evolve

from locus.core.journal import START, Body, Intent, Outcome, Transition
from locus.core.state import AgentState
from locus.journal import Appended, Claim, MemoryStore
from locus.models.call import ModelCallResult

from .stores import LAWS, Complete, Opened, law_of, share

pytestmark = pytest.mark.proof


class MixesSnapshots(Complete):
    """1: keeps the number of the newest snapshot and the state of the last that came."""

    async def snapshot(self, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
        kept = self._threads[claim.thread_id].snapshot
        return await super().snapshot(claim, at if kept is None else max(at, kept.at), state, last)


class AppendsOneByOne(Complete):
    """2: a transaction an entry."""

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        got = Appended.OK
        for body in bodies:
            got = await super().append(claim, [body])
            await anyio.lowlevel.checkpoint()
        return got

    def add_entries(self, claim: Claim, bodies: Sequence[Body]) -> Coroutine[Any, Any, Appended]:
        return MemoryStore.append(self, claim, bodies)


class AcceptsStaleWriters(Complete):
    """3: the fence is off: whoever had the thread once may write to it."""

    def __init__(self) -> None:
        super().__init__()
        self.given: dict[str, set[str]] = {}

    async def claim(self, thread_id: str, worker: str) -> Claim:
        claim = await super().claim(thread_id, worker)
        self.given.setdefault(thread_id, set()).add(claim.token)
        return claim

    async def delete(self, thread_id: str, *, head: int | None = None) -> bool:
        done = await super().delete(thread_id, head=head)
        self.given.pop(thread_id, None)
        return done

    def _current(self, claim: Claim) -> Claim:
        held = self._threads[claim.thread_id].held
        known = claim.token in self.given.get(claim.thread_id, ())
        return claim if held is None or not known else evolve(claim, token=held.token)

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        return await super().append(self._current(claim), bodies)

    async def snapshot(self, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
        return await super().snapshot(self._current(claim), at, state, last)


class Delays(Complete):
    """Keeps some batches in memory until the next one: a write saved, until the process dies."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, list[Body]] = {}

    def _may_wait(self, body: Body) -> bool:
        raise NotImplementedError

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        kept = self.kept.pop(claim.token, [])
        if bodies and all(map(self._may_wait, bodies)):
            self.kept[claim.token] = [*kept, *bodies]
            return Appended.OK
        return await super().append(claim, [*kept, *bodies])


class DelaysIntents(Delays):
    """4: an intent is written with its outcome."""

    def _may_wait(self, body: Body) -> bool:
        return isinstance(body, Intent)


class DelaysAnswers(Delays):
    """5: what a model said is written with what comes of it."""

    def _may_wait(self, body: Body) -> bool:
        return isinstance(body, Outcome) and isinstance(body.value, ModelCallResult)


class CutsBytes(Complete):
    """6: a column takes 256 KB of bytes."""

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        return await super().append(claim, [_cut(body) for body in bodies])


def _cut(body: Body) -> Body:
    if not isinstance(body, Outcome) or not isinstance(body.value, tuple):
        return body
    return evolve(body, value=[each[:262_144] if isinstance(each, bytes) else each for each in body.value])


class FoldsCaseOfSteps(Complete):
    """7: the column of step ids compares without regard to case."""

    async def claim(self, thread_id: str, worker: str) -> Claim:
        claim = await super().claim(thread_id, worker)
        return evolve(claim, entries=tuple(evolve(entry, body=_fold(entry.body)) for entry in claim.entries))


def _fold(body: Body) -> Body:
    if not isinstance(body, Intent | Outcome):
        return body
    return evolve(body, step_id=evolve(body.step_id, name=body.step_id.name.casefold()))


class ComparesTimesAsText(Complete):
    """8: moments are compared as they are spelt."""

    async def next_ready(self, now: datetime) -> str | None:
        for thread_id, thread in self._threads.items():
            free = thread.held is None or thread.held.token in self.lapsed
            if free and thread.not_before is not None and thread.not_before.isoformat() <= now.isoformat():
                return thread_id
        return None


class SkipsWhatSaysNothing(Complete):
    """9: a transition that adds nothing to the conversation is not worth a write."""

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        return await super().append(claim, [body for body in bodies if not _says_nothing(body)])


def _says_nothing(body: Body) -> bool:
    return isinstance(body, Transition) and body.node != START and body.next_node == "think" and not body.delta.grown


class ForgetsWhatItOffered(Complete):
    """10: a time is done with when it was told to a worker: acknowledged first."""

    async def next_ready(self, now: datetime) -> str | None:
        found = await super().next_ready(now)
        if found is not None:
            self._threads[found].not_before = None
        return found


BREAKS: dict[int, type[Complete]] = {
    1: MixesSnapshots,
    2: AppendsOneByOne,
    3: AcceptsStaleWriters,
    4: DelaysIntents,
    5: DelaysAnswers,
    6: CutsBytes,
    7: FoldsCaseOfSteps,
    8: ComparesTimesAsText,
    9: SkipsWhatSaysNothing,
    10: ForgetsWhatItOffered,
}


async def find_broken(kind: type[Complete]) -> list[str]:
    """The tests of the contract that a kind of store fails."""
    failed: list[str] = []
    for test in LAWS:
        try:
            await Opened(share(kind)).obey(test)
        except (AttributeError, NameError, TypeError):
            raise  # a mistake in this file
        except BaseException:  # noqa: BLE001  # pytest.fail raises a BaseException
            failed.append(test)
    return failed


@pytest.fixture
def anyio_backend() -> str:
    """What breaks a law breaks it on every event loop; those that keep them are tried on both elsewhere."""
    return "asyncio"


@pytest.mark.anyio
@pytest.mark.parametrize("law", BREAKS)
async def test_store_that_breaks_a_law_fails_its_tests_and_no_other(law: int) -> None:
    failed = await find_broken(BREAKS[law])
    assert failed
    assert {law_of(test) for test in failed} == {law}, failed


@pytest.mark.anyio
async def test_store_that_breaks_no_law_fails_nothing() -> None:
    assert await find_broken(Complete) == []


def test_every_law_has_tests() -> None:
    assert {law_of(test) for test in LAWS} == {None, *range(1, 11)}
