"""Live: what is written to a thread reaches those who look, without gaps, also after a lost connection."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from locus.core.errors import JournalDamaged, LocusError, StoreError
from locus.journal import JournalStore, MemoryStore
from locus_plugin_sqlite import SqliteStore
from locus_plugin_viewer.live import Channels
from locus_testkit import call

from .servers import Served, serving
from .shop import make_agent


def read_events(client: httpx.Client, thread_id: str, after: int, count: int, last: str = "") -> list[dict[str, Any]]:
    """The next events of a thread, each with its id."""
    headers = {"last-event-id": last} if last else {}
    found: list[dict[str, Any]] = []
    with client.stream("GET", "/thread/events", params={"id": thread_id, "after": after}, headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        number = ""
        for line in answer.iter_lines():
            if line.startswith("id: "):
                number = line.removeprefix("id: ")
            elif line.startswith("data: {"):
                found.append({"id": number, **json.loads(line.removeprefix("data: "))})
                if len(found) == count:
                    break
    return found


async def _again(served: Served, prompt: str) -> None:
    await make_agent([call("find_order", number=2)], "Two.", store=served.viewer.store).run(prompt, thread_id="run-1")


def test_what_is_written_meanwhile_comes_as_blocks(served: Served, browser: httpx.Client) -> None:
    served.run(lambda: _again(served, "And order 2?"))
    (event,) = read_events(browser, "run-1", 15, 1)
    assert event["id"] == str(event["head"])
    assert "And order 2?" in event["html"]
    assert 'id="b16"' in event["html"]
    assert 'id="b1"' not in event["html"]


def test_a_client_that_comes_back_gets_what_it_has_missed(served: Served, browser: httpx.Client) -> None:
    served.run(lambda: _again(served, "And order 2?"))
    # It has seen entry 18, in the middle of the run; what it first asked for does not count.
    (event,) = read_events(browser, "run-1", 1, 1, last="18")
    assert "And order 2?" not in event["html"]
    assert "Two." in event["html"]


def test_a_thread_that_does_not_exist_is_waited_for(served: Served, browser: httpx.Client) -> None:
    async def begin() -> None:
        await make_agent("Here.", store=served.viewer.store).run("Who is there?", thread_id="new")

    served.run(begin)
    (event,) = read_events(browser, "new", 0, 1)
    assert "Who is there?" in event["html"]


def test_a_client_that_has_seen_more_than_there_is_gets_what_comes_next(served: Served, browser: httpx.Client) -> None:
    follow = {"id": "run-1", "after": "999999999999"}
    found: list[str] = []
    with browser.stream("GET", "/thread/events", params=follow) as answer:
        for line in answer.iter_lines():
            found.append(line)
            if line.startswith("retry:"):
                served.run(lambda: _again(served, "And order 2?"))
            if line.startswith("data: {"):
                break
    assert "And order 2?" in found[-1]


# -- many who look --------------------------------------------------------------------------------


class _Counting:
    """A store that counts how often a thread is read."""

    def __init__(self, store: JournalStore) -> None:
        self._store, self.reads = store, 0

    async def read(self, thread_id: str, after: int = 0) -> Any:
        self.reads += 1
        return await self._store.read(thread_id, after)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.fixture(params=[MemoryStore, SqliteStore])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Any]:
    return MemoryStore if request.param is MemoryStore else lambda: SqliteStore(tmp_path / "many.db")


def heads(text: str) -> list[int]:
    return [int(line.removeprefix("id: ")) for line in text.splitlines() if line.startswith("id: ")]


@pytest.mark.anyio
async def test_everybody_who_looks_sees_every_entry_once(make_store: Callable[[], Any]) -> None:
    store = make_store()
    agent = make_agent(*[[call("find_order", number=n)] for n in range(12)], "All of them.", store=store)
    channels = Channels(store, lambda thread_id, blocks: " ".join(f"<{b.first}-{b.last}>" for b in blocks))
    seen: list[list[int]] = [[] for _ in range(5)]
    # A turn has three entries and each call of it four: a model's answer, a call's result, two transitions.
    head = 1 + 12 * 4 + 3

    async def look(number: int) -> None:
        async with aclosing(channels.follow("run", 0)) as events:
            async for text in events:
                seen[number] += heads(text)
                if head in seen[number]:
                    return

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for number in range(len(seen)):
                tasks.start_soon(look, number)
            await agent.run("Look them all up.", thread_id="run")
            assert len(await store.read("run")) == head
    for each in seen:
        assert each == sorted(set(each))
    if hasattr(store, "aclose"):
        await store.aclose()


@pytest.mark.anyio
async def test_fifty_who_look_at_one_thread_read_it_about_as_often_as_one() -> None:
    async def count(viewers: int) -> int:
        store = _Counting(MemoryStore())
        await make_agent("Done.", store=store._store).run("Begin.", thread_id="run")
        channels = Channels(store, lambda thread_id, blocks: "")
        head = len(await store.read("run"))
        store.reads = 0
        with anyio.move_on_after(1):
            async with anyio.create_task_group() as tasks:
                for _ in range(viewers):
                    tasks.start_soon(_drain, channels, head)
        return store.reads

    one, fifty = await count(1), await count(50)
    assert one > 0
    # Each also looks once where its thread begins to be followed; a busy machine makes all of them look less often.
    assert fifty <= one + 50 + 5


async def _drain(channels: Channels, head: int) -> None:
    async with aclosing(channels.follow("run", head)) as events:
        async for _ in events:
            pass


class _Away(_Counting):
    """A store whose server does not answer for the next few looks, or whose entries turn out to be damaged."""

    def __init__(self, store: JournalStore, *errors: LocusError) -> None:
        super().__init__(store)
        self.errors = list(errors)

    async def read(self, thread_id: str, after: int = 0) -> Any:
        if self.errors:
            raise self.errors.pop()
        return await super().read(thread_id, after)


def test_a_page_goes_on_when_a_server_is_back() -> None:
    store = _Away(MemoryStore())
    with serving(lambda: store) as served, served.client() as client:
        served.run(lambda: make_agent("Done.", store=store._store).run("Begin.", thread_id="run"))
        store.errors = [StoreError("the server does not answer")]
        # The connection ends without a word that it is over, so a browser asks again.
        assert client.get("/thread/events", params={"id": "run", "after": "0"}).text == "retry: 1000\n\n"
        assert read_events(client, "run", 0, 1)[0]["head"] > 1


def test_a_page_of_a_damaged_thread_asks_no_more() -> None:
    store = _Away(MemoryStore())
    with serving(lambda: store) as served, served.client() as client:
        served.run(lambda: make_agent("Done.", store=store._store).run("Begin.", thread_id="run"))
        store.errors = [JournalDamaged("entry 1 is missing")]
        assert "event: gone" in client.get("/thread/events", params={"id": "run", "after": "0"}).text


def test_a_page_that_was_closed_is_not_read_for_any_more() -> None:
    store = _Counting(MemoryStore())
    with serving(lambda: store) as served, served.client() as client:
        served.run(lambda: make_agent("Done.", store=store._store).run("Begin.", thread_id="run"))
        assert read_events(client, "run", 0, 1)[0]["head"] > 1
        give_up = time.monotonic() + 60
        before = -1
        while store.reads != before:  # a page that is followed is read for within a second
            assert time.monotonic() < give_up
            before = store.reads
            time.sleep(2)
