"""`ShellHook`: brings the tool ``execute``, and asks before each command that runs without a sandbox."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import anyio

from locus import ToolContext, tool
from locus.core.errors import ConfigError, OutcomeUnknown
from locus.core.messages import ToolCall
from locus.plugin import Decision, Hook, Interrupt, Option, RunContext, hookimpl
from locus.tools import Tool
from locus_kit.calls import show_call
from locus_plugin_shell.process import CommandResult, Output, run_process
from locus_plugin_shell.sandbox import Sandbox, command_environment
from locus_plugin_shell.settings import ShellSettings

__all__ = ["ShellHook"]

NAME = "shell"

#: Bytes of a command: what Linux takes as one argument of a program, with room for the settings.
_LONGEST = 100_000

#: Characters of what is said about an output.
_AROUND = 1_000

_OPTIONS = (
    Option("allow", allow=True),
    Option("reject", takes="reason"),
    Option("edit", allow=True, takes="arguments"),
)


class ShellHook(Hook):
    """Lets a model run commands in a sandbox.

    Args:
        settings: all of them; None = `ShellSettings()`.

    Raises:
        ConfigError: the sandbox cannot be had here, or the work folder cannot be made.
    """

    guard = True
    name = NAME

    def __init__(self, settings: ShellSettings | None = None) -> None:
        self.settings = ShellSettings() if settings is None else settings
        self._root = _make_root(self.settings.root)
        self._sandbox: Sandbox | None = None
        if not self.settings.unsafe_host:
            self._sandbox = Sandbox.find(self.settings, self._root)

    @hookimpl
    def locus_register_tools(self) -> list[Tool[..., Any]]:
        """The tool."""
        settings = self.settings

        # What a page or a mail says must not become a command, so the command is a target: after untrusted text was
        # read, a person is asked first, where `provenance` is on.
        @tool(
            name="execute",
            effect="once",
            targets=("command",),
            egress=settings.unsafe_host,
            max_result_chars=settings.output + _AROUND,
        )
        async def execute(ctx: ToolContext[object], command: str, timeout: float | None = None) -> str:  # noqa: ASYNC109, D417
            """Run a shell command in the work folder and return its exit code and output.

            The command runs with /bin/sh. Without a network; only files in the work folder are kept. What it leaves
            running in the background is stopped when it ends.

            Args:
                command: the command line.
                timeout: seconds after which the command is stopped.
            """
            if len(command.encode("utf-8", "replace")) > _LONGEST or "\0" in command:
                raise ValueError(f"command must be at most {_LONGEST:,} bytes without NUL; put a long text into a file")
            if timeout is not None and math.isnan(timeout):
                raise ValueError("timeout must be a number of seconds, got nan")
            seconds = settings.timeout if timeout is None else min(max(timeout, 0.1), settings.max_timeout)
            left = None if ctx.deadline is None else ctx.deadline - anyio.current_time()
            seconds = seconds if left is None else max(0.0, min(seconds, left))
            with ctx.cut_scope() as cut:
                return _describe(await self._run(command, seconds), settings, seconds)
            assert cut.is_cut
            raise OutcomeUnknown(f"execute: {command[:80]}")

        return [execute]

    @hookimpl
    async def locus_decide_tool_call(self, call: ToolCall, run: RunContext) -> Decision | None:
        """Without a sandbox, a person allows each command."""
        if call.name != "execute" or not self.settings.unsafe_host:
            return None
        return Interrupt(f"May this command run on this machine, without a sandbox? {show_call(call)}", _OPTIONS)

    async def _run(self, command: str, seconds: float) -> CommandResult:
        if self._sandbox is not None:
            return await self._sandbox.run(command, seconds)
        out, err = Output(self.settings.output), Output(0)
        argv = ["/bin/sh", "-c", f"exec </dev/null 2>&1\n{command}"]
        env = command_environment(self.settings, str(self._root))
        code = await run_process(argv, env=env, cwd=str(self._root), seconds=seconds, out=out, err=err)
        return CommandResult(code=code, why="timeout" if code is None else "", output=out.text(), omitted=out.gap)


def _make_root(text: str) -> Path:
    root = Path(text).expanduser().resolve()
    if Path.home().resolve().is_relative_to(root) or root == Path(root.anchor):
        raise ConfigError(f"shell: root must be a folder for the agent's work, got {str(root)!r}; name one below it")
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise ConfigError(f"shell: the folder {str(root)!r} cannot be made: {e.strerror}") from e
    return root


def _describe(done: CommandResult, settings: ShellSettings, seconds: float) -> str:
    """What the model reads."""
    if done.why == "timeout":
        head = f"stopped after {seconds:.3g} s: the time was up"
    elif done.why == "memory":
        head = f"stopped: all processes together used more than {settings.memory:,} bytes of memory"
    elif done.why == "processes":
        head = f"stopped: there were more than {settings.processes:,} processes"
    elif done.code is not None and done.code < 0:
        head = f"killed by signal {-done.code}"
    else:
        head = f"exit code {done.code}"
    return f"{head}\n{done.output}" if done.output else head
