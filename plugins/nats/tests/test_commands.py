"""`locus nats dev`, as a person runs it: a process that says its address, serves, and ends on Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio

from locus_plugin_nats import NatsStore


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
