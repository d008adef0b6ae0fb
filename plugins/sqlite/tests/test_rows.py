"""What stands in the file: one row an append, large texts once, forks without copies, and all of it readable again."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from locus.core.journal import BLANK, Body, Outcome, StepId, Transition, delta, fold
from locus.core.messages import Message, Role
from locus.core.state import AgentState
from locus.journal.store import Appended
from locus_kit.entry_json import from_bytes, from_json, to_bytes, to_json
from locus_plugin_sqlite import SqliteStore, blobs
from locus_testkit.machines import JournalStoreMachine
from locus_testkit.strategies import step_bodies

from .process import step

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def rows(path: Path, statement: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(statement).fetchall()


async def add(store: SqliteStore, thread: str, *batches: Sequence[Body]) -> None:
    claim = await store.claim(thread, "w")
    for batch in batches:
        assert await store.append(claim, batch) is Appended.OK
    await store.release(claim)


async def bodies(store: SqliteStore, thread: str) -> list[Body]:
    return [entry.body for entry in await store.read(thread)]


# -- one row an append ----------------------------------------------------------------------------


async def test_an_append_is_one_row_whatever_it_holds(path: Path) -> None:
    async with SqliteStore(path) as store:
        await add(store, "t", [step(1), step(2), step(3)], [step(4)])
        assert rows(path, "SELECT thread, last, substr(body, 1, 1) FROM journal") == [("t", 3, b"["), ("t", 4, b"[")]
        assert [entry.n for entry in await store.read("t", after=1)] == [2, 3, 4]


async def test_an_append_of_nothing_writes_nothing_and_hears_of_the_fence(path: Path) -> None:
    async with SqliteStore(path) as store:
        claim = await store.claim("t", "w")
        assert await store.append(claim, []) is Appended.OK
        await store.release(claim)
        assert await store.append(claim, []) is Appended.FENCED
        assert rows(path, "SELECT * FROM entries") == []


async def test_a_claim_works_in_every_store_of_the_file(path: Path) -> None:
    async with SqliteStore(path) as here, SqliteStore(path) as there:
        claim = await here.claim("t", "w")
        assert await there.append(claim, [step(1)]) is Appended.OK
        assert await there.renew(claim)
        assert await bodies(here, "t") == [step(1)]
        await there.release(claim)
        assert await here.append(claim, [step(2)]) is Appended.FENCED


#: What could be taken for something else in a row. Half a surrogate pair is what a careless escape leaves behind.
TRAPS = [
    *(
        "\0",
        "\0\0",
        "\0000",
        "\x000",
        "\x001",
        "\0" * 70,
        "\0" + "x" * 70,
        "\ud800",
        "\ud800" * 70,
        "x" * 5000,
        "y" * 5000,
    ),
    *('"\x000"', '\\"\x000"', '"\x000', '"\x000"' * 20, "\\u00000", "[", "{", "]\n[", "\x78\x9c"),
]
awkward = st.text(max_size=20) | st.sampled_from(TRAPS)
data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | awkward,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(awkward, inner, max_size=3),
    max_leaves=8,
)


#: The same examples everywhere, and no deadline: the machine may be busy.
steady = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@steady
@given(st.lists(st.dictionaries(awkward, data, max_size=3), min_size=1, max_size=3))
def test_every_json_form_comes_back(forms: list[dict[str, Any]]) -> None:
    assert from_bytes(to_bytes(forms)) == forms
    for each in (forms, [*forms, "z" * 2000, *TRAPS]):
        row = blobs.pack(each)
        assert blobs.unpack(row.body, {}) == each


@steady
@given(st.lists(step_bodies(), min_size=1, max_size=4))
def test_every_step_comes_back(steps: list[Body]) -> None:
    assert from_json(blobs.unpack(blobs.pack(to_json(steps)).body, {})) == steps


# -- large payloads -------------------------------------------------------------------------------


@settings(steady, max_examples=15)
@given(st.lists(data, max_size=3), st.sampled_from([40_000, 300_000]))
def test_large_forms_come_back(small: list[Any], size: int) -> None:
    forms = [{"small": small, "\0": "\0", "long": "é" * size}, {"list": list(range(60_000))}, {"again": "é" * size}]
    row = blobs.pack(forms)
    assert len(row.body) < 200
    stored = {sha: packed_content(content) for sha, content in row.blobs.items()}
    assert blobs.unpack(row.body, stored) == forms


def packed_content(content: bytes) -> bytes:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE blobs (sha, body)")
        db.execute("CREATE TABLE uses (key, sha)")
        blobs.put(db, 1, {"00": content})
        found: bytes = db.execute("SELECT body FROM blobs").fetchone()[0]
        return found


async def test_a_large_text_is_kept_once_for_all_threads_and_goes_with_the_last(path: Path) -> None:
    large, other = "a" * 300_000, "b" * 300_000
    async with SqliteStore(path) as store:
        for thread in ("one", "two"):
            await add(store, thread, [Outcome(run_id="r", step_id=StepId(0, "1"), value=[large, {"again": large}])])
        await add(store, "two", [Outcome(run_id="r", step_id=StepId(0, "2"), value=other)])
        assert rows(path, "SELECT count(*) FROM blobs") == [(2,)]
        assert rows(path, "SELECT max(length(body)) < 1000 FROM entries") == [(1,)]
        await store.delete("one")
        assert [body.value for body in await bodies(store, "two") if isinstance(body, Outcome)] == [
            (large, {"again": large}),
            other,
        ]
        await store.delete("two")
        assert rows(path, "SELECT (SELECT count(*) FROM blobs), (SELECT count(*) FROM uses)") == [(0, 0)]


async def test_vacuum_gives_room_back(path: Path) -> None:
    async with SqliteStore(path) as store:
        await add(
            store, "t", *([Outcome(run_id="r", step_id=StepId(0, "s", n), value=f"{n}" * 40_000)] for n in range(100))
        )
        await store.delete("t")
        before = size(path)
        assert await store.vacuum() > 0
        assert size(path) < before
        await add(store, "t", [step(1)])
        assert await bodies(store, "t") == [step(1)]


def size(path: Path) -> int:
    return sum(each.stat().st_size for each in path.parent.iterdir())


# -- snapshots ------------------------------------------------------------------------------------


def talk(size: int) -> list[tuple[Transition, AgentState]]:
    """Transitions that each add a message."""
    made: list[tuple[Transition, AgentState]] = []
    state = BLANK
    for n in range(size):
        after = state.with_message(Message(Role.USER, f"message {n}"))
        made.append((Transition(run_id="r", node="think", next_node="think", delta=delta(state, after)), after))
        state = after
    return made


async def test_snapshots_together_are_as_long_as_the_state(path: Path) -> None:
    made = talk(300)
    async with SqliteStore(path) as store:
        claim = await store.claim("t", "w")
        for n, (body, state) in enumerate(made, 1):
            await store.append(claim, [body])
            if n % 10 == 0:
                assert await store.snapshot(claim, n, state, body) is True
        await store.release(claim)
        sizes = [length for (length,) in rows(path, "SELECT length(body) FROM snapshots ORDER BY key")]
        assert len(sizes) == 30
        assert sizes[-1] < 1.2 * sizes[1]

        claim = await store.claim("t", "w")
        assert claim.snapshot is not None
        assert (claim.snapshot.at, claim.snapshot.state, claim.snapshot.last) == (300, made[-1][1], made[-1][0])
        assert claim.entries == ()


async def test_snapshots_go_on_where_another_worker_left_off(path: Path) -> None:
    made = talk(9)
    for first in (0, 3, 6):
        async with SqliteStore(path) as store:
            claim = await store.claim("t", "w")
            await store.append(claim, [body for body, _ in made[first : first + 3]])
            assert await store.snapshot(claim, first + 2, made[first + 1][1], made[first + 1][0])
    async with SqliteStore(path) as store:
        claim = await store.claim("t", "w")
        assert claim.snapshot is not None
        assert (claim.snapshot.at, claim.snapshot.state) == (8, made[7][1])
        assert [entry.n for entry in claim.entries] == [9]
        assert fold(claim.snapshot.state, [entry.body for entry in claim.entries]) == made[8][1]


async def test_a_snapshot_of_what_is_not_there_is_refused(path: Path) -> None:
    (body, state), *_ = talk(1)
    async with SqliteStore(path) as store:
        claim = await store.claim("t", "w")
        assert await store.snapshot(claim, 1, state, body) is False
        await store.append(claim, [body])
        assert await store.snapshot(claim, 1, state, body) is True
        assert await store.snapshot(claim, 1, state, body) is True
        assert rows(path, "SELECT count(*) FROM snapshots") == [(1,)]


# -- forks ----------------------------------------------------------------------------------------


async def test_a_fork_copies_nothing(path: Path) -> None:
    made = talk(20)
    async with SqliteStore(path) as store:
        await add(store, "t", *([body] for body, _ in made))
        before = rows(path, "SELECT count(*), sum(length(body)) FROM entries")
        await store.fork("t", 20, "fork")
        await store.fork("fork", 7, "deeper")
        assert rows(path, "SELECT count(*), sum(length(body)) FROM entries") == before
        assert await bodies(store, "deeper") == [body for body, _ in made[:7]]


async def test_a_fork_may_be_made_in_the_middle_of_an_append(path: Path) -> None:
    async with SqliteStore(path) as store:
        await add(store, "t", [step(1), step(2), step(3)])
        await store.fork("t", 2, "fork")
        await add(store, "fork", [step(9)])
        await store.delete("t")
        assert await bodies(store, "fork") == [step(1), step(2), step(9)]
        assert [entry.n for entry in await store.read("fork", after=1)] == [2, 3]


async def test_a_deleted_thread_keeps_what_its_forks_need_and_no_more(path: Path) -> None:
    async with SqliteStore(path) as store:
        await add(store, "t", *([step(n)] for n in range(1, 11)))
        await store.fork("t", 4, "four")
        await store.fork("t", 6, "six")
        await store.delete("t")
        assert rows(path, "SELECT count(*) FROM entries") == [(6,)]
        await add(store, "t", [step(100)])
        assert await bodies(store, "t") == [step(100)]
        await store.delete("six")
        assert rows(path, "SELECT count(*) FROM entries") == [(5,)]
        assert await bodies(store, "four") == [step(n) for n in range(1, 5)]
        await store.delete("four")
        assert await bodies(store, "t") == [step(100)]
        assert rows(path, "SELECT count(*) FROM entries") == [(1,)]
        assert rows(path, "SELECT count(*) FROM threads") == [(1,)]


async def test_a_fork_begins_with_the_snapshots_that_it_shares(path: Path) -> None:
    made = talk(12)
    async with SqliteStore(path) as store:
        claim = await store.claim("t", "w")
        await store.append(claim, [body for body, _ in made])
        for at in (4, 8, 12):
            await store.snapshot(claim, at, made[at - 1][1], made[at - 1][0])
        await store.release(claim)
        await store.fork("t", 9, "fork")
        await store.delete("t")

        claim = await store.claim("fork", "w")
        assert claim.snapshot is not None
        assert (claim.snapshot.at, claim.snapshot.state) == (8, made[7][1])
        await store.append(claim, [made[9][0], made[10][0]])
        assert await store.snapshot(claim, 11, made[10][1], made[10][0])
        await store.release(claim)
        again = await store.peek("fork")
        assert again is not None
        assert again.snapshot is not None
        assert (again.snapshot.at, again.snapshot.state) == (11, made[10][1])


# -- any order of everything --------------------------------------------------------------------------


class OnAsyncio(JournalStoreMachine):
    def make_store(self, folder: Path) -> SqliteStore:
        return SqliteStore(folder / "runs.db", sync="normal")


class OnTrio(OnAsyncio):
    backend = "trio"


for machine in (OnAsyncio, OnTrio):
    assert issubclass(machine, RuleBasedStateMachine)
    machine.TestCase.settings = settings(steady, max_examples=15, stateful_step_count=20)

TestOnAsyncio = OnAsyncio.TestCase
TestOnTrio = OnTrio.TestCase
