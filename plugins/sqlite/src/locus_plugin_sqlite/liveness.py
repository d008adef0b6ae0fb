"""Whether the process that holds a thread still lives. It decides who may try, never who may write.

A process of this machine that is gone is known to be dead at once. Of all others only their lease tells.
"""

from __future__ import annotations

import os
import socket
import sys
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

from attrs import frozen

__all__ = ["Holder", "Process", "from_micros", "micros", "this_process"]

_EPOCH = datetime.fromtimestamp(0, UTC)
_MICROSECOND = timedelta(microseconds=1)


def micros(at: datetime) -> int:
    """A moment as microseconds since 1970, exactly."""
    return (at - _EPOCH) // _MICROSECOND


def from_micros(at: int) -> datetime:
    """The inverse, in UTC."""
    return _EPOCH + at * _MICROSECOND


@frozen
class Process:
    """A process, so that another one can find out whether it is still there.

    Args:
        host: the name of its machine, for people.
        machine: equal for two processes that see each other's ids: the boot, and the namespace of ids.
        pid: its id.
        started: when it began, in the machine's own count; ``""`` where that is not known.
    """

    host: str
    machine: str
    pid: int
    started: str

    def is_gone(self) -> bool:
        """Whether it is known to have ended; False when in doubt."""
        here = this_process()
        if not self.machine or self.machine != here.machine:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:  # another user's
            pass
        found = _find_start(self.pid)
        return found is None or (found != self.started and found != "")


@frozen
class Holder:
    """A store that holds threads: its process, and until when it said it would be there.

    Args:
        process: where it is open.
        lease: microseconds since 1970.
    """

    process: Process
    lease: int

    def is_alive(self, now: int) -> bool:
        """Whether it must be left alone."""
        return self.lease > now and not self.process.is_gone()


def this_process() -> Process:
    """The process under way; after a fork, the new one."""
    return _describe(os.getpid())


@lru_cache(maxsize=1)  # the system is asked once a process, not once a claim
def _describe(pid: int) -> Process:
    return Process(socket.gethostname(), _machine(), pid, _find_start(pid) or "")


def _machine() -> str:
    if sys.platform == "linux":
        try:
            boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
            return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
        except OSError:  # pragma: no cover - a sandbox without /proc
            return ""
    if sys.platform == "win32":  # asking for a process there can end it
        return ""
    return socket.gethostname()


def _find_start(pid: int) -> str | None:
    """When a process began; None when it has ended, ``""`` when that is not known."""
    if sys.platform != "linux":
        return ""
    try:
        # The name of the program, in parentheses, may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:  # hidden from this user, or gone a moment ago
        return ""
    # A zombie has ended; only its parent has not asked yet.
    return None if fields[0] in "ZX" else fields[19]
