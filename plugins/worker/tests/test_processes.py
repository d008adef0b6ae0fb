"""Workers in processes of their own, on one file: killed, frozen, stopped, watched."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from plugins.cli.tests.conftest import Locus

from locus.core.journal import Transition
from locus_plugin_sqlite import SqliteStore

from .processes import FilePlace, Process, charges, until

pytestmark = [pytest.mark.proof, pytest.mark.chaos]

Start = Callable[..., Process]


def ends(thread: str) -> list[str]:
    """Why the runs of a thread ended."""

    async def read() -> list[str]:
        async with SqliteStore("runs.db") as store:
            entries = await store.read(thread)
        assert [entry.n for entry in entries] == list(range(1, len(entries) + 1))
        return [e.body.why for e in entries if isinstance(e.body, Transition) and e.body.next_node == "end"]

    return anyio.run(read)


def twice(folder: Path) -> Counter[tuple[str, str]]:
    """What ran more than once in a run."""
    return Counter({what: n for what, n in charges(folder).items() if n > 1})


def test_runs_of_a_killed_worker_are_ended_by_another_and_nothing_is_done_twice(
    here: Path, start: Start, threads: Callable[..., list[str]]
) -> None:
    runs = threads("shop:many", 6)
    first = start("worker", "shop:many", "--slots", "3", SHOP_SECONDS="0.05")
    until(lambda: charges(here).total() >= 5, "five charges")
    second = start("worker", "shop:many", "--slots", "3", "--until-idle", SHOP_SECONDS="0.05")
    second.expect("started")

    first.signal(signal.SIGKILL)
    assert second.wait() == 0
    # What the dead worker had comes back when its lease is over.
    last = start("worker", "shop:many", SHOP_SECONDS="0.0")
    until(lambda: all(ends(thread) for thread in runs), f"the end of all runs: {last.lines}")

    assert twice(here) == Counter()
    assert [ends(thread) for thread in runs] == [["NoToolCalls"]] * 6
    assert all("outcome unknown" not in "".join(each.said) for each in (second, last))


def test_sigterm_lets_a_run_go_to_another_worker_at_its_next_step(
    here: Path, start: Start, threads: Callable[..., list[str]]
) -> None:
    (thread,) = threads("shop:slow")
    first = start("worker", "shop:slow")
    until(lambda: any(what == "gate" for _, what in charges(here)), "the gate")

    first.signal(signal.SIGTERM)
    first.expect("draining")
    (here / "gate").touch()
    assert first.wait() == 0
    assert [each["text"] for each in first.of_kind("back")] == ["yielded"]
    assert ends(thread) == []

    second = start("worker", "shop:slow", "--until-idle")
    assert second.wait() == 0
    assert ends(thread) == ["NoToolCalls"]
    assert Counter(what for _, what in charges(here)) == {"charge 1": 1, "gate": 1, "charge 2": 1}


def test_a_run_that_does_not_come_to_a_step_is_cancelled_and_given_back(
    here: Path, start: Start, threads: Callable[..., list[str]]
) -> None:
    (thread,) = threads("shop:slow")
    first = start("worker", "shop:slow", "--drain", "0.2")
    until(lambda: any(what == "gate" for _, what in charges(here)), "the gate")

    first.signal(signal.SIGTERM)

    assert first.wait() == 0
    assert first.expect("back")["text"] == "the worker leaves"
    (here / "gate").touch()
    assert start("worker", "shop:slow", "--until-idle").wait() == 0
    assert ends(thread) == ["NoToolCalls"]
    assert twice(here) == Counter()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_leaves_at_once(
    here: Path, start: Start, threads: Callable[..., list[str]], number: int
) -> None:
    threads("shop:slow")
    worker = start("worker", "shop:slow")
    until(lambda: any(what == "gate" for _, what in charges(here)), "the gate")

    worker.signal(number)
    worker.expect("draining")
    worker.signal(number)

    assert worker.wait() == 128 + number


def test_a_worker_that_was_frozen_past_its_lease_writes_nothing_when_it_thaws(
    here: Path, place: FilePlace, start: Start, threads: Callable[..., list[str]]
) -> None:
    runs = threads("shop:many", 2)
    frozen = start("worker", "shop:many", "--slots", "2", SHOP_SECONDS="0.2")
    until(lambda: charges(here).total() >= 3, "three charges")
    place.freeze(frozen)

    successor = start("worker", "shop:many", "--slots", "2", SHOP_SECONDS="0.4")
    successor.expect("taken")
    before = charges(here).total()
    until(lambda: charges(here).total() > before, "the successor at work")
    frozen.signal(signal.SIGCONT)
    until(lambda: all(ends(thread) for thread in runs), "the end of all runs")

    # Without a refused write this would prove nothing. The worker says so a moment after the other one's end.
    until(
        lambda: [each for each in tuple(frozen.lines) if each["kind"] == "back" and "another worker" in each["text"]],
        "a refused write",
    )
    assert twice(here) == Counter()
    assert [ends(thread) for thread in runs] == [["NoToolCalls"]] * 2


def test_a_run_whose_workers_die_is_set_aside_and_goes_on_when_a_person_says_so(
    here: Path, start: Start, locus: Locus, threads: Callable[..., list[str]]
) -> None:
    (thread,) = threads("shop:deadly")
    for _ in range(5):
        assert start("worker", "shop:deadly").wait() == 9
    worker = start("worker", "shop:deadly")

    done = worker.expect("done")

    assert done["is_failure"]
    assert "5 attempts in a row broke off" in done["text"]
    found = locus("runs", "--state", "set-aside", "--checkpointer", "runs.db")
    assert thread in found.out
    (here / "mended").touch()
    assert locus("runs", "retry", thread, "--checkpointer", "runs.db").status == 0
    until(lambda: ends(thread), f"the end: {worker.lines}")
    assert ends(thread) == ["NoToolCalls"]


def test_a_run_is_watched_while_its_worker_is_killed(
    here: Path, start: Start, threads: Callable[..., list[str]]
) -> None:
    (thread,) = threads("shop:slow")
    first = start("worker", "shop:slow")
    watcher = start("runs", "watch", thread)
    until(lambda: any(what == "gate" for _, what in charges(here)), "the gate")
    watcher.expect("returned")

    first.signal(signal.SIGKILL)
    start("worker", "shop:slow")

    assert watcher.wait() == 0
    kinds = [each["kind"] for each in watcher.lines]
    assert kinds[:4] == ["queued", "began", "called", "returned"]
    assert "resumed" in kinds
    assert kinds[-1] == "ended"
    assert "outcome unknown" in str([each["text"] for each in watcher.lines if each["kind"] == "returned"])
    assert twice(here) == Counter()


def test_workers_are_listed_while_they_live(here: Path, start: Start, locus: Locus) -> None:
    one, two = start("worker", "shop:agent", "--slots", "2"), start("worker", "shop:many", "--queue", "tenant:*")
    one.expect("started")
    two.expect("started")
    text = locus("workers", "--checkpointer", "runs.db").out
    assert len(text.splitlines()) == 2
    assert "shop" in text
    assert "many, tenant:*" in text

    one.signal(signal.SIGKILL)
    until(lambda: len(locus("workers", "--checkpointer", "runs.db").out.splitlines()) == 1, "the dead one is gone")
