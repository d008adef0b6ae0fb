"""`locus threads copy`: what is copied, what is left out, and that it can be run again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from locus.core.journal import Body, Submitted
from locus.core.messages import Message, Role
from locus_plugin_sqlite import SqliteStore

Locus = Callable[..., Any]

OPTIONS = ("--checkpointer", "old.db", "--to", "new.db")


def bodies(file: str, thread_id: str) -> list[Body]:
    async def read() -> list[Body]:
        async with SqliteStore(file) as store:
            return [entry.body for entry in await store.read(thread_id)]

    return anyio.run(read)


def hand_in(file: str, thread_id: str, queue: str) -> None:
    async def submit() -> None:
        turn = Submitted(run_id="run", prompt=Message(Role.USER, "Go."), queue=queue)
        async with SqliteStore(file) as store:
            assert await store.submit(thread_id, [turn], queue=queue)

    anyio.run(submit)


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
