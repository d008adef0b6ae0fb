"""Agents that keep their runs in a file."""

from __future__ import annotations

import gc
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import wait_all_tasks_blocked

from locus import Agent, ToolStartEvent, tool
from locus.core.errors import NothingToResume, SettingsError
from locus.core.journal import BLANK, fold
from locus.models import ModelRequest
from locus.plugins.discovery import Catalogue
from locus.plugins.providers import provide
from locus_plugin_sqlite import DiskFull, SqliteStore
from locus_plugin_sqlite.manifest import plugin
from locus_testkit import PluginContract, ScriptedModel, call

from .thread import stopped

pytestmark = pytest.mark.anyio

INSTALLED = Catalogue.only(plugin)


class TestPlugin(PluginContract):
    """The manifest keeps its promises."""

    name = "sqlite"
    plugin = plugin


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@tool(effect="pure")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def agent(checkpointer: Any, *script: Any, tools: Any = (add,)) -> Agent[None, str]:
    model = ScriptedModel(*script)
    return Agent(model, tools=tools, checkpointer=checkpointer, catalogue=INSTALLED, max_iterations=1000)


@pytest.mark.parametrize("given", ["sqlite:{}", "{}", Path("{}")])
async def test_a_checkpointer_is_named_by_scheme_or_by_path(path: Path, given: str | Path) -> None:
    named: Any = type(given)(str(given).format(path))
    first = agent(named, call("add", a=1, b=2), "3.")
    assert (await first.run("1 + 2?", thread_id="t")).text == "3."

    second = agent(SqliteStore(path), "As I said.")
    result = await second.run("Sure?", thread_id="t")
    assert [message.text for message in result.state.messages if message.text] == [
        "1 + 2?",
        "3.",
        "Sure?",
        "As I said.",
    ]


def test_settings_reach_the_store(path: Path) -> None:
    given = {"sqlite": {"sync": "normal", "lease": 5, "busy_timeout": 1, "max_bytes": 10_000, "keep_ended_days": 30}}
    made = provide("checkpointer", f"sqlite:{path}", catalogue=INSTALLED, settings=given)
    assert isinstance(made, SqliteStore)
    settings = made.settings
    assert (settings.sync, settings.lease, settings.busy_timeout, settings.max_bytes) == ("normal", 5.0, 1.0, 10_000)
    assert settings.keep_ended_days == 30.0


@pytest.mark.parametrize(
    "wrong", [{"sync": "off"}, {"lease": 0}, {"busy_timeout": -1}, {"max_bytes": 0}, {"keep_ended_days": 0}]
)
def test_wrong_settings_are_refused(path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        provide("checkpointer", f"sqlite:{path}", catalogue=INSTALLED, settings={"sqlite": wrong})


def test_the_home_folder_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    made = provide("checkpointer", "sqlite:~/runs.db", catalogue=INSTALLED)
    assert isinstance(made, SqliteStore)
    assert made.path == tmp_path / "runs.db"


@pytest.mark.parametrize("sync", ["full", "normal"])
def test_a_file_is_synced_as_it_was_asked_for(path: Path, sync: Any) -> None:
    store = SqliteStore(path, sync=sync)
    session = store._worker._session
    session.ready()
    assert session.db.execute("PRAGMA synchronous").fetchone()[0] == {"full": 2, "normal": 1}[sync]
    assert session.db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    session.close()


async def test_a_cancelled_run_goes_on_in_another_store(path: Path) -> None:
    @tool
    async def wait() -> str:
        """Wait."""
        await anyio.sleep_forever()
        return ""

    async with SqliteStore(path) as store, anyio.create_task_group() as group:
        first = agent(store, call("wait"), tools=[wait])
        group.start_soon(lambda: first.run("x", thread_id="t"))
        with anyio.fail_after(30):
            while not any(info.head >= 3 for info in await store.threads()):
                await wait_all_tasks_blocked()
        group.cancel_scope.cancel()

    second = agent(SqliteStore(path), "done", tools=[wait])
    result = await second.resume("t")
    assert result.text == "done"
    with pytest.raises(NothingToResume):
        await second.resume("t")


async def test_a_run_that_finds_the_disk_full_is_resumed_when_there_is_room(path: Path) -> None:
    ran: list[int] = []

    @tool(effect="pure")
    def read(n: int) -> str:
        """Read much."""
        ran.append(n)
        return os.urandom(6000).hex()

    script = [call("read", n=n) for n in range(30)]
    async with SqliteStore(path, max_bytes=250_000) as store:
        with pytest.raises(DiskFull):
            await agent(store, *script, "never", tools=[read]).run("x", thread_id="t")
        before = await store.read("t")
    assert 2 < len(ran) < 30

    async with SqliteStore(path) as store:
        result = await agent(store, *script[len(ran) :], "done", tools=[read]).resume("t")
        entries = await store.read("t")
    assert result.text == "done"
    assert entries[: len(before)] == before
    assert fold(BLANK, [entry.body for entry in entries]) == result.state
    # The call whose result found no room is made again; every other one was made once.
    assert sorted(set(ran)) == list(range(30))
    assert len(ran) - 30 <= 1


async def test_a_run_that_is_left_in_the_middle_leaves_no_thread_behind(path: Path) -> None:
    before = set(threading.enumerate())

    async def leave() -> None:
        async for event in agent(SqliteStore(path), call("add", a=1, b=2), "3.").run("x", thread_id="t"):
            if isinstance(event, ToolStartEvent):
                return

    await leave()
    with anyio.fail_after(30):
        while any(thread.name == "locus sqlite" for thread in set(threading.enumerate()) - before):
            gc.collect()
            await anyio.sleep(0.01)
    async with SqliteStore(path) as store:
        assert [info.holder for info in await store.threads()] == [None]


async def test_many_runs_of_one_agent_share_one_thread(path: Path) -> None:
    async with SqliteStore(path) as store:
        one = Agent(ScriptedModel(*["hello"] * 20), checkpointer=store)
        async with anyio.create_task_group() as group:
            for n in range(20):
                group.start_soon(lambda name: one.run("x", thread_id=name), str(n))
        assert len(await store.threads()) == 20
        assert len([t for t in threading.enumerate() if t.name == "locus sqlite"]) == 1


async def test_four_hundred_iterations_of_two_kilobytes_take_less_than_three_megabytes(path: Path) -> None:
    texts = [os.urandom(1000).hex() for _ in range(800)]

    @tool(effect="pure")
    def read(n: int) -> str:
        """Read two kilobytes."""
        return texts[n]

    sizes: list[int] = []
    async with SqliteStore(path, sync="normal") as store:
        for count in (400, 800):
            turns = iter([*(call("read", n=n) for n in range(count)), "done"])

            def answer(_: ModelRequest, turns: Iterator[Any] = turns) -> Any:
                # A real model takes longer than a write: what was begun is written, and by itself.
                with stopped(store):
                    return next(turns)

            one = Agent(ScriptedModel(answer, after="repeat"), tools=[read], checkpointer=store, max_iterations=1000)
            await one.run("x", thread_id=str(count))
            sizes.append(on_disk(path))
    assert sizes[0] <= 2_600_000  # 3 MB is what may never be reached
    assert sizes[1] - sizes[0] <= 2.3 * sizes[0]


def on_disk(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        pages: int = db.execute("PRAGMA page_count").fetchone()[0]
    return pages * 4096
