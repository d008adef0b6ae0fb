"""Forks a process for each command line that it gets: a program that needs most of its time to import is ready at once.

Run as a program, with the package to run and those to import beforehand as arguments, and on standard input a socket on
which requests come: the four descriptors of the process (its three streams, and the pipe that its status goes to),
and its arguments, folder and environment as JSON.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import termios
from typing import Any

#: More than a command line and an environment have.
_MOST_BYTES = 1_000_000


def _opened(number: int, mode: str, **more: Any) -> Any:
    encoding, _, errors = os.environ.get("PYTHONIOENCODING", "").partition(":")
    if errors:
        more.setdefault("errors", errors)
    return os.fdopen(number, mode, encoding=encoding or "utf-8", closefd=False, **more)


def _become(asked: dict[str, Any], streams: list[int]) -> None:
    """Make this process look as if it had just been started."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if asked["terminal"]:
        os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, max(streams) + 50)
    if asked["terminal"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    path = [asked["folder"], *asked["environment"].get("PYTHONPATH", "").split(os.pathsep)]
    sys.path[:0] = [each for each in dict.fromkeys(path) if each and each not in sys.path]
    # As an interpreter opens them.
    sys.stdin = sys.__stdin__ = _opened(0, "r")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _opened(1, "w", buffering=1 if os.isatty(1) else -1)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _opened(2, "w", buffering=1, errors="backslashreplace")  # type: ignore[misc]
    sys.argv = ["locus", *asked["arguments"]]


def _serve(requests: socket.socket) -> None:
    """Answer requests until the other side has gone; returns in each process that is forked."""
    ended, noted = os.pipe()
    os.set_blocking(ended, False)
    os.set_blocking(noted, False)
    signal.set_wakeup_fd(noted)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    reports: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([requests.fileno(), ended], [], [])
        if ended in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(ended, 512)
            with contextlib.suppress(ChildProcessError):
                while (found := os.waitpid(-1, os.WNOHANG))[0]:
                    report = reports.pop(found[0])
                    with contextlib.suppress(BrokenPipeError):  # nobody waits for it
                        os.write(report, b"%d" % os.waitstatus_to_exitcode(found[1]))
                    os.close(report)
        if requests.fileno() not in ready:
            continue
        data, descriptors, _, _ = socket.recv_fds(requests, _MOST_BYTES, 4)
        if not data:
            raise SystemExit
        *streams, report = descriptors
        pid = os.fork()
        if not pid:
            _become(json.loads(data), streams)
            return
        os.write(report, b"%08d" % pid)
        reports[pid] = report
        for each in streams:
            os.close(each)


def _import(package: str) -> None:
    """Import what a package or module has, if it is installed, but for what does more than define things."""
    try:
        found = importlib.import_module(package)
    except ImportError:
        return
    for module in pkgutil.walk_packages(getattr(found, "__path__", ()), f"{package}."):
        if not module.name.endswith(("__main__", "pytest_plugin", "line_history")) and ".template" not in module.name:
            with contextlib.suppress(ImportError):  # an extra of it
                importlib.import_module(module.name)


def main() -> str:
    """Serve; returns the package to run, in the process that is to run it."""
    sys.path.pop(0)  # the folder of this file
    for package in sys.argv[1:]:
        _import(package)
    module = sys.argv[1]
    gc.freeze()  # or the first collection in each process would copy all of it
    _serve(socket.socket(fileno=os.dup(0)))
    return module


if __name__ == "__main__":
    runpy.run_module(main(), run_name="__main__", alter_sys=True)
