"""`Sandbox`: runs commands in namespaces of their own, and says why that cannot be had here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attrs import define

from locus.core.errors import ConfigError
from locus_plugin_shell.process import CommandResult, Output, run_process
from locus_plugin_shell.settings import ShellSettings

__all__ = ["Sandbox", "command_environment"]

_LAUNCHER = Path(__file__).with_name("launcher.py")
#: Seconds in which a sandbox that works has run a command that does nothing, on a busy machine too.
_PROBE_SECONDS = 30.0
#: Bytes of the launcher's report.
_REPORT = 10_000

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class SandboxFailed(RuntimeError):
    """The sandbox could not be built for a command, which was not begun. Its text says which step failed."""


def command_environment(settings: ShellSettings, home: str) -> dict[str, str]:
    """What a command sees of the environment."""
    own = {"PATH": _PATH, "HOME": home, "LANG": "C.UTF-8", "TERM": "dumb", "TMPDIR": "/tmp"}  # noqa: S108
    return own | {name: os.environ[name] for name in settings.env if name in os.environ}


@define
class Sandbox:
    """Runs commands in user, mount, PID, network, IPC and UTS namespaces of their own.

    A command sees ``/usr``, read-only, its work folder as ``/work``, a ``/tmp`` of its own, and nothing else of the
    host. It has no network, no privileges and no way to get any. All that it has started is killed when it ends.

    Args:
        settings: the limits.
        root: the work folder, which exists.
        bwrap: the program that makes the namespaces; None = the launcher makes them by itself.
    """

    settings: ShellSettings
    root: Path
    bwrap: str | None = None

    @classmethod
    def find(cls, settings: ShellSettings, root: Path) -> Sandbox:
        """A sandbox that works here. Each way is tried once in a process, with a command that does nothing.

        Args:
            settings: the limits, and which way to take.
            root: the work folder, which exists.

        Raises:
            ConfigError: commands cannot run in a sandbox here; says what was tried and why it failed.
        """
        if sys.platform != "linux":
            raise ConfigError(f"{_UNAVAILABLE}: it needs Linux, got {sys.platform}. {_WAYS_OUT}")
        why = []
        if settings.sandbox != "unshare":
            found = _find_bwrap(root)
            try:
                if found is not None:
                    _probe(found)
                    return cls(settings, root, found)
                why.append("bwrap is not on PATH (in the work folder it does not count)")
            except SandboxFailed as e:
                why.append(str(e))
        if settings.sandbox != "bwrap":
            try:
                _probe(None)
                return cls(settings, root)
            except SandboxFailed as e:
                why.append(str(e))
        chosen = "" if settings.sandbox == "auto" else f" with sandbox={settings.sandbox!r}"
        raise ConfigError(f"{_UNAVAILABLE}{chosen}: {'; '.join(why)}. {_WAYS_OUT}")

    async def run(self, command: str, seconds: float) -> CommandResult:
        """Run a command to its end.

        Args:
            command: for ``/bin/sh -c``.
            seconds: after which it is killed.

        Raises:
            SandboxFailed: it was not begun.
        """
        out, err = Output(self.settings.output), Output(_REPORT)
        try:
            env = command_environment(self.settings, "/work")
            ended = await run_process(self.argv(command), env=env, cwd="/", seconds=seconds, out=out, err=err)
        except OSError as e:
            raise SandboxFailed(f"the sandbox could not be started: {e}") from e
        found: dict[str, Any] = {"why": "timeout"} if ended is None else _read_report(err.text().encode())
        if "failed" in found:
            raise SandboxFailed(f"the sandbox could not be built: {found['failed']}")
        why = found.get("why") or found.get("excess", "")
        return CommandResult(code=found.get("code"), why=why, output=out.text(), omitted=out.gap)

    def argv(self, command: str) -> list[str]:
        """The launcher with its arguments, for a command; the environment of the launcher is that of the command."""
        settings = self.settings
        wanted = {
            "work": str(self.root),
            "memory": settings.memory,
            "file_size": settings.file_size,
            "processes": settings.processes,
            "scratch": settings.memory // 4,
            "bwrap": self.bwrap,
        }
        return [sys.executable, "-I", "-S", str(_LAUNCHER), json.dumps(wanted), command]


_UNAVAILABLE = "shell: commands cannot run in a sandbox here"
_WAYS_OUT = (
    "Allow unprivileged user namespaces (in a container: without a seccomp profile that forbids them), install "
    "bubblewrap 0.8 or newer where only bwrap may make them, switch the plugin off, or, with unsafe_host=True, let a "
    "person allow each command on the host"
)


def _find_bwrap(root: Path) -> str | None:
    """The program on this process's PATH, but never one that a command could have put into the work folder."""
    folders = filter(os.path.isabs, os.environ.get("PATH", os.defpath).split(os.pathsep))
    found = (shutil.which("bwrap", path=folder) for folder in folders)
    return next((each for each in found if each and not Path(each).resolve().is_relative_to(root.resolve())), None)


@cache  # what it raises is not kept
def _probe(bwrap: str | None) -> None:
    # The launcher ends when its standard input does.
    reading, writing = os.pipe()
    try:
        with TemporaryDirectory() as folder:
            done = subprocess.run(  # noqa: S603 - this Python, and a program of this package
                Sandbox(ShellSettings(), Path(folder), bwrap).argv("true"),
                env={},
                stdin=reading,
                capture_output=True,
                timeout=_PROBE_SECONDS,
                check=False,
            )
        found = _read_report(done.stderr)
    except (OSError, subprocess.TimeoutExpired) as e:
        found = {"failed": f"start {sys.executable}: {e}"}
    finally:
        os.close(reading)
        os.close(writing)
    if found.get("code") != 0:
        raise SandboxFailed(found.get("failed") or f"the command `true` ended with {found}")


def _read_report(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if isinstance(found, dict):
        return found
    said = text.decode("utf-8", "replace").strip()
    return {"failed": f"the launcher was killed{f': {said[-500:]}' if said else ''}"}
