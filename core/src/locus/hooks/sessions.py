"""`RunSessions`: what plugins hold open while a segment runs, each in a task of its own beside the run's.

A context manager that is open across awaits of other code may own a task group, and a task group cancels the task that
entered it when one of its tasks fails. In a task of its own it cancels itself and no other task, and it can be left at
once or be waited for, whatever becomes of the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import anyio

from locus.core.errors import LocusError, PluginError
from locus.core.lazy import Lazy
from locus.hooks.context import RunContext
from locus.hooks.dispatch import as_caller
from locus.tools.definition import SESSION_TOOLS

if TYPE_CHECKING:
    from anyio.abc import TaskGroup

    from locus.core.state import AgentState
    from locus.hooks.table import HookHealth, HookTable, Impl
    from locus.tools import definition, session_tools
    from locus.tools.registry import ToolRegistry
    from locus.tools.session_tools import SessionTool
else:
    session_tools = Lazy("locus.tools.session_tools")
    definition = Lazy("locus.tools.definition")

#: The hook that opens a session, and the one that hears which tools there are.
RUN_SESSION = "locus_run_session"
CHECK_TOOLS = "locus_check_tools"

#: Seconds that a session gets to close.
CLOSING = 10.0


class SessionRun(RunContext, Protocol):
    """The run, as what holds its sessions sees it."""

    registry: ToolRegistry
    health: HookHealth

    def hold_back(self) -> None:
        """Keep events until the segment begins."""


class RunSessions:
    """The sessions of one segment.

    Args:
        run: the segment.
        hooks: the hooks of its agent.
    """

    __slots__ = ("_checks", "_group", "_impls", "_run", "_sessions")

    def __init__(self, run: SessionRun, hooks: HookTable) -> None:
        self._run, self._impls, self._checks = run, hooks.impls(RUN_SESSION), hooks.impls(CHECK_TOOLS)
        self._group: TaskGroup | None = None
        self._sessions: tuple[_Session, ...] = ()

    async def open(self, state: AgentState, *, ends: bool, resumed: bool = False) -> AgentState:
        """Open the sessions and add their tools to those of the run.

        Args:
            state: what the segment begins with.
            ends: the run does nothing but end, so no session is opened.
            resumed: its run began before, with the tools that are in the state.

        Returns:
            The state with the tools on record.

        Raises:
            PluginError: a session cannot be opened.
            LocusError: as a plugin raised it.
            UnknownName: a terminal tool is neither the agent's nor brought by a session.
        """
        if not self._impls and SESSION_TOOLS not in state.metadata:
            return state
        live = await self._open() if self._impls and not ends else ()
        if not resumed:
            state = session_tools.record(state, live)
        self._run.registry = self._run.registry.with_tools(*session_tools.restore(state, live))
        if not (resumed or ends):
            self._run.registry.require(state.terminal_tools, "terminal tool")
            await self._check_tools()
        return state

    async def _check_tools(self) -> None:
        health, failed = self._run.health, []
        for check in self._checks:
            try:
                check.call(self._run.registry)
            except Exception as e:  # noqa: BLE001  # a server that is down may be all there is to it
                failed.append(health.record(check, e, isolated=True))
        await health.emit(failed)

    async def _open(self) -> tuple[SessionTool, ...]:
        self._run.hold_back()
        self._sessions = tuple(_Session(impl, self._run) for impl in self._impls)
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        for session in self._sessions:
            self._group.start_soon(session)
        return tuple([tool for session in self._sessions for tool in await session.wait_until_open()])

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Leave the sessions; returns when they are left, or had their time."""
        if self._group is None:
            return
        if isinstance(error, GeneratorExit):  # nothing can be awaited any more
            self._group = None
            for session in self._sessions:
                session.scope.cancel()
            return
        for session in self._sessions:
            session.close()
        # A cancelled run waits in peace: what waits in a cancelled scope is woken over and over again.
        with anyio.move_on_after(2 * CLOSING, shield=True):
            for session in self._sessions:
                await session.left.wait()
        group, self._group = self._group, None
        await group.__aexit__(None, None, None)


class _Session:
    """One plugin's session."""

    __slots__ = ("_closing", "_error", "_impl", "_ready", "_run", "_tools", "left", "scope")

    def __init__(self, impl: Impl, run: SessionRun) -> None:
        self._impl, self._run = impl, run
        # A cancelled run takes leave of its tools first: it says itself when this is to end.
        self.scope = anyio.CancelScope(shield=True)
        self._ready, self._closing, self.left = anyio.Event(), anyio.Event(), anyio.Event()
        self._tools: tuple[SessionTool, ...] = ()
        self._error: Exception | None = None

    async def wait_until_open(self) -> tuple[SessionTool, ...]:
        """The tools, once the session is open.

        Raises:
            LocusError: it cannot be opened.
        """
        impl = self._impl
        with anyio.move_on_after(impl.timeout):
            await self._ready.wait()
        if not self._ready.is_set():
            raise PluginError(impl.plugin, f"{RUN_SESSION} did not open within its hook_timeout of {impl.timeout:g} s")
        if self._error is None:
            return self._tools
        error = _single(self._error)
        error.add_note(f"in hook {RUN_SESSION} of plugin {impl.plugin!r}")
        if isinstance(error, LocusError):
            raise error
        raise PluginError(impl.plugin, f"{RUN_SESSION} raised {type(error).__name__}: {error}") from error

    def close(self) -> None:
        """Ask it to end: in its own time where it is open, at once where it was still opening."""
        if self._ready.is_set():
            self._closing.set()
        else:
            self.scope.cancel()

    async def __call__(self) -> None:
        """Hold it open until it is to be closed; what fails is kept for whom it concerns."""
        try:
            await self._hold_safely()
        finally:
            self._ready.set()
            self.left.set()

    async def _hold_safely(self) -> None:
        impl = self._impl
        error: Exception | None = None
        try:
            with self.scope:
                await as_caller(impl.plugin, self._hold())
            if self._closing.is_set() and self.scope.cancelled_caught:
                error = TimeoutError(f"did not close within {CLOSING:g} s and was cancelled")
        except Exception as e:  # noqa: BLE001 - it is a plugin's, and reported as its failure
            error = e
        if error is not None:
            if self._ready.is_set():
                self._run.health.record(impl, error, isolated=True)
            else:
                self._error = error

    async def _hold(self) -> None:
        session = self._impl.call(self._run)
        if session is None:
            return
        if not hasattr(type(session), "__aenter__"):
            if hasattr(session, "close"):
                session.close()  # a coroutine that is not awaited would warn
            raise TypeError(f"returned {session!r:.80}; expected an async context manager, or None")
        async with session as tools:
            # A guard of the run above looks at what this run does; it does not change what it can do.
            brought = () if self._impl.is_from_above else tools or ()
            self._tools = tuple(self._check(tool) for tool in brought)
            self._ready.set()
            await self._closing.wait()
            self.scope.deadline = anyio.current_time() + CLOSING

    def _check(self, tool: Any) -> SessionTool:
        if not isinstance(tool, definition.Tool):
            raise TypeError(f"brought {tool!r:.80}; expected a list of tools, each a locus.tools.Tool")
        return session_tools.SessionTool(self._impl.plugin, tool)


def _single(error: Exception) -> Exception:
    """The error that a task group has wrapped, where there is but one."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
