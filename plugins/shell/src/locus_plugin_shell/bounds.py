"""What bounds a command in either kind of sandbox: the files that it sees, its limits, and the life of its caller."""

from __future__ import annotations

import os
import resource
import select
import signal
from contextlib import suppress
from typing import Any

__all__ = [
    "ACCOUNTS",
    "DEVICES",
    "HOST",
    "HOST_FILES",
    "LINKS",
    "LOOK",
    "UID",
    "CallerGone",
    "SetupError",
    "find_excess",
    "require_first",
    "restore_signals",
    "run_first",
    "set_limits",
    "wait",
]

#: The ids that the command sees as its own.
UID = 1000
#: Of a file system, what programs need: read-only.
HOST = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
HOST_FILES = ("/etc/alternatives", "/etc/ld.so.cache")
#: Files that are made for the sandbox, with their text.
ACCOUNTS = {"/etc/passwd": f"agent:x:{UID}:{UID}::/work:/bin/sh\n", "/etc/group": f"agent:x:{UID}:\n"}
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
LINKS = {"/dev/fd": "/proc/self/fd", "/dev/stdin": "fd/0", "/dev/stdout": "fd/1", "/dev/stderr": "fd/2"}
#: Seconds between two looks at what runs in the namespace.
LOOK = 0.05


class SetupError(Exception):
    """The sandbox cannot be built; its text says which step failed, and why."""


class CallerGone(Exception):
    """The program that started the launcher has ended, or wants the command to end."""


def set_limits(wanted: dict[str, Any], *, pid: int = 0, fewest: int = 1) -> None:
    """Limit a process, and all that it starts.

    Args:
        wanted: what the launcher was asked for.
        pid: the process; 0 = this one.
        fewest: how many processes are allowed in any case.

    Raises:
        OSError: this process may not do that.
    """
    limits = (
        (resource.RLIMIT_AS, wanted["memory"]),
        (resource.RLIMIT_FSIZE, wanted["file_size"]),
        (resource.RLIMIT_NPROC, max(fewest, wanted["processes"])),
        (resource.RLIMIT_NOFILE, 1_024),
        (resource.RLIMIT_CORE, 0),
    )
    for which, most in limits:
        hard = resource.prlimit(pid, which)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.prlimit(pid, which, (most, most))


def restore_signals() -> None:
    """Undo that Python ignores two signals, which children inherit: a program ends when the next one in a pipe has."""
    for each in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(each, signal.SIG_DFL)


def find_excess(wanted: dict[str, Any], proc: str, *, trust_init: bool) -> str:
    """Which limit all processes of a namespace together are beyond, or ``""``.

    Args:
        wanted: what the launcher was asked for.
        proc: where the ``/proc`` of the namespace is.
        trust_init: leave out the memory of PID 1, which the command cannot change.
    """
    found = [name for name in os.listdir(proc) if name.isdecimal()]
    if len(found) - 1 > wanted["processes"]:  # PID 1 does not count
        return "processes"
    resident = 0
    for name in found:
        if name == "1" and trust_init:
            continue
        try:
            with open(f"{proc}/{name}/statm", "rb") as file:
                resident += int(file.read().split()[1])
        except (OSError, IndexError):
            continue  # it has ended
    return "memory" if resident * os.sysconf("SC_PAGE_SIZE") > wanted["memory"] else ""


def wait(descriptors: list[int], seconds: float, caller: int) -> list[int]:
    """Wait until one of them can be read, at most so many seconds; returns those that can.

    Args:
        descriptors: of pipes and processes.
        seconds: how long.
        caller: the process that started the launcher.

    Raises:
        CallerGone: none can be read, and the caller has ended or closed the standard input of this process.
    """
    found = select.select([0, *descriptors], [], [], seconds)[0]
    ready = [each for each in descriptors if each in found]
    if not ready and (0 in found or os.getppid() != caller):
        raise CallerGone
    return ready


def run_first(flags: int = 0) -> None:
    """Be scheduled before all that the command starts, where that is allowed.

    Where the kernel does not limit the processes of root, they are counted, by a process that must run while a fork
    bomb keeps every core busy. Other users are not allowed this and do not need it.

    Args:
        flags: to add to the policy.
    """
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO | flags, os.sched_param(1))


def require_first(where: str) -> None:
    """Refuse root if it is not run first.

    Args:
        where: in which case the kernel does not limit its processes.

    Raises:
        SetupError: nothing would stop a fork bomb.
    """
    # User ID 0 here may be another one outside of a container, which has a limit. That cannot be seen from here.
    if os.geteuid() == 0 and os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK != os.SCHED_FIFO:
        raise SetupError(
            f"{where} root has no limit of processes, and the process that counts them may not run first; "
            "run as another user"
        )
