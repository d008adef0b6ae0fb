"""Power cuts at the moments of what was recorded, and what is to be found when the power is back.

Two recordings: a run of an agent, which is resumed from what the disk holds and judged like any run that broke off;
and a store that is used for everything it can do, whose file must be as it was after one of its operations.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from attrs import define, field, frozen
from tests.durability.case import THREAD, Plain, Program, Segment, final_state, segment, whole
from tests.durability.disk import FATES, Fate, Sync, SyncNames
from tests.durability.effort import THOROUGH
from tests.durability.log import Log
from tests.durability.oracle import judge
from tests.durability.pointed import digest
from tests.durability.points import Points
from tests.durability.recorded import Recording, recorded
from tests.durability.subjects import Sqlite

from locus.core.journal import Body, Outcome, StepId
from locus.journal.store import Appended, Claim, JournalStore
from locus_plugin_sqlite import FileProblem, SqliteStore
from locus_plugin_sqlite import file as opening

__all__ = ["Cut", "Ran", "Resumed", "Used", "cuts", "ran", "run_after", "use_after", "used"]

#: Entries after which a snapshot is taken, and pages after which the log goes into the file: few, so that both happen.
SNAPSHOT_EVERY, PAGES = 4, 12

#: Operations after which a file has been created.
CREATED = 90

#: What lies in a file: the entries of each thread.
State = Mapping[str, tuple[str, ...]]


@frozen
class Cut:
    """A power cut.

    Args:
        at: how many operations there had been.
        fate: of what was not synced.
        known: how many facts the world outside had by then.
        image: what lies on the disk afterwards, by name.
    """

    at: int
    fate: Fate
    known: int
    image: Mapping[str, bytes] = field(repr=False)


def cuts(recording: Recording, random: Random, *, fates: int) -> Iterator[Cut]:
    """Before and after every sync, when something has become known, and anywhere.

    Args:
        recording: where to cut.
        random: draws fates.
        fates: how many kinds of them to try at each moment; what is not synced is lost in one of them. While the file
            is created, which happens once, all of them are tried.
    """
    seen: set[tuple[object, ...]] = set()
    told = 0
    for at, disk, known in recording.moments():
        near = recording.ops[max(0, at - 1) : at + 1]
        due = known != told or any(isinstance(op, Sync | SyncNames) for op in near) or random.random() < 0.1
        told = known
        if not due and at < len(recording.ops):
            continue
        several = random.sample(FATES[1:], fates - 1) if at > CREATED else [*FATES[1:]] * 4
        for fate in ("lost", *several) if disk.unsynced() else FATES[:1]:
            cut = Cut(at, fate, known, disk.cut(fate, random))
            digests = [(name, sha256(content).digest()) for name, content in sorted(cut.image.items())]
            if (known, *digests) not in seen:
                seen.add((known, *digests))
                yield cut


def _restored(cut: Cut, folder: Path) -> Sqlite:
    folder.mkdir(parents=True)
    for name, content in cut.image.items():
        (folder / name).write_bytes(content)
    subject = Sqlite(folder, snapshot_every=SNAPSHOT_EVERY)
    subject.bury()
    return subject


def _intact(path: Path) -> list[str]:
    if not path.exists():
        return []
    try:
        with closing(sqlite3.connect(path)) as db:
            found = [row[0] for row in db.execute("PRAGMA integrity_check")]
    except sqlite3.DatabaseError as e:
        return [f"file: {e}"]
    return [] if found == ["ok"] else [f"file: {found}"]


# -- a run of an agent -----------------------------------------------------------------------------------


@frozen
class Ran:
    """What was recorded of a run: on the disk, and outside."""

    program: Program
    recording: Recording
    log: Log


async def ran(kind: type[Sqlite], program: Program, folder: Path, *, synchronous: str | None = None) -> Ran:
    """Run to the end; each segment is a process of its own, and the last one to leave tidies up."""
    log = Log()
    recording = Recording(lambda: len(log.lines()))
    subject = kind(folder, snapshot_every=SNAPSHOT_EVERY)

    async def step(answers: dict[str, Any] | None) -> Segment:
        ended = await segment(program, subject.open(Points()), log, Points(), answers=answers)
        await subject.close()
        return ended

    with recorded(recording, synchronous), mock.patch.object(opening, "_LOG_PAGES", PAGES):
        await whole(step)
    return Ran(program, recording, log)


@define
class Resumed:
    """What is known of the runs that were resumed: from the same entries and facts, they go on alike.

    Args:
        seen: how many entries and facts there were.
        lost: how many acknowledged entries were gone, at each cut.
    """

    seen: set[tuple[int, int]] = field(factory=set)
    lost: list[int] = field(factory=list)


async def run_after(
    cut: Cut, ran: Ran, wanted: Plain, folder: Path, before: Resumed, *, may_lose: bool = False
) -> list[str]:
    """Look at what the disk holds, and go on with it to the end; gives what is wrong.

    Args:
        cut: what happened.
        ran: the run that it happened to.
        wanted: the run that nothing happened to.
        folder: for the files; it is made.
        before: what was resumed before.
        may_lose: whether the newest entries may be gone; what they said to have happened may then happen again.
    """
    subject, log = _restored(cut, folder), ran.log.upto(cut.known)
    store = subject.open(Points())
    try:
        entries = [digest(entry.body) for entry in await store.read(THREAD)]
    except FileProblem as e:
        return [f"file: {e}"]
    acked = [each for line in log.lines("acked") if line["thread"] == THREAD for each in line["digests"]]
    wrong = _intact(subject.path)
    both = min(len(acked), len(entries))
    if entries[:both] != acked[:both]:
        wrong.append("journal: what is left is not what was acknowledged first")
    before.lost.append(max(0, len(acked) - len(entries)))
    if before.lost[-1] and not may_lose:
        wrong.append(f"journal: {before.lost[-1]} acknowledged entries are lost")
    if (len(entries), cut.known) in before.seen and not THOROUGH:
        await subject.close()
        return wrong
    before.seen.add((len(entries), cut.known))

    async def step(answers: dict[str, Any] | None) -> Segment:
        return await segment(ran.program, subject.open(Points()), log, Points(), answers=answers)

    await whole(step)
    verdict = judge(
        await final_state(store),
        await store.read(THREAD),
        log,
        wanted=wanted.state,
        asked=wanted.asked,
        faults=1,
        rows=subject.rows(THREAD),
    )
    await subject.close()
    said = [each for each in verdict.wrong if not may_lose or not _of_what_was_lost(each)]
    return wrong + said + _intact(subject.path)


def _of_what_was_lost(wrong: str) -> bool:
    return wrong.startswith(("effects: ", "events: ")) or "acknowledged entries" in wrong


# -- a store that is used ----------------------------------------------------------------------------------


@frozen
class Used:
    """What was recorded of a store.

    Args:
        recording: of its files.
        states: what had to lie in its file before the first operation, and after each.
        begun: how many operations were under way at once behind one that was acknowledged, by its number; one, where
            nothing is said.
    """

    recording: Recording
    states: Sequence[State]
    begun: Mapping[int, int]


@define
class _Use:
    """Does one thing after another, and keeps account."""

    subject: Sqlite
    random: Random
    store: JournalStore
    claims: dict[str, Claim] = field(factory=dict)
    #: What lies in each thread: the digests of its entries.
    lies: dict[str, tuple[str, ...]] = field(factory=dict)
    number: int = 0
    #: What had to lie in the file before the first operation, and after each.
    states: list[State] = field(factory=list)
    begun: dict[int, int] = field(factory=dict)

    def told(self) -> None:
        """Everything until now was acknowledged."""
        self.states.append(dict(self.lies))

    def _bodies(self, size: int) -> list[Body]:
        # No two alike, and none that can be compressed.
        self.number += 1
        return [
            Outcome(run_id="run", step_id=StepId(0, f"{self.number}.{i}"), value=self.random.randbytes(size // 2).hex())
            for i in range(self.random.randint(1, 3))
        ]

    async def _held(self) -> Claim:
        thread = self.random.choice("abc")
        if thread not in self.claims:
            self.claims[thread] = await self.store.claim(thread, "w")
        return self.claims[thread]

    def _lie(self, claim: Claim, bodies: Sequence[Body]) -> None:
        self.lies[claim.thread_id] = (*self.lies.get(claim.thread_id, ()), *map(digest, bodies))

    async def write(self, size: int) -> None:
        claim, bodies = await self._held(), self._bodies(size)
        assert await self.store.append(claim, bodies) is Appended.OK
        self._lie(claim, bodies)

    async def post(self) -> None:
        """Begin two appends behind one another; the second one is sometimes begun when the first is known."""
        assert isinstance(self.store, SqliteStore)
        claim, one, two = await self._held(), self._bodies(600), self._bodies(60)
        first = self.store.post(claim, one)
        second = None
        if self.random.random() >= 0.5:
            self.begun[len(self.states) - 1] = 2
            second = self.store.post(claim, two, after=first)
        assert await first.wait() is Appended.OK
        self._lie(claim, one)
        self.told()
        assert await (second or self.store.post(claim, two, after=first)).wait() is Appended.OK
        self._lie(claim, two)

    async def fork(self) -> None:
        thread, into = self.random.choice(sorted(self.lies)), f"fork {self.number}"
        at, bodies = self.random.randint(1, len(self.lies[thread])), self._bodies(100)
        await self.store.fork(thread, at, into, bodies)
        self.lies[into] = (*self.lies[thread][:at], *map(digest, bodies))

    async def delete(self) -> None:
        thread = self.random.choice(sorted(self.lies))
        if thread in self.claims:
            await self.store.release(self.claims.pop(thread))
        await self.store.delete(thread)
        del self.lies[thread]

    async def reopen(self) -> None:
        for claim in self.claims.values():
            await self.store.release(claim)
        self.claims.clear()
        await self.subject.close()
        self.store = self.subject.open(Points())

    async def vacuum(self) -> None:
        assert isinstance(self.store, SqliteStore)
        await self.store.vacuum()

    async def do(self, what: str) -> None:
        match what:
            case "write":
                await self.write(self.random.choice((60, 60, 600, 6000)))
            case "write much":
                await self.write(280_000)
            case "post":
                await self.post()
            case "fork":
                await self.fork()
            case "delete":
                await self.delete()
            case "vacuum":
                await self.vacuum()
            case "reopen":
                await self.reopen()


#: Everything once, in an order that a seed says, and what is written most often in between.
_RARE = ("write much", "write much", "fork", "fork", "delete", "vacuum", "reopen")


async def used(
    kind: type[Sqlite], seed: int, folder: Path, *, writes: int = 16, synchronous: str | None = None
) -> Used:
    """Use a store as a seed says; one operation has ended before the next begins."""
    random = Random(seed)
    todo = ["write"] * writes + ["post"] * (writes // 4) + list(_RARE)
    random.shuffle(todo)
    states: list[State] = [{}]
    recording = Recording(lambda: len(states) - 1)
    subject = kind(folder)
    with recorded(recording, synchronous), mock.patch.object(opening, "_LOG_PAGES", PAGES):
        use = _Use(subject, random, subject.open(Points()), states=states)
        for what in ["write", *todo]:
            await use.do(what if use.lies else "write")
            use.told()
        await subject.close()
    return Used(recording, states, use.begun)


async def use_after(cut: Cut, used: Used, folder: Path, *, may_lose: bool = False) -> tuple[list[str], int]:
    """What is wrong with what the disk holds, and how many operations are lost."""
    subject = _restored(cut, folder)
    store = subject.open(Points())
    try:
        found = await _state(store)
    except FileProblem as e:
        return [f"file: {e}"], 0
    wrong = _intact(subject.path) or await _usable(store, found)
    await subject.close()
    # Two that were begun behind one another may both be there before anybody was told of the first.
    last = cut.known + used.begun.get(cut.known, 1)
    fitting = [n for n, state in enumerate(used.states[: last + 1]) if state == found]
    if not fitting:
        return [*wrong, f"file: it was never like this: {sorted(found)}"], 0
    lost = max(0, cut.known - fitting[-1])
    if lost and not may_lose:
        wrong.append(f"file: {lost} acknowledged operations are lost")
    return wrong, lost


async def _usable(store: JournalStore, found: State) -> list[str]:
    """Whoever held a thread is gone, whatever is left of its claim and of giving it back: who asks gets it."""
    for name, digests in found.items():
        claim = await store.claim(name, "next")
        if claim.head != len(digests) or await store.append(claim, [_AFTER]) is not Appended.OK:
            return [f"file: thread {name} cannot be gone on with"]
        await store.release(claim)
    return []


_AFTER = Outcome(run_id="run", step_id=StepId(0, "after"), value="the power is back")


async def _state(store: JournalStore) -> State:
    read = {info.thread_id: await store.read(info.thread_id) for info in await store.threads()}
    return {name: tuple(digest(entry.body) for entry in entries) for name, entries in read.items() if entries}
