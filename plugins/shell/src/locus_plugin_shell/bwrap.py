"""The sandbox that the program ``bwrap`` (bubblewrap) makes.

Where only some programs may have user namespaces, ``bwrap`` often is one of them, but what it starts has no privileges
there: so it does all mounts, and the rest is done from outside. These processes take part:

- the launcher starts ``bwrap``, sets the limits, counts, and kills;
- the guard, a child of the launcher, kills when the launcher was killed;
- ``bwrap`` itself, which waits for its init and says on a descriptor, in JSON, which process that is and how the
  command ended;
- the init of the PID namespace, ``bwrap`` too. When it ends, the kernel kills all that is in the namespace;
- the command.

The init sets up all that is asked for and then reads a byte from the pipe "go" before it starts the command, so that it
has its limits by then, and the command inherits them. As ``bwrap`` goes on at the end of a file too, the shell that it
starts reads a line from the same pipe: when the launcher was killed, none comes, and the command does not begin.

The init has no more privileges than the command, so that a command can trace it and change what it does: to end no
longer with its parent, for example, which is why there is a guard. Once the command was begun, nothing relies on the
init but the exit code. Its memory counts, and its descriptors lead nowhere.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
from contextlib import suppress
from typing import Any, NoReturn

from locus_plugin_shell.bounds import (
    ACCOUNTS,
    DEVICES,
    HOST,
    HOST_FILES,
    LINKS,
    LOOK,
    UID,
    SetupError,
    find_excess,
    require_first,
    restore_signals,
    run_first,
    set_limits,
    wait,
)

__all__ = ["run"]

_PR_SET_PDEATHSIG = 1
#: Seconds between two looks at whether the tree of files is there.
_SOON = 0.002
#: The shell that `bwrap` starts: the errors of `bwrap` have a pipe of their own, to which the command does not write.
_BEGIN = 'read -r __ && exec /bin/sh -c "$1" sh </dev/null 2>&1'


def _hold(data: bytes) -> int:
    """A descriptor from which these bytes can be read."""
    descriptor = os.memfd_create("locus-shell")
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _tree(wanted: dict[str, Any]) -> tuple[list[str], list[int]]:
    """The options that make the tree of files, and the descriptors that they name."""
    options, descriptors = [], []
    for path in HOST:
        if os.path.islink(path):
            options += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            options += ["--ro-bind", path, path]
    options += ["--perms", "0755", "--dir", "/etc"]
    for path in HOST_FILES:
        if os.path.exists(path):
            options += ["--ro-bind", path, path]
    for path, text in ACCOUNTS.items():
        descriptors.append(_hold(text.encode()))
        options += ["--perms", "0644", "--ro-bind-data", str(descriptors[-1]), path]
    # Its own `--dev` has terminals in it.
    options += ["--tmpfs", "/dev"]
    for path in DEVICES:
        options += ["--dev-bind", path, path]
    for path, target in LINKS.items():
        options += ["--symlink", target, path]
    for path in ("/tmp", "/dev/shm"):  # noqa: S108 - of the sandbox
        options += ["--perms", "1777", "--size", str(wanted["scratch"]), "--tmpfs", path]
    options += ["--proc", "/proc", "--remount-ro", "/proc", "--bind", wanted["work"], "/work", "--chdir", "/work"]
    return [*options, "--remount-ro", "/dev", "--remount-ro", "/"], descriptors


def _options(wanted: dict[str, Any], status: int, go: int) -> tuple[list[str], list[int]]:
    """All options, and the descriptors that they name."""
    tree, descriptors = _tree(wanted)
    options = ["--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--disable-userns"]
    options += ["--uid", str(UID), "--gid", str(UID), "--hostname", "sandbox", "--cap-drop", "ALL"]
    options += ["--new-session", "--die-with-parent", "--json-status-fd", str(status), "--block-fd", str(go)]
    return [*options, *tree], [status, go, *descriptors]


def _become_bwrap(wanted: dict[str, Any], launcher: int, status: int, go: int, errors: int) -> NoReturn:
    """Become ``bwrap``, which ends with the launcher."""
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != launcher:
            os._exit(1)
        restore_signals()
        # A copy: the descriptor that is named in the options is closed by `bwrap`.
        os.dup2(go, 0)
        os.dup2(errors, 2)
        options, descriptors = _options(wanted, status, go)
        # In a file: every process of the sandbox can read the arguments of the init.
        descriptors.append(_hold(b"".join(os.fsencode(each) + b"\0" for each in options)))
        for each in descriptors:
            os.set_inheritable(each, True)  # noqa: FBT003 - the way of the standard library
        argv = [wanted["bwrap"], "--args", str(descriptors[-1]), "--", "/bin/sh", "-c", _BEGIN, "sh"]
        os.execve(wanted["bwrap"], [*argv, wanted["command"]], os.environ)
    except BaseException as e:  # noqa: BLE001 - in the middle of becoming another program
        os.write(errors, f"start: {e}".encode())
        os._exit(127)


def _read_status(status: int) -> dict[str, Any]:
    """The next line of what ``bwrap`` says; it is written in pieces. ``{}`` at its end."""
    text = b""
    while not text.endswith(b"}\n"):
        more = os.read(status, 1_000)
        if not more:
            return {}
        text += more
    found: dict[str, Any] = json.loads(text)
    return found


def _guard(init: int, alive: int) -> NoReturn:
    """Wait for the end of the launcher, and kill what it leaves."""
    # The caller waits for the end of what is written.
    for each in (0, 1, 2):
        os.close(each)
    os.read(alive, 1)
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(init, signal.SIGKILL)
    os._exit(0)


def _start_guard(init: int) -> int:
    alive, held = os.pipe()
    guard = os.fork()
    if not guard:
        os.close(held)
        _guard(init, alive)
    os.setpgid(guard, guard)  # the caller ends the launcher by killing its process group
    os.close(alive)  # the other end stays open as long as this process lives
    return guard


def _await_tree(child: int, ended: int, caller: int) -> str:
    """Wait until the init has its own tree of files; returns its ``/proc``, or ``""`` if ``bwrap`` has ended."""
    outside = os.stat("/proc").st_dev
    while not wait([ended], _SOON, caller):
        # Before that its root is this one, then one without /proc, and for a moment it may not be looked at.
        with suppress(OSError):
            # Held open: when the init has ended, another process may get its number.
            proc = os.open(os.path.join(f"/proc/{child}/root", "proc"), os.O_PATH | os.O_DIRECTORY)
            if os.fstat(proc).st_dev != outside:
                return f"/proc/self/fd/{proc}"
            os.close(proc)
    return ""


def _watch(wanted: dict[str, Any], child: int, ended: int, go: int, caller: int) -> str:
    """Begin the command and wait for its end; returns which limit was exceeded, or ``""``."""
    proc = _await_tree(child, ended, caller)
    if not proc:
        return ""
    # One process of it is the init, which must be able to start the command.
    set_limits(wanted, pid=child, fewest=2)
    os.write(go, b"x\n")
    while not wait([ended], LOOK, caller):
        excess = find_excess(wanted, proc, trust_init=False)
        if excess:
            return excess
    return ""


def _supervise(wanted: dict[str, Any], monitor: int, status: int, go: int, caller: int) -> dict[str, Any]:
    """Watch the command, then kill all that is in its namespace; returns the report, ``{}`` if it was not begun."""
    ended = os.pidfd_open(monitor)
    child = _read_status(status).get("child-pid")
    if child is None:
        return {}
    init = os.pidfd_open(child)
    guard = _start_guard(init)
    try:
        excess = _watch(wanted, child, ended, go, caller)
    finally:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(init, signal.SIGKILL)
        # The init ends last: then nothing of the namespace is left.
        select.select([init], [], [])
        os.kill(guard, signal.SIGKILL)
        os.waitpid(guard, 0)
    if excess:
        return {"excess": excess}
    found = _read_status(status).get("exit-code")
    return {} if found is None else {"code": found}


def run(wanted: dict[str, Any], caller: int) -> dict[str, Any]:
    """Run a command to its end.

    Args:
        wanted: what the launcher was asked for.
        caller: the process that started the launcher.

    Returns:
        The report. The code of a command that was killed by a signal is 128 and the number of the signal.

    Raises:
        SetupError: the sandbox cannot be built.
        CallerGone: the command was ended, because its caller has gone.
    """
    # Not inherited by the command. And the limit of all PIDs of a namespace cannot be set from outside.
    run_first(os.SCHED_RESET_ON_FORK)
    require_first("bwrap: in its sandbox")
    status, status_in = os.pipe()
    go_out, go = os.pipe()
    errors, errors_in = os.pipe()
    launcher = os.getpid()
    monitor = os.fork()
    if not monitor:
        _become_bwrap(wanted, launcher, status_in, go_out, errors_in)
    for each in (status_in, go_out, errors_in):
        os.close(each)
    report: dict[str, Any] = {}
    try:
        with suppress(ProcessLookupError):  # the init ended during its set-up; `bwrap` says why
            report = _supervise(wanted, monitor, status, go, caller)
    finally:
        os.kill(monitor, signal.SIGKILL)
        os.waitpid(monitor, 0)
    if report:
        return report
    os.set_blocking(errors, False)
    try:
        said = os.read(errors, 2_000).decode("utf-8", "replace").strip()
    except BlockingIOError:  # something else holds the pipe open, and nothing was written
        said = ""
    raise SetupError(f"bwrap: {said.removeprefix('bwrap: ') or 'it ended before the command began'}")
