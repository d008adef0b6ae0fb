"""Takeover: workers freeze past their lease, and thaw while their successor is at work on the same thread.

Random kills do not judge a store: without any fence they leave the right final states. Here a worker is stopped within
a tool, until another one has taken its thread over and is within a tool of it; then both go on.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import anyio
import pytest
from attrs import field, frozen

from locus.core.journal import END, Transition
from locus_plugin_nats import DevServer, NatsSettings, NatsStore
from locus_plugin_nats.headers import make_tip
from locus_plugin_nats.reading import read_stream
from locus_testkit.freezing import freeze_process, thaw_process

pytestmark = [pytest.mark.proof, pytest.mark.chaos]

ROOT = Path(__file__).resolve().parents[3]
IS_QUICK = os.environ.get("LOCUS_PROOFS", "quick") == "quick"

#: Workers, threads, calls of a thread, stops and kills.
WORKERS, THREADS, CALLS, STOPS, KILLS = (2, 3, 6, 2, 0) if IS_QUICK else (4, 16, 20, 10, 2)

#: Seconds: the shortest lease that there is, and how long all of it may take on a busy machine.
LEASE, PATIENCE = 1.0, 300.0


@frozen
class Outcome:
    """What came of it.

    Args:
        fenced: how many writes were refused.
        extra: messages of entries beyond those that the journals have.
        repeated: effects that happened more than once.
        unended: threads that did not end exactly once.
        unreadable: threads whose journal cannot be read.
        errors: what workers met else.
    """

    fenced: int
    extra: int
    repeated: int
    unended: tuple[str, ...]
    unreadable: tuple[str, ...]
    errors: tuple[str, ...] = field(default=())


class Crew:
    """Worker processes, and what they say."""

    def __init__(self, server: DevServer, prefix: str, effects: Path, fence: str) -> None:
        self._command = [
            *(sys.executable, "-m", "plugins.nats.tests.chaos_worker", "--url", server.url, "--prefix", prefix),
            *("--lease", str(LEASE), "--effects", str(effects), "--threads", str(THREADS), "--calls", str(CALLS)),
            *("--fence", fence),
        ]
        self.said: queue.Queue[tuple[int, str]] = queue.Queue()
        self.processes: dict[int, subprocess.Popen[str]] = {}
        self.stopped: set[int] = set()
        self._listeners: list[threading.Thread] = []

    def start(self) -> None:
        process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        self.processes[process.pid] = process
        listener = threading.Thread(target=self._listen, args=(process,), daemon=True)
        listener.start()
        self._listeners.append(listener)

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                self.said.put((process.pid, line.strip()))
        self.said.put((process.pid, "left"))

    def stop(self, pid: int) -> None:
        freeze_process(pid)
        self.stopped.add(pid)

    def resume(self, pid: int) -> None:
        self.stopped.discard(pid)
        thaw_process(pid)

    def end(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()
        for listener in self._listeners:
            listener.join()


def play(server: DevServer, prefix: str, folder: Path, fence: str) -> Outcome:
    """Stop, wait for the successor, thaw; then kill; then let them finish."""
    crew = Crew(server, prefix, folder / "effects", fence)
    heard: list[str] = []
    stops, kills, left = STOPS, KILLS, 0
    frozen_in: dict[str, int] = {}
    until = time.monotonic() + PATIENCE
    for _ in range(WORKERS):
        crew.start()
    try:
        while left < len(crew.processes):
            pid, line = crew.said.get(timeout=max(0.1, until - time.monotonic()))
            heard.append(line)
            word, thread, *_ = (*line.split(), "")
            if word == "left":
                left += 1
            elif word == "in" and frozen_in.get(thread, pid) != pid:
                crew.resume(frozen_in.pop(thread))
            elif word == "in" and stops and len(crew.stopped) < WORKERS - 1 and thread not in frozen_in:
                stops -= 1
                crew.stop(pid)
                frozen_in[thread] = pid
            elif word == "in" and not stops and kills and not crew.stopped:
                kills -= 1
                crew.processes[pid].kill()
                crew.start()
    finally:
        crew.end()
    effects = (folder / "effects").read_text(encoding="utf-8").splitlines()
    return anyio.run(judge, server, prefix, effects, heard)


async def judge(server: DevServer, prefix: str, effects: list[str], heard: list[str]) -> Outcome:
    """Three checks: exactly one accepted entry a number, effects, and how each run ended."""
    repeated = Counter(tuple(line.split()[:2]) for line in effects)
    unended: list[str] = []
    unreadable: list[str] = []
    async with NatsStore(server.url, NatsSettings(prefix=prefix)) as store:
        heads = {info.thread_id: info.head for info in await store.threads()}
        for thread in heads:
            try:
                entries = await store.read(thread)
            except Exception:  # noqa: BLE001 - whatever is wrong with it
                unreadable.append(thread)
                continue
            ends = [e for e in entries if isinstance(e.body, Transition) and e.body.next_node == END]
            if len(ends) != 1:
                unended.append(thread)
        raw = await store._do(lambda s: read_stream(s, s.names.journal, s.names.all_entries, 1))
    stored = sum(make_tip(subject, seq, headers, at, data).head.count for subject, seq, headers, at, data in raw)
    return Outcome(
        fenced=sum(line.startswith("fenced") for line in heard),
        extra=stored - sum(heads.values()),
        repeated=sum(count > 1 for count in repeated.values()),
        unended=tuple(sorted(unended)),
        unreadable=tuple(unreadable),
        errors=tuple(line for line in heard if line.startswith("error")),
    )


def test_a_worker_that_thaws_while_its_successor_works_writes_nothing(
    server: DevServer, prefix: str, tmp_path: Path
) -> None:
    """No entry twice, no effect twice, each run ends once; and at least one write was refused, or it proves nothing."""
    came = play(server, prefix, tmp_path, "on")
    assert came.fenced >= 1
    assert (came.extra, came.repeated, came.unended, came.unreadable, came.errors) == (0, 0, (), (), ())


def test_without_the_fence_the_same_play_finds_damage(server: DevServer, prefix: str, tmp_path: Path) -> None:
    """The control: entries are stored twice, or effects happen twice."""
    came = play(server, prefix, tmp_path, "off")
    assert came.extra or came.repeated or came.unended or came.unreadable
