"""Builds the sandbox and runs one command in it: a program of its own, which imports the standard library alone.

Three processes, each of which takes the next one with it when it dies:

- the launcher, a child of the program, makes the namespaces and waits. It ends when its standard input does, which the
  program holds open: a program that was killed closes it;
- the init of the new PID namespace builds the tree of files, and watches. When it ends, the kernel kills all that is in
  the namespace, daemons and fork bombs included. The kernel kills it when the launcher dies;
- the command, without privileges and with limits.

What the command writes goes to standard output; on standard error is one line of JSON that says how it ended.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import socket
import sys
from contextlib import suppress
from typing import Any, NoReturn

__all__ = ["main"]

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

#: The ids that the command sees as its own.
_UID = 1000
#: The least that the kernel takes as the highest PID, with some room.
_FEWEST_PIDS = 400
#: Whether the launcher was started by root.
_IS_ROOT = os.geteuid() == 0
#: Seconds between two looks at what runs in the namespace.
_LOOK = 0.05
#: Of a file system, what programs need: read-only.
_HOST = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_HOST_FILES = ("/etc/alternatives", "/etc/ld.so.cache")
_DEVICES = ("null", "zero", "full", "random", "urandom")


class SetupError(Exception):
    """The sandbox cannot be built; its text says which step failed, and why."""


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
    elif _IS_ROOT and os.sched_getscheduler(0) != os.SCHED_FIFO:
        raise SetupError(
            "before Linux 6.14 root has no limit of processes, and the process that counts them may not run first; "
            "run as another user"
        )


def _build_tree(work: str, scratch: int) -> None:
    """Make a new root of what programs need, and leave the old one."""
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    # The new root hides a folder in which the work folder may be.
    work_fd = os.open(work, os.O_PATH | os.O_DIRECTORY)
    root = "/tmp"  # noqa: S108 - a mount point that every system has; what is in it is not touched
    _mount("tmpfs", root, "tmpfs", _NOSUID | _NODEV, "size=1m,mode=755")
    os.chdir(root)
    for path in _HOST:
        if os.path.islink(path):
            os.symlink(os.readlink(path), path[1:])
        elif os.path.isdir(path):
            os.mkdir(path[1:])
            _bind(path, path[1:], _RDONLY | _NOSUID | _NODEV)
    os.mkdir("etc")
    for path in _HOST_FILES:
        if os.path.isdir(path):
            os.mkdir(path[1:])
        elif os.path.exists(path):
            os.close(os.open(path[1:], os.O_CREAT | os.O_WRONLY, 0o644))
        else:
            continue
        _bind(path, path[1:], _RDONLY | _NOSUID | _NODEV)
    _write("etc/passwd", f"agent:x:{_UID}:{_UID}::/work:/bin/sh\n")
    _write("etc/group", f"agent:x:{_UID}:\n")
    os.mkdir("dev")
    for name in _DEVICES:
        os.close(os.open(f"dev/{name}", os.O_CREAT | os.O_WRONLY, 0o666))
        _bind(f"/dev/{name}", f"dev/{name}", _NOSUID | _NOEXEC)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(target, f"dev/{name}")
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


def _run_command(wanted: dict[str, Any], output: int) -> NoReturn:
    """Become the command."""
    os.setsid()
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    nothing = os.open("/dev/null", os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.closerange(3, 4_096)
    limits = (
        (resource.RLIMIT_AS, wanted["memory"]),
        (resource.RLIMIT_FSIZE, wanted["file_size"]),
        (resource.RLIMIT_NPROC, wanted["processes"]),
        (resource.RLIMIT_NOFILE, 1_024),
        (resource.RLIMIT_CORE, 0),
    )
    for which, most in limits:
        hard = resource.getrlimit(which)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (most, most))
    _drop_privileges()
    os.execve("/bin/sh", ["sh", "-c", wanted["command"]], os.environ)


# -- the init of the namespace ---------------------------------------------------------------------------


def _find_excess(wanted: dict[str, Any], page: int) -> str:
    """Which limit all processes of the namespace together are beyond, or ``""``."""
    found = [name for name in os.listdir("/proc") if name.isdecimal() and name != "1"]
    if len(found) > wanted["processes"]:
        return "processes"
    resident = 0
    for name in found:
        try:
            with open(f"/proc/{name}/statm", "rb") as file:
                resident += int(file.read().split()[1]) * page
        except (OSError, IndexError):
            continue  # it has ended
    return "memory" if resident > wanted["memory"] else ""


def _watch(child: int, wanted: dict[str, Any]) -> dict[str, Any]:
    """Reap what ends until the command has, or a limit is exceeded."""
    page = os.sysconf("SC_PAGE_SIZE")
    while True:
        signal.sigtimedwait({signal.SIGCHLD}, _LOOK)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                pid = 0
            if pid == child:
                return {"code": os.waitstatus_to_exitcode(status)}
            if not pid:
                break
        excess = _find_excess(wanted, page)
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
        child = os.fork()
        if not child:
            try:
                _run_command(wanted, output)
            except BaseException as e:  # noqa: BLE001 - in the middle of becoming another program
                os.write(report, json.dumps({"failed": f"start the command: {e}"}).encode())
                os._exit(127)
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
    _write("/proc/self/uid_map", f"{_UID} {uid} 1")
    _write("/proc/self/gid_map", f"{_UID} {gid} 1")


def _run_first() -> None:
    """Be scheduled before all that the command starts, where that is allowed.

    Before Linux 6.14 the kernel does not limit the processes of root: the init counts them, and must run while a fork
    bomb keeps every core busy. Other users are not allowed this and do not need it.
    """
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def main() -> None:
    """Run the command that the first argument describes, as JSON, with the environment of this process.

    Every user of the machine can read arguments; the environment is read by the user who runs this alone.
    """
    wanted = json.loads(sys.argv[1])
    parent, report, output = os.getppid(), 2, 1
    _run_first()
    try:
        _unshare()
    except SetupError as e:
        os.write(report, json.dumps({"failed": str(e)}).encode())
        return
    ready, go = os.pipe()
    child = os.fork()
    if not child:
        os.close(go)
        _init(wanted, ready, report, output)
    os.close(ready)
    os.close(output)
    os.write(go, b"x")
    ended = os.pidfd_open(child)
    while True:
        found, _, _ = select.select([0, ended], [], [], 1.0)
        if ended not in found and (0 in found or os.getppid() != parent):  # the program has gone
            os.kill(child, signal.SIGKILL)
        elif ended not in found:
            continue
        os.waitpid(child, 0)
        return


if __name__ == "__main__":
    main()
