"""Commands in processes of their own, which a test stops, freezes and kills."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

__all__ = ["PATIENCE", "Process", "charges", "until"]

#: Seconds after which what should have happened has not, however busy the machine.
PATIENCE = 90.0


def until(condition: Any, what: str) -> Any:
    """Wait until a condition holds; gives what it came to."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, f"did not come in time: {what}"
        time.sleep(0.01)
    return found


class Process:
    """A ``locus`` command that prints JSON lines.

    Args:
        folder: its working directory.
        environment: its environment.
        arguments: the command line.
    """

    def __init__(self, folder: Path, environment: dict[str, str], *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "locus_plugin_cli", *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid
        self.lines: list[dict[str, Any]] = []
        self.said: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, daemon=True),
            threading.Thread(target=self._hear, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(json.loads(line))

    def _hear(self) -> None:
        assert self._process.stderr is not None
        self.said.extend(self._process.stderr)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGKILL)
        self._process.wait(PATIENCE)
        for reader in self._readers:
            reader.join(PATIENCE)
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """The lines of a kind so far."""
        return [line for line in tuple(self.lines) if line["kind"] == kind]

    def expect(self, kind: str, count: int = 1) -> dict[str, Any]:
        """Wait for so many lines of a kind; gives the last of them."""
        found: dict[str, Any] = until(
            lambda: self.of_kind(kind)[count - 1 : count], f"{count} x {kind!r}: {self.lines}\n{''.join(self.said)}"
        )[0]
        return found

    def signal(self, number: int) -> None:
        """Send a signal."""
        os.kill(self.pid, number)
        if number == signal.SIGSTOP:
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT)

    def wait(self) -> int:
        """Wait for the end; gives the exit status."""
        status = self._process.wait(PATIENCE)
        for reader in self._readers:
            reader.join(PATIENCE)
        return status


def read_log(folder: Path) -> Iterator[dict[str, Any]]:
    """What the tools of the shop have noted, whole lines only."""
    path = folder / "log"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    yield from (json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n"))


def charges(folder: Path) -> Counter[tuple[str, str]]:
    """How often each tool ran, by run and what it did."""
    return Counter((each["run"], each["what"]) for each in read_log(folder))
