"""`locus nats dev`, as a person runs it: a process that says its address, serves, and ends on Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from plugins.worker.tests.processes import until

from locus.core.errors import ConfigError
from locus_plugin_nats import DevServer, NatsStore


async def _count_threads(address: str) -> int:
    async with NatsStore(address) as store:
        return len(await store.threads())


def test_a_server_for_development_serves_until_ctrl_c(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "locus_plugin_cli", "nats", "dev", "--port", "0", "--dir", "data"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            said = running.stdout.readline()
            assert said.endswith("(data in data; Ctrl-C ends it)\n")
            assert anyio.run(_count_threads, said.split()[0]) == 0
            running.send_signal(signal.SIGINT)
            assert running.wait(timeout=60) == 0
        finally:
            running.kill()
    assert (tmp_path / "data").is_dir()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_server_for_development_ends_with_a_command_that_is_killed(tmp_path: Path) -> None:
    """And in good order: it can be started again, and has what was stored."""
    command = [sys.executable, "-m", "locus_plugin_cli", "nats", "dev", "--port", "0", "--dir", "data"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            url = running.stdout.readline().split()[0]
            (ports,) = (tmp_path / "data").glob("nats-server_*.ports")
            server = int(ports.stem.rpartition("_")[2])
            assert is_running(server)
        finally:
            running.kill()
    try:
        until(lambda: not is_running(server), "the end of the server")
    finally:
        if is_running(server):
            os.kill(server, signal.SIGKILL)
    again = DevServer(tmp_path / "data", int(url.rpartition(":")[2]))

    def start_again() -> bool:
        with suppress(ConfigError):  # a process that ends keeps its files for a moment
            again.start()
        return again.process is not None

    until(start_again, "a server in the same folder")
    try:
        assert anyio.run(_count_threads, again.url) == 0
    finally:
        again.stop()


def is_running(pid: int) -> bool:
    """Whether a process is there, and has not ended without being waited for."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
