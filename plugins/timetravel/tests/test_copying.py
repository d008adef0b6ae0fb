"""`locus threads copy`: what is copied, what is left out, and that it can be run again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from locus.core.journal import Body, Cancelled, Paused, Submitted
from locus.core.messages import Message, Role
from locus.journal import Signal
from locus_plugin_sqlite import SqliteStore

Locus = Callable[..., Any]

OPTIONS = ("--checkpointer", "old.db", "--to", "new.db")


def bodies(file: str, thread_id: str) -> list[Body]:
    async def read() -> list[Body]:
        async with SqliteStore(file) as store:
            return [entry.body for entry in await store.read(thread_id)]

    return anyio.run(read)


def hand_in(
    file: str, thread_id: str, queue: str, *, priority: int = 0, not_before: datetime | None = None, then: str = ""
) -> None:
    """Submit a turn, and send the thread another one, or a cancel, where `then` says so."""
    turn = Submitted(run_id="run", prompt=Message(Role.USER, "Go."), queue=queue)
    sent: dict[str, Submitted | Cancelled] = {"turn": turn, "cancel": Cancelled(run_id="run", reason="no")}

    async def submit() -> None:
        async with SqliteStore(file) as store:
            assert await store.submit(thread_id, [turn], queue=queue, priority=priority, not_before=not_before)
            if then:
                assert await store.signal(thread_id, Signal(body=sent[then], id=then))

    anyio.run(submit)


def take_all(file: str, queue: str) -> list[tuple[str, int]]:
    """What a worker would be offered, in this order, and with which priority."""

    async def take() -> list[tuple[str, int]]:
        found = []
        async with SqliteStore(file) as store:
            while (offer := await store.take([queue], "a worker")) is not None:
                found.append((offer.thread_id, offer.priority))
        return found

    return anyio.run(take)


def ready(file: str, queue: str) -> int:
    async def look() -> int:
        async with SqliteStore(file) as store:
            return (await store.depth(queue)).ready

    return anyio.run(look)


def test_threads_are_the_same_in_the_other_store(locus: Locus, here: Path) -> None:
    for name in ("one", "two"):
        locus("run", name, "-m", "toy:echo", "-q", "--thread", name, "--checkpointer", "old.db")

    done = locus("threads", "copy", *OPTIONS)

    assert (done.status, done.out, done.err) == (0, "one\ntwo\n", "")
    assert bodies("new.db", "one") == bodies("old.db", "one") != []
    assert bodies("new.db", "two") == bodies("old.db", "two")


def test_a_second_time_it_copies_what_is_new(locus: Locus, here: Path) -> None:
    locus("run", "x", "-m", "toy:echo", "-q", "--thread", "one", "--checkpointer", "old.db")
    locus("threads", "copy", *OPTIONS)
    locus("run", "x", "-m", "toy:echo", "-q", "--thread", "two", "--checkpointer", "old.db")

    done = locus("threads", "copy", *OPTIONS)

    assert (done.status, done.out) == (0, "two\n")
    assert "one: left out: it is there already" in done.err


def test_only_those_that_are_named(locus: Locus, here: Path) -> None:
    for name in ("one", "two"):
        locus("run", name, "-m", "toy:echo", "-q", "--thread", name, "--checkpointer", "old.db")

    assert locus("threads", "copy", "two", *OPTIONS).out == "two\n"
    unknown = locus("threads", "copy", "tow", *OPTIONS)

    assert (unknown.status, unknown.out) == (2, "")
    assert "did you mean 'two'?" in unknown.err


def test_a_run_that_waits_for_a_person_is_answered_there(locus: Locus, here: Path, tools: str) -> None:
    locus("run", "x", "-m", "toy:asks", "-t", tools, "-q", "--thread", "t", "--checkpointer", "old.db")
    assert locus("threads", "copy", *OPTIONS).status == 0

    done = locus("run", "--resume", "--thread", "t", "--answer", "no", "-q", "--checkpointer", "new.db")

    assert done.out == "Done.\n"


def test_a_turn_that_waits_for_a_worker_waits_there(locus: Locus, here: Path) -> None:
    hand_in("old.db", "t", "orders")

    done = locus("threads", "copy", *OPTIONS)

    assert (done.status, done.out) == (0, "t\n")
    assert "it waits for a worker in the queue orders" in done.err
    assert ready("new.db", "orders") == 1
    assert bodies("new.db", "t") == bodies("old.db", "t")


def test_turns_that_wait_for_a_worker_keep_their_priority_and_wait_here_as_before(locus: Locus, here: Path) -> None:
    for name, priority in (("low", 0), ("high", 2), ("low too", 0)):
        hand_in("old.db", name, "orders", priority=priority)

    assert locus("threads", "copy", *OPTIONS).status == 0

    wanted = [("high", 2), ("low", 0), ("low too", 0)]
    assert take_all("new.db", "orders") == wanted
    assert take_all("old.db", "orders") == wanted


def test_a_turn_that_is_to_begin_later_is_left_out_and_the_others_of_its_queue_are_copied(
    locus: Locus, here: Path
) -> None:
    hand_in("old.db", "later", "orders", not_before=datetime.now(UTC) + timedelta(hours=2))
    hand_in("old.db", "now", "orders")

    done = locus("threads", "copy", *OPTIONS)

    assert (done.status, done.out) == (1, "now\n")
    assert "later: left out: it sleeps until its time" in done.err
    assert bodies("new.db", "later") == []
    assert take_all("new.db", "orders") == take_all("old.db", "orders") == [("now", 0)]


@pytest.mark.parametrize("then", ["turn", "cancel"])
def test_a_queued_turn_that_was_sent_something_is_left_out(locus: Locus, here: Path, then: str) -> None:
    hand_in("old.db", "t", "orders", then=then)

    done = locus("threads", "copy", *OPTIONS)

    assert (done.status, done.out) == (1, "")
    assert "t: left out: a turn, an answer or a cancel was sent to it that it has not read" in done.err
    assert (bodies("new.db", "t"), take_all("new.db", "orders")) == ([], [])


def test_a_run_that_was_set_aside_before_it_began_does_not_run_there(locus: Locus, here: Path) -> None:
    hand_in("old.db", "t", "orders")

    async def set_aside() -> None:
        async with SqliteStore("old.db") as store:
            claim = await store.claim("t", "a worker")
            await store.append(claim, [Paused(run_id="run", segment=1, kind="dead_letter")])
            await store.release(claim)

    anyio.run(set_aside)

    assert locus("threads", "copy", *OPTIONS).status == 1
    assert take_all("new.db", "orders") == []


def test_a_source_that_is_not_there_does_not_look_like_one_that_was_copied(locus: Locus, here: Path) -> None:
    done = locus("threads", "copy", "--to", "sqlite:new.db", "--checkpointer", "sqlite:nowhere.db")

    assert (done.status, done.out, len(done.lines)) == (2, "", 1)
    assert "no threads in sqlite:nowhere.db; there is no such file" in done.err
    assert not Path("nowhere.db").exists()
    assert not Path("new.db").exists()


def test_a_source_without_threads_does_not_look_like_one_that_was_copied(locus: Locus, here: Path) -> None:
    hand_in("old.db", "t", "orders")

    async def delete() -> None:
        async with SqliteStore("old.db") as store:
            assert await store.delete("t")

    anyio.run(delete)

    done = locus("threads", "copy", *OPTIONS, "--json")

    assert (done.status, done.out, len(done.lines)) == (2, "", 1)
    assert "no threads in old.db" in done.err
    assert "no such file" not in done.err


def test_a_run_under_way_is_left_out_and_the_status_says_so(locus: Locus, here: Path) -> None:
    locus("run", "x", "-m", "toy:echo", "-q", "--thread", "done", "--checkpointer", "old.db")

    async def copy_meanwhile() -> Any:
        async with SqliteStore("old.db") as store:
            await store.claim("done", "a worker")
            return await anyio.to_thread.run_sync(lambda: locus("threads", "copy", *OPTIONS))

    done = anyio.run(copy_meanwhile)

    assert (done.status, done.out) == (1, "")
    assert "done: left out: its run is under way (running); let it end first" in done.err


@pytest.mark.parametrize("arguments", [[], ["--to", " "]])
def test_the_other_store_has_to_be_named(locus: Locus, arguments: list[str]) -> None:
    assert locus("threads", "copy", *arguments).status == 2


def test_as_json(locus: Locus, here: Path) -> None:
    locus("run", "x", "-m", "toy:echo", "-q", "--thread", "one", "--checkpointer", "old.db")

    done = locus("threads", "copy", *OPTIONS, "--json")

    assert done.out == '{"thread_id": "one", "copied": true, "text": ""}\n'
