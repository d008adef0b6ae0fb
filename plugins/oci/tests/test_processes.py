"""Two processes on one thread: one that dies, and one that is only slow."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from locus.core.errors import ThreadBusy
from locus.core.journal import Outcome, StepId
from locus.journal.store import Appended
from locus_testkit.freezing import freeze_process

from .kit import Home

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """What another process does, does not depend on it."""
    return "asyncio"


class Other:
    """The other process."""

    def __init__(self, home: Home) -> None:
        command = [sys.executable, str(Path(__file__).with_name("process.py")), home.server.url, str(home.config)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.read_line() == "claimed"

    def read_line(self) -> str:
        """The next line that it says."""
        out = self._process.stdout
        assert out is not None
        return out.readline().strip()

    def append_word(self, word: str) -> str:
        """Let it append a word; gives what came of it."""
        into: IO[str] | None = self._process.stdin
        assert into is not None
        into.write(f"{word}\n")
        into.flush()
        return self.read_line()

    def signal(self, number: int) -> None:
        """Send it a signal."""
        if number == signal.SIGSTOP:
            freeze_process(self._process.pid)
        else:
            os.kill(self._process.pid, number)

    def end(self) -> None:
        """Kill it, and close what leads to it."""
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def other(home: Home) -> Iterator[Other]:
    made = Other(home)
    yield made
    made.end()


async def words(home: Home) -> list[str]:
    async with home.store() as store:
        return [entry.body.value for entry in await store.read("t") if isinstance(entry.body, Outcome)]


async def test_a_process_that_was_killed_is_followed_by_the_next(home: Home, other: Other) -> None:
    """Its thread is busy as long as it lives, and free when it has been silent for its lease; what it had is there."""
    assert other.append_word("one") == "ok"
    async with home.store() as store:
        with pytest.raises(ThreadBusy, match="the other process"):
            await store.claim("t", "here")
        other.end()
        with pytest.raises(ThreadBusy):
            await store.claim("t", "here")
        home.bucket.advance(61)
        claim = await store.claim("t", "here")
        assert (claim.head, claim.entries[0].body.value) == (1, "one")  # type: ignore[union-attr]
        pulses = [name for name in home.bucket.objects if "/pulses/" in name]
        assert len(pulses) == 1, "what the dead one left behind is gone"


async def test_a_process_that_was_only_slow_writes_nothing_more(home: Home, other: Other) -> None:
    """It was stopped for longer than its lease, and goes on as if nothing had been."""
    assert other.append_word("one") == "ok"
    other.signal(signal.SIGSTOP)
    home.bucket.advance(61)
    async with home.store() as store:
        claim = await store.claim("t", "here")
        assert await store.append(claim, [Outcome(run_id="run", step_id=StepId(0, "two"), value="two")]) is Appended.OK
        other.signal(signal.SIGCONT)
        assert other.append_word("three") == "fenced"
        assert (
            await store.append(claim, [Outcome(run_id="run", step_id=StepId(0, "four"), value="four")]) is Appended.OK
        )
    assert await words(home) == ["one", "two", "four"]
