"""Fetches wheels through the user's own pip: its configuration says from where, with which proxy and which key.

One process of pip for each wheel, a few at a time. So a finished part is kept when a later one fails, only those few
wheels take room on the disk besides the file itself, and progress is measured by the bytes that pip has written.

- ``--require-hashes``: pip refuses a wheel with another SHA-256; ``--only-binary :all:``: nothing is built, so nothing
  of the packages runs; ``--no-deps``: they bring no others.
- ``--no-cache-dir``: pip would keep a second copy of each wheel.
- ``python -P`` in an empty folder: a file ``pip.py`` in the user's working directory is not what runs.
- ``TMPDIR`` in the cache folder: what pip writes on its way lies where room was looked for, and is found again when
  the next fetch cleans up after a process that was killed.
- pip ends when this process does, also when that is killed: it is run by a program that waits for the end of its
  standard input, which this process holds.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from importlib import util
from pathlib import Path

from locus_kit.pinned.errors import FetchFailed, FileCorrupt, PipMissing
from locus_kit.pinned.file import Part

__all__ = ["WORKERS", "check_pip", "fetch_wheels"]

#: Wheels fetched at a time: starting pip takes a second in which nothing is transferred.
WORKERS = 3

_POLL = 0.05  # seconds
_OPTIONS = (
    "--no-deps",
    "--only-binary",
    ":all:",
    "--require-hashes",
    "--no-cache-dir",
    "--no-input",
    "--disable-pip-version-check",
    "--progress-bar",
    "off",
)
#: What ``-m pip`` does, and ends when its standard input does.
_PROGRAM = """
import os, runpy, threading
def leave():
    os.read(0, 1)
    os._exit(1)
threading.Thread(target=leave, daemon=True).start()
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""
_SAID = 600  # characters of pip's words in a message
_OTHER_HASH = "DO NOT MATCH THE HASHES"


def check_pip(label: str) -> None:
    """Find out whether anything can be fetched.

    Args:
        label: what is to be fetched, for the message.

    Raises:
        PipMissing: this Python has no pip; the message holds the command that installs it.
    """
    if not sys.executable or getattr(sys, "frozen", False):
        raise PipMissing(label, sys.executable, "fetch it with `locus models pull` of an installation that has one")
    if util.find_spec("pip") is None:
        raise PipMissing(label, sys.executable, f"run: {_command_for_pip()}")


def _command_for_pip() -> str:
    if shutil.which("uv"):
        return f"uv pip install --python {sys.executable} pip"
    if util.find_spec("ensurepip") is not None:
        return f"{sys.executable} -m ensurepip"
    return "your system's package manager to install python3-pip"


class _Download:
    """One wheel on its way."""

    def __init__(self, part: Part, folder: Path) -> None:
        self.part, self._folder = part, folder
        self._wheels, self._scratch = folder / "wheels", folder / "scratch"
        for made in (folder, self._wheels, self._scratch):
            made.mkdir()
        requirements = folder / "requirements.txt"
        requirements.write_text(f"{part.requirement} --hash=sha256:{part.wheel_sha256}\n", encoding="utf-8")
        scratch = str(self._scratch)
        command = [sys.executable, "-P", "-c", _PROGRAM, "download", *_OPTIONS]
        command += ["--dest", str(self._wheels), "--requirement", str(requirements)]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(  # noqa: S603 - this interpreter, with arguments that were checked
                command,
                cwd=scratch,
                env={**os.environ, "TMPDIR": scratch, "TEMP": scratch, "TMP": scratch},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is this process's to hear, which then stops the others
            )

    @property
    def _log(self) -> Path:
        return self._folder / "pip.log"

    def count_bytes(self) -> int:
        """Bytes that have arrived, at most the size of the part."""
        most = 0
        for root, _, names in os.walk(self._folder):
            for name in names:
                try:
                    most = max(most, (Path(root) / name).stat().st_size)
                except OSError:
                    continue  # moved on meanwhile
        return min(most, self.part.size)

    def wheel(self, label: str) -> Path:
        """The wheel, when the process has ended.

        Raises:
            FileCorrupt: what the registry serves has another hash.
            FetchFailed: pip failed.
        """
        found = sorted(self._wheels.glob("*.whl"))
        if self.process.returncode == 0 and len(found) == 1:
            return found[0]
        said = self._log.read_text(encoding="utf-8", errors="replace")
        if _OTHER_HASH in said:
            got = next((line.split()[-1] for line in said.splitlines() if line.strip().startswith("Got ")), "another")
            raise FileCorrupt(label, Path(self.part.requirement), self.part.wheel_sha256, got)
        raise FetchFailed(label, self.part.requirement, _gist(said) or f"exit status {self.process.returncode}")

    def end(self) -> None:
        """Stop the process if it runs, and delete what it wrote."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)


def _gist(said: str) -> str:
    lines = [" ".join(line.split()) for line in said.splitlines()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")] or lines[-1:]
    return "; ".join(errors)[:_SAID]


def fetch_wheels(
    label: str,
    parts: Sequence[Part],
    folder: Path,
    take: Callable[[Part, Path], None],
    waiting: Callable[[int], None],
) -> None:
    """Fetch the wheels of parts; each is deleted when it was taken. Blocking.

    Args:
        label: what the file is, for messages.
        parts: what to fetch.
        folder: an empty folder for what comes and goes.
        take: called with each part and its wheel, in the order in which they arrive.
        waiting: called with the bytes of what is under way, several times a second; may raise to give up.

    Raises:
        PipMissing, FetchFailed, FileCorrupt: see each. What is under way is stopped.
    """
    check_pip(label)
    waiting_parts, running = deque(parts), list[_Download]()
    try:
        while waiting_parts or running:
            while waiting_parts and len(running) < WORKERS:
                running.append(_Download(waiting_parts[0], folder / waiting_parts[0].sha256))
                waiting_parts.popleft()
            waiting(sum(each.count_bytes() for each in running))
            ended = [each for each in running if each.process.poll() is not None]
            for each in ended:
                take(each.part, each.wheel(label))
                running.remove(each)
                each.end()
            if not ended:
                time.sleep(_POLL)
    finally:
        for each in running:
            each.end()
