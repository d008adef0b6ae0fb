"""A store that dies at each write: it really does, the rest of the run goes on, and a wrong plugin is found out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from locus import Agent, Hook, tool
from locus.core.errors import NothingToResume, StoreError
from locus.core.journal import Transition
from locus.journal import MemoryStore
from locus.journal.store import JournalStore
from locus.plugin import RunContext, hookimpl
from locus_testkit import CrashingStore, FailingStore, ScriptedModel, SimulatedCrash, call, every_crash, is_crash

pytestmark = pytest.mark.anyio


@tool(effect="keyed")
def look() -> str:
    """Look."""
    return "seen"


def agent(store: JournalStore, *hooks: Hook) -> Agent[Any, Any]:
    model = ScriptedModel(script=lambda _: [call("look"), call("look"), "Done."])
    return Agent(model, tools=[look], checkpointer=store, hooks=list(hooks))


async def count_written(store: JournalStore) -> int:
    return len(await store.read("t"))


async def test_it_dies_once_at_every_write_before_and_after_it_is_stored() -> None:
    plain = CrashingStore()
    assert (await agent(plain).run("Look.", thread_id="t")).text == "Done."
    assert plain.writes > 5
    found, kept = [], list[int]()
    for store in every_crash():
        died_with = list[int]()

        async def between(store: CrashingStore = store, seen: list[int] = died_with) -> None:
            seen.append(await count_written(store))

        result = await store.outlive(agent(store), "Look.", between=between)
        assert result is None or result.text == "Done."
        assert store.crashes == len(died_with)
        if store.crashes:
            found.append((store.at, store.stored))
            kept += died_with
    assert found == [(at, stored) for at in range(1, plain.writes + 1) for stored in (False, True)]
    assert kept == sorted(kept), "each write leaves as much behind as the one before, or more"
    assert (kept[0], kept[-1]) == (0, await count_written(plain))


async def test_what_is_dead_changes_nothing_until_another_process_begins() -> None:
    store = CrashingStore(2)
    with pytest.raises(SimulatedCrash):
        await agent(store).run("Look.", thread_id="t")
    (before,) = await store.threads()
    for refused in (
        store.claim("t", "w"),
        store.append(store.claims[0], ()),
        store.renew(store.claims[0]),
        store.release(store.claims[0]),
        store.fork("t", 1, "u"),
        store.delete("t"),
    ):
        with pytest.raises(SimulatedCrash):
            await refused
    assert await store.threads() == (before,)
    assert before.holder is not None, "the dead give nothing back"
    await store.revive()
    assert (await agent(store).resume("t")).text == "Done."
    assert store.crashes == 1


@pytest.mark.parametrize("stored", [False, True])
async def test_it_can_die_at_the_transition_of_a_node(stored: bool) -> None:
    store = CrashingStore("execute", stored=stored)
    with pytest.raises(SimulatedCrash):
        await agent(store).run("Look.", thread_id="t")
    nodes = [entry.body.node for entry in await store.read("t") if isinstance(entry.body, Transition)]
    assert ("execute" in nodes) is stored
    await store.revive()
    assert (await agent(store).resume("t")).text == "Done."
    assert store.crashes == 1


@pytest.mark.parametrize("stored", [False, True])
async def test_a_store_that_fails_does_so_once_and_its_process_continues(stored: bool) -> None:
    store = FailingStore("execute", stored=stored)
    with pytest.raises(StoreError, match="failed in this write"):
        await agent(store).run("Look.", thread_id="t")
    nodes = [entry.body.node for entry in await store.read("t") if isinstance(entry.body, Transition)]
    assert ("execute" in nodes) is stored
    assert (await agent(store).resume("t")).text == "Done."
    assert (store.dead, store.crashes) == (False, 1)


async def test_a_release_is_a_write_as_well_and_a_run_that_had_ended_has_no_result() -> None:
    plain = CrashingStore()
    await agent(plain).run("Look.", thread_id="t")
    store = CrashingStore(plain.writes)
    assert await store.outlive(agent(store), "Look.") is None
    assert await count_written(store) == await count_written(plain)


async def test_a_run_that_is_open_and_not_found_by_a_resume_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(self: object, thread_id: str) -> None:
        raise NothingToResume(thread_id)

    plain = CrashingStore()
    await agent(plain).run("Look.", thread_id="t")
    monkeypatch.setattr(Agent, "resume", nothing)
    told = list[bool]()
    for store in every_crash():
        try:
            await store.outlive(agent(store), "Look.")
        except NothingToResume:
            told.append(True)
        else:
            told.append(False)
    # Nothing was stored in the first; from its last transition on it had ended, and at the end it lived.
    assert told == [False, *[True] * (2 * plain.writes - 4), *[False] * 5]


async def test_any_store_can_lie_below(tmp_path: Path) -> None:
    below = MemoryStore()
    store = CrashingStore(3, stored=True, store=below)
    result = await store.outlive(agent(store), "Look.", thread_id="other")
    assert result is not None
    assert await below.read("other") == await store.read("other") != ()
    assert (store.keeps_history, store.snapshot_every) == (below.keeps_history, below.snapshot_every)


async def test_other_errors_are_not_deaths() -> None:
    store = CrashingStore(3)
    made = agent(store)
    held = await store.claim("t", "somebody")
    with pytest.raises(Exception, match="busy"):
        await store.outlive(made, "Look.")
    await store.release(held)
    assert is_crash(BaseExceptionGroup("", [BaseExceptionGroup("", [SimulatedCrash()])]))
    assert not is_crash(KeyboardInterrupt())


# -- what it is for -------------------------------------------------------------------------------


class Counting(Hook):
    """Says how many calls of tools there were, which it counts by itself: a resume finds nothing of that."""

    def __init__(self) -> None:
        self.count = 0

    @hookimpl
    def locus_on_tool_complete(self, event: Any, run: RunContext) -> None:
        self.count += 1

    @hookimpl
    def locus_on_terminate(self, event: Any, run: RunContext) -> None:
        run.report("calls", self.count)


class Reading(Hook):
    """The same, read from the state."""

    @hookimpl
    def locus_on_terminate(self, event: Any, run: RunContext) -> None:
        run.report("calls", len(run.state.tool_executions))


async def count_reports(hook: Callable[[], Hook]) -> set[int]:
    """What is reported, wherever the run has died."""
    found = set[int]()
    for store in every_crash(least=10):

        def made(store: CrashingStore = store) -> Agent[Any, Any]:
            return agent(store, hook())

        result = await store.outlive(made, "Look.")
        if result is not None:
            found.add(result.reports["calls"])
    return found


async def test_a_wrong_plugin_is_found_out_and_a_right_one_is_not() -> None:
    assert await count_reports(Reading) == {2}
    assert await count_reports(Counting) > {2}


# -- what cannot be right -------------------------------------------------------------------------


def test_a_store_that_nobody_uses_is_reported() -> None:
    with pytest.raises(AssertionError, match="checkpointer=store"):
        for _ in every_crash():
            pass


async def outlive_all(least: int) -> None:
    for store in every_crash(least=least):
        await store.outlive(agent(store), "Look.")


async def test_too_few_crashes_are_reported() -> None:
    with pytest.raises(AssertionError, match=r"died \d+ times, and at least 1000"):
        await outlive_all(1000)


async def test_a_run_without_end_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locus_testkit.crashes._MOST", 3)
    with pytest.raises(AssertionError, match="does not end within 3 writes"):
        await outlive_all(1)


def test_writes_are_counted_from_one() -> None:
    with pytest.raises(ValueError, match="counted from 1"):
        CrashingStore(0)
