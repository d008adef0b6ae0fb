"""llama.cpp in a process of its own, with the call that its binding has.

The binding holds the interpreter's lock while it loads a file: for seconds nothing else in the process would run, no
other agent, no heartbeat, no Ctrl-C. A thread does not help against that, so the file is loaded by another process, see
`worker`. What it costs is a line of JSON for each token. Besides, a load that is cancelled ends at once, and a crash of
llama.cpp is an error of a request.

A program that is frozen into one file has no Python to start: there the model is loaded in the process itself.
"""

from __future__ import annotations

import itertools
import json
import os
import queue
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import asdict

from locus_plugin_llamacpp.errors import EngineFailed
from locus_plugin_llamacpp.runtime import EngineOptions, start

__all__ = ["WorkerServer", "start_worker"]

#: Runs `worker` with the import path of this process, which may have been changed since it began.
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from locus_plugin_llamacpp.worker import main; main()"
)

_POLL = 0.1  # seconds between two looks at whether the load is still wanted
_KILLED = 9  # what a system without memory sends
_ENDING = 5.0  # seconds that a worker gets to end by itself

_Inbox = queue.SimpleQueue[dict[str, Any]]
_ENDED: dict[str, Any] = {"ended": True}


def start_worker(path: Path, options: EngineOptions, waits: Callable[[float], None]) -> Any:
    """Load a file in a process of its own. Takes seconds: call it in a worker thread.

    Args:
        path: the file.
        options: how to load it.
        waits: called with the seconds that have passed, several times a second; may raise to give up.

    Raises:
        EngineFailed: the runtime cannot be imported, it refuses the file, or its process ended.
    """
    if not sys.executable or getattr(sys, "frozen", False):
        return start(path, options)
    server = WorkerServer()
    try:
        server.load(path, options, waits)
    except BaseException:
        server.close(at_once=True)
        raise
    return server


class WorkerServer:
    """The server in the other process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603  this Python, and a program of ours
            [sys.executable, "-c", _PROGRAM, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Not in the foreground of the terminal: Ctrl-C is for the program, which decides what ends.
            process_group=None if os.name == "nt" else 0,
        )
        self._numbers = itertools.count(1)
        self._inboxes: dict[int, _Inbox] = {0: queue.SimpleQueue()}
        self._writing = threading.Lock()
        self._silent = threading.Event()
        reading = (self._process.stdout, self._inboxes, self._silent)
        threading.Thread(target=_deliver, args=reading, daemon=True).start()
        self._finalizer = weakref.finalize(self, _end, self._process)

    @property
    def pid(self) -> int:
        """The process that the model is in."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return self._process.poll() is not None

    def load(self, path: Path, options: EngineOptions, waits: Callable[[float], None]) -> None:
        """Load the file; see `start_worker`."""
        began = time.monotonic()
        with suppress(RuntimeError):  # it ended before it read that; what is said next tells how
            self._send({"path": str(path), "options": asdict(options)})
        while True:
            try:
                said = self._inboxes[0].get(timeout=_POLL)
                break
            except queue.Empty:
                waits(time.monotonic() - began)
        if "failed" in said:
            raise EngineFailed(said["failed"])
        if "ready" not in said:
            raise EngineFailed(f"{self._how_it_ended()} while it loaded {path}")

    def handle_chat_completions(self, body: dict[str, Any], callback: Callable[[dict[str, Any]], bool]) -> Any:
        """As the method of the binding: calls back with each chunk, until that returns True.

        Raises:
            ValueError: llama.cpp refuses the request.
            RuntimeError: llama.cpp failed, or its process ended.
        """
        number, inbox = next(self._numbers), queue.SimpleQueue[dict[str, Any]]()
        self._inboxes[number] = inbox
        try:
            self._send({"id": number, "body": body})
            while True:
                # What ends after this look is said to every inbox that is known.
                said = _ENDED if self._silent.is_set() and inbox.empty() else inbox.get()
                if "chunk" in said:
                    self._send({"id": number, "stop": bool(callback(said["chunk"]))})
                elif "reply" in said:
                    return said["reply"]
                elif "error" in said:
                    raise ValueError(said["error"]) if said["invalid"] else RuntimeError(said["error"])
                else:
                    raise RuntimeError(self._how_it_ended())
        finally:
            del self._inboxes[number]

    def close(self, *, at_once: bool = False) -> None:
        """End the process and wait for its end.

        Args:
            at_once: it may be loading, and hears nothing.
        """
        if at_once:
            self._process.kill()
        self._finalizer()

    def _send(self, message: dict[str, Any]) -> None:
        line = json.dumps(message).encode() + b"\n"
        stdin = self._process.stdin
        assert stdin is not None
        try:
            with self._writing:
                stdin.write(line)
                stdin.flush()
        except (OSError, ValueError) as error:
            raise RuntimeError(self._how_it_ended()) from error

    def _how_it_ended(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_ENDING)
        status = self._process.returncode
        if status is None or status >= 0:
            return f"the process that runs llama.cpp ended with status {status}"
        why = " (the system may have had no memory left)" if -status == _KILLED else ""
        return f"the process that runs llama.cpp was ended by signal {-status}{why}"


def _deliver(lines: Any, inboxes: dict[int, _Inbox], silent: threading.Event) -> None:
    """Give each line to the request that it belongs to; in the end tell all of them. A thread of its own."""
    with suppress(OSError, ValueError):
        for line in lines:
            message = json.loads(line)
            inbox = inboxes.get(message.get("id", 0))
            if inbox is not None:
                inbox.put(message)
    silent.set()
    for inbox in list(inboxes.values()):
        inbox.put(_ENDED)


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(OSError, ValueError):
        process.stdin.close()
    try:
        process.wait(_ENDING)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
