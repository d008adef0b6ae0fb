"""Processes that are forked from one that has imported already: as real as others, and ready sooner."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

_SERVER = Path(__file__).with_name("warm_server.py")

#: What commands import besides, as far as it is installed.
_IMPORTED = (
    "locus",
    "locus_plugin_sqlite",
    "locus_plugin_conversation",
    "locus_plugin_provenance",
    "locus_plugin_mcp",
    "locus_testkit.scripted_model",
)


class Warm:
    """A process that runs one command line, with the methods that one of `subprocess` has."""

    def __init__(self, pid: int, report: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._report = report

    def poll(self, timeout: float = 0) -> int | None:
        """The status, if it has ended within so many seconds."""
        if self.returncode is None and select.select([self._report], [], [], timeout)[0]:
            said = os.read(self._report, 64)
            os.close(self._report)
            assert said, "the process that forks has ended"
            self.returncode = int(said)
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Wait for the end; the status."""
        status = self.poll(timeout)
        if status is None:
            raise subprocess.TimeoutExpired("locus", timeout)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal, if it has not ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


class WarmServer:
    """Starts processes that run one package, for as long as it is open."""

    def __init__(self, package: str) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # A request is one packet, and an environment may be large.
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2_000_000)
        with theirs:
            self._process = subprocess.Popen([sys.executable, str(_SERVER), package, *_IMPORTED], stdin=theirs.fileno())
        self._requests = ours
        self._asking = threading.Lock()

    def start(
        self,
        arguments: Sequence[str],
        *,
        streams: tuple[int, int, int],
        folder: Path,
        environment: dict[str, str],
        terminal: bool = False,
    ) -> Warm:
        """Start a process on these descriptors, which stay open here.

        Args:
            arguments: those of the command.
            streams: its standard input, output and error.
            folder: its working directory.
            environment: its environment, whole.
            terminal: its standard input is a terminal, which becomes its own.
        """
        asked = {
            "arguments": list(arguments),
            "folder": str(folder),
            "environment": environment,
            "terminal": terminal,
        }
        reader, writer = os.pipe()
        with self._asking:
            socket.send_fds(self._requests, [json.dumps(asked).encode()], [*streams, writer])
        os.close(writer)
        pid = os.read(reader, 8)
        assert pid, "the process that forks has ended"
        return Warm(int(pid), reader)

    def run(
        self, arguments: Sequence[str], *, stdin: bytes, folder: Path, environment: dict[str, str], timeout: float
    ) -> tuple[int, bytes, bytes]:
        """Run to the end; the status, and what came to standard output and error."""
        pipes = [os.pipe() for _ in range(3)]
        streams = (pipes[0][0], pipes[1][1], pipes[2][1])
        warm = self.start(arguments, streams=streams, folder=folder, environment=environment)
        for each in streams:
            os.close(each)
        read = [bytearray(), bytearray()]

        def feed() -> None:
            with contextlib.suppress(BrokenPipeError), os.fdopen(pipes[0][1], "wb") as to:
                to.write(stdin)

        def drain(number: int) -> None:
            with os.fdopen(pipes[number + 1][0], "rb") as source:
                read[number] += source.read()

        threads = [threading.Thread(target=feed), *(threading.Thread(target=drain, args=(n,)) for n in (0, 1))]
        for thread in threads:
            thread.start()
        try:
            status = warm.wait(timeout)
        finally:
            warm.kill()
            for thread in threads:
                thread.join(timeout)
        return status, bytes(read[0]), bytes(read[1])

    def close(self) -> None:
        """Let the server end."""
        self._requests.close()
        self._process.wait()
