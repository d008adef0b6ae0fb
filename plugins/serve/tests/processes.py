"""``locus serve`` in a process of its own, which a test tells to leave, or kills."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from .conftest import PATIENCE, Client

__all__ = ["ServerProcess", "find_free_port", "until"]

_SHOP = Path(__file__).parent / "shop.py"


def find_free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def until(condition: Callable[[], Any], what: str) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"did not come in time: {what}"
        time.sleep(0.01)


class ServerProcess:
    """A server of an agent of `shop`, whose threads are in ``runs.db`` of its folder.

    Args:
        folder: its working directory.
        port: where it listens.
        agent: which of the agents.
        configuration: the content of its ``locus.toml``.
        arguments: further ones of the command line.
        variables: further ones of the environment.
    """

    def __init__(
        self,
        folder: Path,
        port: int,
        *arguments: str,
        agent: str = "agent",
        configuration: str = "",
        **variables: str,
    ) -> None:
        shutil.copy(_SHOP, folder)
        command = [sys.executable, "-P", "-m", "locus"]
        if configuration:
            (folder / "locus.toml").write_text(configuration, encoding="utf-8")
            command += ["--config", "locus.toml"]
        command += ["serve", f"shop.py:{agent}", "--port", str(port)]
        command += ["--checkpointer", "runs.db", *arguments]
        environment = {**os.environ, "LOCUS_STATE": str(folder / "state"), "PYTHONUNBUFFERED": "1", **variables}
        self.said = ""
        self._process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self._reader = threading.Thread(target=self._hear, daemon=True)
        self._reader.start()
        self.url = f"http://127.0.0.1:{port}"
        until(lambda: self._is_up() or self._process.poll() is not None, "a server that answers")

    def _hear(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.said += line

    def _is_up(self) -> bool:
        try:
            return httpx.get(f"{self.url}/healthz", timeout=PATIENCE, trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    def client(self) -> Client:
        """A client of it."""
        return Client(base_url=self.url, timeout=PATIENCE, trust_env=False)

    def signal(self, number: int) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def wait(self) -> int:
        """Wait for the end; gives the exit status."""
        status = self._process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        assert self._process.stderr is not None
        self._process.stderr.close()
        return status

    def kill(self) -> None:
        """End it at once."""
        if self._process.poll() is None:
            self.signal(signal.SIGKILL)
        self.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
