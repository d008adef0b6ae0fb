"""``locus view`` as a process: its address, its token, its end, and a run of another process that it shows."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import httpx
import pytest
from plugins.cli.tests.conftest import Locus, run_in_process

from locus_plugin_sqlite import SqliteStore
from locus_plugin_viewer.serving import bind
from locus_testkit import call

from .shop import fill, make_agent

SHOP = Path(__file__).parent / "shop.py"


@pytest.fixture
def file(here: Path) -> Path:
    """A file of the shop's threads in the working directory."""
    path = here / "shop.db"

    async def make() -> None:
        async with SqliteStore(path) as store:
            await fill(store)

    anyio.run(make)
    shutil.copy(SHOP, here)
    return path


@pytest.fixture
def locus(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Locus:
    """Runs a command line in this process, where this plugin and one that keeps threads are installed."""
    return run_in_process(here, capsys, monkeypatch, {"cli", "conversation", "provenance", "sqlite", "viewer"})


@contextmanager
def viewing(environment: dict[str, str], *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, and the address that it has printed."""
    command = [sys.executable, "-m", "locus_plugin_cli", "view", *arguments]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            if process.poll() is None:
                process.kill()


def test_the_printed_address_opens_the_page_once(file: Path, environment: dict[str, str]) -> None:
    with viewing(environment, "--checkpointer", "sqlite:shop.db") as (process, address):
        assert address.startswith("http://127.0.0.1:")
        if sys.platform == "linux":  # elsewhere nothing says what a process has loaded
            assert "uvloop" in Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8")
        with httpx.Client(follow_redirects=True, timeout=60) as browser:
            assert "Charge order 4711" in browser.get(address).text
            assert "Charge order 4711" in browser.get(address.partition("?")[0]).text
        assert httpx.get(address).status_code == 401
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert process.stderr is not None
        said = process.stderr.read()
    assert "Ctrl-C leaves" in said
    assert "Traceback" not in said
    assert address.partition("token=")[2] not in said


def test_a_file_that_is_not_there_is_named_and_not_made(here: Path, environment: dict[str, str]) -> None:
    with viewing(environment, "--checkpointer", "nope.db") as (process, address):
        assert address
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert "nope.db does not exist yet; threads appear once a run creates it" in said
    assert not (here / "nope.db").exists()


def test_sigterm_ends_it_also_while_a_page_is_followed(file: Path, environment: dict[str, str]) -> None:
    with viewing(environment, "--checkpointer", "sqlite:shop.db", "--read-only") as (process, address):
        base = address.partition("?")[0]
        with httpx.Client(follow_redirects=True, timeout=60) as browser:
            assert "read-only" in browser.get(address).text
            with browser.stream("GET", f"{base}thread/events?id=run-1&after=15") as answer:
                assert next(answer.iter_lines()) == "retry: 1000"
                process.send_signal(signal.SIGTERM)
                assert process.wait(60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == "locus: Ctrl-C leaves\n"


def test_an_agent_of_a_file_goes_on_with_a_run(file: Path, environment: dict[str, str]) -> None:
    with viewing(environment, "shop.py:agent", "--checkpointer", "sqlite:shop.db") as (_, address):
        base = address.partition("?")[0]
        with httpx.Client(follow_redirects=True, timeout=60, headers={"origin": base.rstrip("/")}) as browser:
            browser.get(address)
            page = browser.get(f"{base}thread?id=run-5").text
            (question,) = re.findall(r'name="question" value="([^"]+)"', page)
            form = {"id": "run-5", "question": question, "answer": "yes"}
            assert browser.post(f"{base}thread/answer", data=form).status_code == 200
            with browser.stream("GET", f"{base}thread/events?id=run-5&after=6") as answer:
                for line in answer.iter_lines():
                    if "NoToolCalls" in line:
                        break
            text = browser.get(f"{base}thread?id=run-5").text
    assert "the person said yes" in text
    assert "ended" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere.py:agent",), "file not found: 'nowhere.py'"),
        (("shop.py:agnet",), "did you mean shop.py:agent?"),
        (("shop.py",), "expected FILE.py:NAME"),
        (("--host", "192.0.2.1"), "cannot serve at 192.0.2.1"),
    ],
)
def test_what_cannot_be_served_is_said(file: Path, locus: Locus, arguments: tuple[str, ...], said: str) -> None:
    done = locus("view", *arguments, "--checkpointer", f"sqlite:{file}")
    assert (done.status, done.out) == (2, "")
    assert said in done.err


def test_a_port_that_is_taken_is_said(file: Path, locus: Locus) -> None:
    with bind("127.0.0.1", 0) as taken:
        port = str(taken.getsockname()[1])
        done = locus("view", "--port", port, "--checkpointer", f"sqlite:{file}")
    assert (done.status, done.out) == (2, "")
    assert f"cannot serve at 127.0.0.1:{port}" in done.err


def test_a_run_of_another_process_is_shown_as_it_goes_on(file: Path, environment: dict[str, str]) -> None:
    async def go_on() -> None:
        async with SqliteStore(file) as store:
            await make_agent([call("find_order", number=2)], "Order 2 has lamps.", store=store).run(
                "And order 2?", thread_id="run-1"
            )

    with viewing(environment, "--checkpointer", "sqlite:shop.db") as (_, address):
        base = address.partition("?")[0]
        with httpx.Client(follow_redirects=True, timeout=60) as browser:
            browser.get(address)
            with browser.stream("GET", f"{base}thread/events?id=run-1&after=15") as answer:
                lines = answer.iter_lines()
                assert next(lines) == "retry: 1000"
                anyio.run(go_on)  # this process writes, that one shows
                assert any("Order 2 has lamps." in line for line in lines)
