"""`locus view` over servers, as a person uses it: a process that shows what other processes write to the same store."""

from __future__ import annotations

import html
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest
from plugins.postgres.tests.server import PASSWORD, Server
from plugins.viewer.tests.shop import SECRET, fill, make_agent

from locus import Agent, tool
from locus.journal import JournalHost
from locus_plugin_nats import DevServer, NatsStore
from locus_plugin_postgres import PostgresStore
from locus_testkit import ScriptedModel, call

#: Seconds after which something is broken, however busy the machine.
_PATIENCE = 60.0


@pytest.fixture(scope="module", params=["nats", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a server of these tests, with the threads of the shop."""
    if request.param == "nats":
        with DevServer(tmp_path_factory.mktemp("nats")) as nats:
            anyio.run(_fill, nats.url)
            yield nats.url
        return
    postgres = Server()
    try:
        postgres.start()
        anyio.run(_fill, postgres.url())
        yield postgres.url()
    finally:
        postgres.close()


def open_store(address: str) -> Any:
    """A store of this process: another one than the viewer's."""
    return NatsStore(address) if address.startswith("nats:") else PostgresStore(address)


async def _fill(address: str) -> None:
    async with open_store(address) as store:
        await fill(store)


@pytest.fixture(scope="module")
def browser(address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A browser that has opened the address that the command printed."""
    folder = tmp_path_factory.mktemp("viewer")
    command = [sys.executable, "-m", "locus_plugin_cli", "view", "--checkpointer", address]
    environment = {**os.environ, "LOCUS_STATE": str(folder / "state")}
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            printed = process.stdout.readline().strip()
            base = printed.partition("/?")[0]
            with httpx.Client(
                base_url=base, follow_redirects=True, timeout=_PATIENCE, headers={"origin": base}
            ) as client:
                assert client.get(printed).status_code == 200
                yield client
            process.send_signal(signal.SIGTERM)
            assert process.wait(_PATIENCE) == 0
        finally:
            if process.poll() is None:
                process.kill()


def read(client: httpx.Client, path: str, **parameters: str) -> str:
    """The text of a page, as a person reads it."""
    answer = client.get(path, params=parameters)
    assert answer.status_code == 200, answer.text
    return text_of(answer.text)


def text_of(page: str) -> str:
    """What a page says."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


@contextmanager
def in_background(work: Callable[[], Any]) -> Iterator[None]:
    """Run it beside what follows, and wait for its end."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            anyio.run(work)
        except BaseException as e:  # noqa: BLE001 - it is raised below
            failed.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        thread.join(_PATIENCE)
    assert not thread.is_alive()
    assert not failed, failed


def test_threads_and_runs_of_a_server_are_shown(browser: httpx.Client) -> None:
    threads = read(browser, "/")
    assert "Give the money for order 12 back. run-5 · shop · scripted:shop waiting for you" in threads
    assert "5,898 tokens (3,600 cached), $0.0125" in threads
    assert PASSWORD not in threads
    assert "run-3/" not in threads
    assert "run-3/" in read(browser, "/", children="1")
    assert "run-1" in read(browser, "/", q="two desk lamps", said="1")
    timeline = read(browser, "/thread", id="run-1")
    assert "8450 cents charged for order 4711" in timeline
    assert SECRET not in timeline
    assert '"tool_name": "find_order"' in read(browser, "/thread/state", id="run-1", n="5")
    assert '"item": "desk lamp"' in read(browser, "/thread/request", id="run-1", n="6")
    assert "What is known about lamps of 2024?" in text_of(
        browser.get(re.findall(r'data-load="(/thread/window[^"]+)"', browser.get("/thread?id=run-3").text)[0]).text
    )


def test_a_run_of_another_process_is_shown_while_it_goes_on(address: str, browser: httpx.Client) -> None:
    seen = threading.Event()

    @tool(effect="pure")
    async def look_up(number: int) -> str:
        """Look an order up; the second one waits until somebody has seen the first."""
        if number == 2:
            assert await anyio.to_thread.run_sync(seen.wait, _PATIENCE)
        return f"order {number} has lamps"

    async def run() -> None:
        async with open_store(address) as store:
            turns = [[call("look_up", number=number)] for number in (1, 2)]
            agent = Agent(ScriptedModel(*turns, "Both."), tools=[look_up], name="live", checkpointer=store)
            assert (await agent.run("Look both up.", thread_id="live")).text == "Both."

    events = browser.stream("GET", "/thread/events", params={"id": "live", "after": "0"})
    with in_background(run), events as answer:
        for line in answer.iter_lines():
            if "order 1 has lamps" in line:
                assert "order 2 has lamps" not in line
                assert "running" in read(browser, "/thread/status", id="live")
                seen.set()
            if "NoToolCalls" in line:
                break
    assert seen.is_set()
    assert "ended" in read(browser, "/thread/status", id="live")


def test_a_question_is_answered_in_the_page_and_another_process_goes_on(address: str, browser: httpx.Client) -> None:
    async def ask() -> None:
        async with open_store(address) as store:
            agent = make_agent([call("refund", order=12)], store=store)
            assert (await agent.run("Give it back.", thread_id="asks")).interrupts

    anyio.run(ask)
    page = browser.get("/thread", params={"id": "asks"}).text
    assert "Refund order 12?" in text_of(page)
    (question,) = re.findall(r'name="question" value="([^"]+)"', page)
    form = {"id": "asks", "question": html.unescape(question), "answer": "yes"}
    answered = browser.post("/thread/answer", data=form)
    assert "Answered: yes." in text_of(answered.text)
    assert 'name="answer"' not in answered.text
    assert browser.post("/thread/answer", data={**form, "answer": "no"}).status_code == 400

    async def go_on() -> None:
        async with open_store(address) as store:
            assert (await make_agent("It is refunded.", store=store).resume("asks")).text == "It is refunded."
            host = await JournalHost.peek(store, "asks")
            assert host is not None
            assert not host.open_questions

    anyio.run(go_on)
    page = read(browser, "/thread", id="asks")
    assert "the person said yes" in page
    assert "Answered: yes." not in page


def test_runs_are_forked_and_compared(browser: httpx.Client) -> None:
    forked = browser.post("/thread/fork", data={"id": "run-1", "n": "5"})
    made = dict(forked.url.params)["id"]
    assert made.startswith("run-1~")
    assert "Fork of run-1" in text_of(forked.text)
    assert "8450 cents charged" not in text_of(forked.text)
    assert "Where they part" in read(browser, "/diff", a="run-1", b=made)
    assert "The same" in read(browser, "/diff", a="run-2", b="run-2")
    assert "it would have stopped" in read(browser, "/thread/what-if", id="run-1", limit="iterations", value="1")
    assert len(browser.get("/thread/export", params={"id": "run-1"}).text.splitlines()) == 16
