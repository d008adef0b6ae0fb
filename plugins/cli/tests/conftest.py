"""The command under test: in this process where that is enough, in another one, or on a terminal."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import importlib_metadata
import pytest
from attrs import frozen

from locus.config import read_file
from locus.core.errors import ConfigError
from locus_plugin_cli.main import invoke
from locus_plugin_cli.vetting import open_trust

from .warm import WarmServer

TESTS = Path(__file__).parent

#: Seconds after which a process that should have ended is broken, however busy the machine.
PATIENCE = 60.0


@frozen
class Done:
    """A command that has ended."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines of standard error."""
        return self.err.splitlines()


def installed(site: Path, name: str, *files: str, points: str = "", version: str = "1.0") -> Path:
    """A distribution as an installer would have left it in ``site``; gives its metadata folder."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    if points:
        (info / "entry_points.txt").write_text(f"[locus.plugins]\n{points}\n")
    return info


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of installed distributions, with the toy plugin."""
    folder = tmp_path / "site"
    installed(folder, "toy", "toy_provider.py", points="toy = toy_provider:plugin")
    shutil.copy(TESTS / "toy_provider.py", folder)
    return folder


@pytest.fixture
def here(tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory in which the toy plugin is installed and nothing is configured."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("LOCUS_STATE", str(tmp_path / "state"))
    for name in ("LOCUS_MODEL", "LOCUS_PLUGINS", "XDG_STATE_HOME", "TOY_KEY", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    # What another test has imported from its own site must not be found.
    monkeypatch.delitem(sys.modules, "toy_provider", raising=False)
    return folder


@pytest.fixture
def tools() -> str:
    """The file with the tools that the scripted models call."""
    return str(TESTS / "toy_tools.py")


@pytest.fixture
def install() -> Callable[..., Path]:
    """Writes the metadata of a distribution, see `installed`."""
    return installed


Locus = Callable[..., Done]


def vouch(folder: Path) -> None:
    """Trust the configuration of a folder as it is now, as its owner would have; strangers' files lie elsewhere."""
    for name in ("locus.toml", "pyproject.toml"):
        with contextlib.suppress(ConfigError):  # a file that is not there, or that these tests have broken
            file = read_file(folder / name)
            open_trust(file).add(file)


def run_in_process(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, seen: set[str]
) -> Locus:
    """What runs a command line in this process, where of the plugins around it only these are seen."""
    every = importlib_metadata.entry_points

    def without_others(**wanted: Any) -> list[Any]:
        return [point for point in every(**wanted) if point.name in seen or not point.value.startswith("locus_plugin_")]

    monkeypatch.setattr(importlib_metadata, "entry_points", without_others)

    def run(*arguments: str) -> Done:
        vouch(here)
        capsys.readouterr()
        status = invoke(arguments)
        captured = capsys.readouterr()
        return Done(status, captured.out, captured.err)

    return run


def command_line(*seen: str) -> Any:
    """A fixture that runs command lines in this process, where of the plugins around it only these are seen."""

    @pytest.fixture
    def locus(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Locus:
        return run_in_process(here, capsys, monkeypatch, set(seen))

    return locus


#: Of the plugins around it only the CLI and the test's own are seen.
locus = command_line("cli", "conversation", "provenance")

#: The same where a plugin is installed that keeps conversations in files.
keeper = command_line("cli", "conversation", "provenance", "sqlite")


@pytest.fixture
def environment(here: Path, site: Path) -> dict[str, str]:
    """The environment of a process in which the toy plugin is installed."""
    path = os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "TERM": "xterm", "COLUMNS": "200"}


@pytest.fixture(scope="session")
def warm_server() -> Iterator[WarmServer]:
    """What processes are forked from; those that a test starts by itself begin from nothing."""
    made = WarmServer("locus_plugin_cli")
    yield made
    made.close()


def _run_apart(environment: dict[str, str], here: Path, warm_server: WarmServer, *, trusts: bool) -> Locus:
    def run(*arguments: str, stdin: bytes = b"", **more: str) -> Done:
        if trusts:
            vouch(here)
        given = {**environment, **more}
        status, out, err = warm_server.run(arguments, stdin=stdin, folder=here, environment=given, timeout=PATIENCE)
        return Done(status, out.decode(), err.decode())

    return run


@pytest.fixture
def process(environment: dict[str, str], here: Path, warm_server: WarmServer) -> Locus:
    """Runs a command line in a process of its own."""
    return _run_apart(environment, here, warm_server, trusts=True)


@pytest.fixture
def untrusting(environment: dict[str, str], here: Path, warm_server: WarmServer) -> Locus:
    """The same, where a configuration in the folder is not trusted."""
    return _run_apart(environment, here, warm_server, trusts=False)


class Terminal:
    """A command that runs on a terminal."""

    def __init__(self, server: WarmServer, arguments: Sequence[str], environment: dict[str, str], folder: Path) -> None:
        self._master, slave = os.openpty()
        self._process = server.start(
            arguments, streams=(slave, slave, slave), folder=folder, environment=environment, terminal=True
        )
        os.close(slave)
        self.output = ""
        self._seen = 0
        self._raw = b""

    def _read(self, seconds: float) -> bool:
        """Take in what has come; False at the end."""
        if not select.select([self._master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self._master, 65_536)
        except OSError:  # Linux says so when the last process has closed the terminal
            return False
        self._raw += data
        self.output = self._raw.decode(errors="replace")
        return bool(data)

    def expect(self, text: str) -> None:
        """Wait until the text has appeared behind what was expected before."""
        until = time.monotonic() + PATIENCE
        while (found := self.output.find(text, self._seen)) < 0:
            alive = self._read(0.2)
            assert time.monotonic() < until, f"{text!r} did not appear in time:\n{self.output}"
            assert alive or text in self.output[self._seen :], f"it ended without {text!r}:\n{self.output}"
        self._seen = found + len(text)

    def send(self, text: str) -> None:
        """Type."""
        os.write(self._master, text.encode())

    def insist(self, key: str, text: str) -> None:
        """Press a key until the text appears.

        A signal that comes right before `input` begins to wait is heard with the next key only: Python checks for
        signals, then waits, and nothing wakes it in between. A person presses again, too.
        """
        until = time.monotonic() + PATIENCE
        again = 0.0
        while text not in self.output[self._seen :]:
            now = time.monotonic()
            assert now < until, f"{text!r} did not appear in time:\n{self.output}"
            if now >= again:
                again = now + 3.0
                self.send(key)
            self._read(0.2)
        self.expect(text)

    def finish(self) -> int:
        """Wait for the end; the exit status."""
        until = time.monotonic() + PATIENCE
        while self._read(0.2):
            assert time.monotonic() < until, f"it does not end:\n{self.output}"
        return self._process.wait(timeout=PATIENCE)

    def close(self) -> None:
        """End the process if it still runs."""
        self._process.kill()
        self._process.wait(timeout=PATIENCE)
        os.close(self._master)


@pytest.fixture
def terminal(environment: dict[str, str], here: Path, warm_server: WarmServer) -> Iterator[Callable[..., Terminal]]:
    """Runs a command line on a terminal of its own."""
    opened: list[Terminal] = []

    def open_one(*arguments: str, folder: Path = here, **more: str) -> Terminal:
        vouch(here)
        opened.append(Terminal(warm_server, arguments, {**environment, **more}, folder))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()
