"""The sandbox that this package makes by itself, with the system call ``unshare``.

Three processes, each of which takes the next one with it when it dies:

- the launcher makes the namespaces and waits;
- the init of the new PID namespace builds the tree of files, and watches. When it ends, the kernel kills all that is in
  the namespace, daemons and fork bombs included. The kernel kills it when the launcher dies;
- the command, without privileges and with limits.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
from typing import Any, NoReturn

from locus_plugin_shell.bounds import (
    ACCOUNTS,
    DEVICES,
    HOST,
    HOST_FILES,
    LINKS,
    LOOK,
    UID,
    CallerGone,
    SetupError,
    find_excess,
    require_first,
    restore_signals,
    run_first,
    set_limits,
    wait,
)

__all__ = ["run"]

_LIBC = ctypes.CDLL(None, use_errno=True)

# linux/sched.h, linux/mount.h, linux/prctl.h
_NAMESPACES = (
    0x10000000 | 0x00020000 | 0x20000000 | 0x40000000 | 0x08000000 | 0x04000000
)  # user, mnt, pid, net, ipc, uts
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_MNT_DETACH = 2
_AT_RECURSIVE, _AT_FDCWD = 0x8000, -100
_RDONLY, _NOSUID, _NODEV, _NOEXEC = 1, 2, 4, 8
_SYS_MOUNT_SETATTR = 442  # the same on every architecture
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 1, 24, 38, 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION_3 = 0x20080522

#: The least that the kernel takes as the highest PID, with some room.
_FEWEST_PIDS = 400


def _check(result: int, what: str) -> None:
    if result < 0:
        raise SetupError(f"{what}: {os.strerror(ctypes.get_errno())}")


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    encoded = [None if each is None else each.encode() for each in (source, target, kind, data)]
    _check(_LIBC.mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3]), f"mount {target}")


def _restrict(path: str, attributes: int, *, below: bool = True) -> None:
    """Add attributes to a mount, and to those below it."""
    wanted = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    flags = _AT_RECURSIVE if below else 0
    size = ctypes.c_size_t(ctypes.sizeof(wanted))
    done = _LIBC.syscall(_SYS_MOUNT_SETATTR, _AT_FDCWD, path.encode(), flags, ctypes.byref(wanted), size)
    _check(done, f"mount_setattr {path} (Linux 5.12 or newer is needed)")


def _bind(source: str, target: str, attributes: int) -> None:
    _mount(source, target, None, _MS_BIND | _MS_REC)
    _restrict(target, attributes)


def _write(path: str, text: str) -> None:
    try:
        with open(path, "w") as file:
            file.write(text)
    except OSError as e:
        raise SetupError(f"write {path}: {e.strerror}") from None


# -- the tree of files -----------------------------------------------------------------------------------


def _limit_pids() -> None:
    """Let the kernel stop a fork bomb of root, for whom it has no limit of processes: the PIDs run out."""
    release = os.uname().release.split(".")
    # Before that version, the highest PID is that of the whole machine.
    if (int(release[0]), int("".join(filter(str.isdigit, release[1])))) >= (6, 14):
        _write("proc/sys/kernel/pid_max", str(_FEWEST_PIDS))
    else:
        require_first("before Linux 6.14")


def _build_tree(work: str, scratch: int) -> None:
    """Make a new root of what programs need, and leave the old one."""
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    # The new root hides a folder in which the work folder may be.
    work_fd = os.open(work, os.O_PATH | os.O_DIRECTORY)
    root = "/tmp"  # noqa: S108 - a mount point that every system has; what is in it is not touched
    _mount("tmpfs", root, "tmpfs", _NOSUID | _NODEV, "size=1m,mode=755")
    os.chdir(root)
    for path in HOST:
        if os.path.islink(path):
            os.symlink(os.readlink(path), path[1:])
        elif os.path.isdir(path):
            os.mkdir(path[1:])
            _bind(path, path[1:], _RDONLY | _NOSUID | _NODEV)
    os.mkdir("etc")
    for path in HOST_FILES:
        if os.path.isdir(path):
            os.mkdir(path[1:])
        elif os.path.exists(path):
            os.close(os.open(path[1:], os.O_CREAT | os.O_WRONLY, 0o644))
        else:
            continue
        _bind(path, path[1:], _RDONLY | _NOSUID | _NODEV)
    for path, text in ACCOUNTS.items():
        _write(path[1:], text)
    os.mkdir("dev")
    for path in DEVICES:
        os.close(os.open(path[1:], os.O_CREAT | os.O_WRONLY, 0o666))
        _bind(path, path[1:], _NOSUID | _NOEXEC)
    for path, target in LINKS.items():
        os.symlink(target, path[1:])
    for path in ("tmp", "dev/shm"):
        os.mkdir(path)
        _mount("tmpfs", path, "tmpfs", _NOSUID | _NODEV, f"size={scratch},mode=1777")
    os.mkdir("proc")
    _mount("proc", "proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    # Before it becomes read-only: no user namespace can be made below this one, in which there would be privileges.
    _write("proc/sys/user/max_user_namespaces", "0")
    _limit_pids()
    # Who is root outside owns the settings of the kernel, privileges or not.
    _restrict("proc", _RDONLY)
    os.mkdir("work")
    _bind(f"/proc/self/fd/{work_fd}", "work", _NOSUID | _NODEV)
    os.close(work_fd)
    _restrict(".", _RDONLY | _NOSUID | _NODEV, below=False)
    _check(_LIBC.pivot_root(b".", b"."), "pivot_root")
    _check(_LIBC.umount2(b".", _MNT_DETACH), "umount the old root")
    os.chdir("/work")


# -- the command -----------------------------------------------------------------------------------------


def _drop_privileges() -> None:
    _check(_LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    for capability in range(64):
        _LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # those that this kernel does not know fail
    _LIBC.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _check(_LIBC.capset(ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)())), "capset")


def _become_command(wanted: dict[str, Any], failure: int, output: int) -> NoReturn:
    """Become the command, which has no descriptor but its output: ``failure`` is closed by the kernel then."""
    os.setsid()
    restore_signals()
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    nothing = os.open("/dev/null", os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.closerange(3, failure)
    os.closerange(failure + 1, 4_096)
    set_limits(wanted)
    _drop_privileges()
    os.execve("/bin/sh", ["sh", "-c", wanted["command"]], os.environ)


def _start_command(wanted: dict[str, Any], output: int) -> int:
    """Start the command; returns its process."""
    said, failure = os.pipe()
    child = os.fork()
    if not child:
        try:
            _become_command(wanted, failure, output)
        except BaseException as e:  # noqa: BLE001 - in the middle of becoming another program
            os.write(failure, f"start the command: {e}".encode())
            os._exit(127)
    os.close(failure)
    why = os.read(said, 2_000)  # nothing once it has begun
    if why:
        raise SetupError(why.decode())
    os.close(said)
    return child


# -- the init of the namespace ---------------------------------------------------------------------------


def _watch(child: int, wanted: dict[str, Any]) -> dict[str, Any]:
    """Reap what ends until the command has, or a limit is exceeded."""
    while True:
        signal.sigtimedwait({signal.SIGCHLD}, LOOK)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                pid = 0
            if pid == child:
                return {"code": os.waitstatus_to_exitcode(status)}
            if not pid:
                break
        excess = find_excess(wanted, "/proc", trust_init=True)
        if excess:
            return {"excess": excess}


def _init(wanted: dict[str, Any], ready: int, report: int, output: int) -> NoReturn:
    """Build the tree, start the command, watch it, report."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.read(ready, 1) != b"x":  # the launcher was killed before the kernel knew that this ends with it
        os._exit(1)
    try:
        socket.sethostname("sandbox")
        _build_tree(wanted["work"], wanted["scratch"])
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        child = _start_command(wanted, output)
        os.close(output)
        result = _watch(child, wanted)
    except (OSError, SetupError) as e:
        result = {"failed": str(e)}
    os.write(report, json.dumps(result).encode())
    os._exit(0)


# -- the launcher ----------------------------------------------------------------------------------------


def _unshare() -> None:
    uid, gid = os.geteuid(), os.getegid()
    if _LIBC.unshare(_NAMESPACES) < 0:
        raise SetupError(f"unshare of user, mount, pid, net, ipc and uts: {os.strerror(ctypes.get_errno())}")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{UID} {uid} 1")
    _write("/proc/self/gid_map", f"{UID} {gid} 1")


def run(wanted: dict[str, Any], caller: int) -> dict[str, Any]:
    """Run a command to its end.

    Args:
        wanted: what the launcher was asked for.
        caller: the process that started the launcher.

    Returns:
        The report.

    Raises:
        SetupError: the sandbox cannot be built.
        CallerGone: the command was ended, because its caller has gone.
    """
    run_first()
    _unshare()
    reading, report = os.pipe()
    ready, go = os.pipe()
    child = os.fork()
    if not child:
        os.close(go)
        _init(wanted, ready, report, 1)
    for descriptor in (ready, report, 1):
        os.close(descriptor)
    os.write(go, b"x")
    ended = os.pidfd_open(child)
    try:
        while not wait([ended], 1.0, caller):
            pass
    except CallerGone:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        os.waitpid(child, 0)
    text = os.read(reading, 10_000)
    return json.loads(text) if text else {"failed": "the init of the namespace was killed"}
