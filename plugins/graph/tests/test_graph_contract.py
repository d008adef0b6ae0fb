"""What graphs need of a store: memory and SQLite keep it, and one that is broken on purpose is found."""

from __future__ import annotations

import operator
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from locus.core.journal import Asked, Body, Outcome
from locus.journal import Appended, Claim, JournalStore, MemoryStore
from locus_plugin_graph import StateGraph
from locus_plugin_sqlite import SqliteStore
from locus_testkit import GraphContract


class TestInMemory(GraphContract):
    @asynccontextmanager
    async def open_store(self, folder: Path) -> AsyncIterator[JournalStore]:
        yield MemoryStore()


@pytest.mark.proof
class TestInSqlite(GraphContract):
    def open_store(self, folder: Path) -> SqliteStore:
        return SqliteStore(folder / "journal.db", sync="normal")


# -- what is broken is found ------------------------------------------------------------------------


class Forgets(MemoryStore):
    """Says that it has written what it drops."""

    def __init__(self, *kinds: type) -> None:
        super().__init__()
        self.kinds = kinds

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        kept = [body for body in bodies if not isinstance(body, self.kinds)]
        return await super().append(claim, kept) if kept else Appended.OK


class ForgetsOutcomes(TestInMemory):
    @asynccontextmanager
    async def open_store(self, folder: Path) -> AsyncIterator[JournalStore]:
        yield Forgets(Outcome)


class ForgetsQuestions(TestInMemory):
    @asynccontextmanager
    async def open_store(self, folder: Path) -> AsyncIterator[JournalStore]:
        yield Forgets(Asked)


class MergesBackwards(TestInMemory):
    def make_graph(self) -> Any:
        return StateGraph(reducers={"log": lambda left, right: operator.add(right, left)}, effect="pure")


BROKEN = [
    (ForgetsOutcomes, "test_finished_tasks_do_not_run_again_after_a_failure"),
    (ForgetsOutcomes, "test_crash_at_any_write_changes_nothing"),
    (ForgetsOutcomes, "test_fork_goes_on_by_itself_and_a_replay_finds_no_difference"),
    (ForgetsQuestions, "test_questions_are_answered_in_any_order"),
    (MergesBackwards, "test_values_come_back_in_the_order_of_the_frontier"),
]
for _broken, _ in BROKEN:
    _broken.__test__ = False  # type: ignore[attr-defined]


@pytest.mark.parametrize(("broken", "law"), BROKEN)
def test_what_is_broken_on_purpose_fails_the_law(broken: type[GraphContract], law: str, tmp_path: Path) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011 - an assertion, or what the store's lie leads to
        anyio.run(getattr(broken(), law), tmp_path)


def test_every_law_has_something_that_breaks_it() -> None:
    laws = {name for name in vars(GraphContract) if name.startswith("test_")}
    assert {law for _, law in BROKEN} == laws
