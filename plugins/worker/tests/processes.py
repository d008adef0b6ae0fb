"""Commands in processes of their own, which a test stops, freezes and kills."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from plugins.cli.tests.warm import WarmServer

from locus_plugin_sqlite import SqliteStore
from locus_testkit.freezing import freeze_process

__all__ = ["LEASE", "PATIENCE", "FilePlace", "Process", "charges", "hold_third_call", "read_log", "until"]

#: Seconds after which what should have happened has not, however busy the machine.
PATIENCE = 90.0

#: Seconds after which a silent worker is taken for dead.
LEASE = 1.0


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
        server: forks it.
        folder: its working directory.
        environment: its environment.
        arguments: the command line.
    """

    def __init__(self, server: WarmServer, folder: Path, environment: dict[str, str], *arguments: str) -> None:
        (out, out_of_it), (err, err_of_it) = os.pipe(), os.pipe()
        with Path(os.devnull).open("rb") as nothing:
            self._process = server.start(
                arguments, streams=(nothing.fileno(), out_of_it, err_of_it), folder=folder, environment=environment
            )
        os.close(out_of_it)
        os.close(err_of_it)
        self.pid = self._process.pid
        self.lines: list[dict[str, Any]] = []
        self.said: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=(out,), daemon=True),
            threading.Thread(target=self._hear, args=(err,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, number: int) -> None:
        with os.fdopen(number, encoding="utf-8") as out:
            self.lines.extend(map(json.loads, out))

    def _hear(self, number: int) -> None:
        with os.fdopen(number, encoding="utf-8") as err:
            self.said.extend(err)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGKILL)
        self.wait()

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
        if number == signal.SIGSTOP:
            freeze_process(self.pid)
        else:
            os.kill(self.pid, number)

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def wait(self) -> int:
        """Wait for the end; gives the exit status."""
        status = self._process.wait(PATIENCE)
        for reader in self._readers:
            reader.join(PATIENCE)
        return status


def hold_third_call(program: str, held: Path) -> str:
    """The program of the page, whose third call does not end while a file is there: its worker dies within the run."""
    pause = "    time.sleep(0.2)\n"
    assert pause in program
    held.touch()
    waits = f"    while number == 3 and Path({str(held)!r}).exists():\n        time.sleep(0.01)\n"
    return program.replace(pause, pause + waits).replace("import time\n", "import time\nfrom pathlib import Path\n", 1)


class FilePlace:
    """Runs in the file ``runs.db`` of the working directory."""

    checkpointer = "runs.db"
    settings = f"[plugins.sqlite]\nlease = {LEASE}\n"

    def open_store(self) -> SqliteStore:
        """The store."""
        return SqliteStore(self.checkpointer)

    def freeze(self, process: Process) -> None:
        """Stop it, and not in the middle of a write to the file: no process could write there until it thaws."""
        while True:
            process.signal(signal.SIGSTOP)
            with closing(sqlite3.connect(self.checkpointer, timeout=0.5, isolation_level=None)) as db:
                try:
                    db.execute("BEGIN IMMEDIATE")
                except sqlite3.OperationalError:
                    process.signal(signal.SIGCONT)
                    time.sleep(0.01)
                else:
                    db.execute("ROLLBACK")
                    return


def read_log(folder: Path) -> Iterator[dict[str, Any]]:
    """What the tools of the shop have noted, whole lines only."""
    path = folder / "log"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    yield from (json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n"))


def charges(folder: Path) -> Counter[tuple[str, str]]:
    """How often each tool ran, by run and what it did."""
    return Counter((each["run"], each["what"]) for each in read_log(folder))
