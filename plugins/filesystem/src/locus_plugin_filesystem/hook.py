"""`FilesystemHook`: the tools, and files that follow the conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from locus.core.messages import ToolCall
from locus.core.state import AgentState, ToolExecution
from locus.files import BackendError
from locus.plugin import Hook, RunContext, StashKey, hookimpl
from locus.plugins import load
from locus_plugin_filesystem.calls import has_own_id, number_of_call
from locus_plugin_filesystem.offloading import FOLDER, break_lines, find_path, path_of, shorten, tell_lost
from locus_plugin_filesystem.permissions import Access, Rules
from locus_plugin_filesystem.settings import FilesystemSettings
from locus_plugin_filesystem.state import StateBackend, StoredFile
from locus_plugin_filesystem.thread import PLACE, Place, Quota, ThreadFiles, Turn, entries_of, files_of, read_entries
from locus_plugin_filesystem.tools import as_backend, call_backend, make_tools

__all__ = ["FilesystemHook"]

#: Imported where it is used: it looks for what the operating system can do.
_DIRECTORY = "locus_plugin_filesystem.directory:FilesystemBackend"

#: What is shown of a result that is kept as a file begins with its path.
_NOTE = 200

#: The files of a run as they were last committed.
_FILES: StashKey[StateBackend] = StashKey("filesystem: the files of the run")

#: Which text is in each file that a result of the run was written to, as the path that this text has for its own.
_WRITTEN: StashKey[dict[str, str]] = StashKey("filesystem: the large results of the run")


class FilesystemHook(Hook):
    """Gives the agent the six tools; files that are nowhere else are kept in the state of the run.

    Args:
        settings: where the files are.
        provide: what makes a backend of ``"plugin:rest"``.
    """

    name = "filesystem"

    def __init__(self, settings: FilesystemSettings, *, provide: Callable[[str, str], object]) -> None:
        self._settings = settings
        backend = settings.backend
        if settings.root is not None:
            # Rules are about the paths that the model writes: a link must not lead around them.
            backend = load(self.name, _DIRECTORY)(Path(settings.root).expanduser(), links=not settings.permissions)
        elif isinstance(backend, str):
            backend = provide("backend", backend)
        self._follows = backend is None
        self._quota = Quota(settings.max_files, settings.max_bytes)
        self._backend = as_backend(ThreadFiles() if backend is None else backend)
        self._rules = Rules(settings.permissions)
        self._tools = make_tools(self._backend, self._rules, settings.max_depth, images=settings.images)
        self._own = frozenset(each.name for each in self._tools)

    @hookimpl
    def locus_register_tools(self) -> Iterable[object]:
        """The six tools."""
        return self._tools

    @hookimpl
    async def locus_wrap_node(
        self, call_next: Callable[[AgentState], Awaitable[AgentState]], node: str, state: AgentState, run: RunContext
    ) -> AgentState:
        """Put what a turn changes into the state, in the transition that has the results of its calls."""
        if not self._follows or node not in ("execute", "terminate"):
            return await call_next(state)
        above = PLACE.get()
        if above is not None and not run.thread_id.startswith(f"{above.run.thread_id}/"):
            above = None  # a run of its own that a tool has started
        if node == "terminate":
            after = await call_next(state)
            if above is not None:
                await _bring(above, after, run)
            return after
        parents = sum(_may_have_children(call.name, run) for call in state.unanswered)
        turn = Turn(_base(state, run, above), state.unanswered, self._quota, above, parents)
        token = PLACE.set(Place(turn, run))
        try:
            after = await call_next(state)
        finally:
            PLACE.reset(token)
        done = after.tool_executions[len(state.tool_executions) :]
        named = [*zip(turn.calls.name_executions(done, after.messages[len(state.messages) :]), done, strict=True)]
        changes: dict[str, StoredFile] = {}
        for name, each in named:
            if each.started and _may_have_children(each.tool_name, run):
                found = await _collect(turn, name, run)
                changes |= {path: file for path, file in found.items() if path not in changes}
        changes |= turn.changes(named, state.updated_at)
        for each in done:
            path = self._find_kept(each, turn, run)
            text = None if path is None else turn.large.get(path) or await _recall(path, run)
            if path is not None and text is not None:
                changes[path] = StoredFile(text.encode(), 1, state.updated_at)
        if not changes:
            return after
        for path, file in changes.items():
            turn.base.put(path, file)
        return after.with_entries(entries_of(changes))

    def _find_kept(self, execution: ToolExecution, turn: Turn, run: RunContext) -> str | None:
        """The path of the file that a result is kept as; None where it is not kept, as far as its text says."""
        shown = "" if execution.result is None else execution.result[:_NOTE]
        if FOLDER not in shown or execution.tool_name in self._own:
            return None
        path = path_of(run.run_id, execution.iteration, execution.call_id)
        if path in shown:
            return path
        # Of a call that shares its id, the path depends on the whole result, which only the file has.
        return None if turn.calls.have_own_ids else find_path(shown)

    @hookimpl
    async def locus_wrap_tool_call(
        self, call_next: Callable[[ToolCall], Awaitable[Any]], call: ToolCall, run: RunContext
    ) -> Any:
        """Tell the tools, and child runs, in which call of which turn they are."""
        above = PLACE.get()
        if above is None or not self._follows:  # then the place is that of a run above, whose calls are others
            return await call_next(call)
        token = PLACE.set(Place(above.turn, run, above.turn.calls.find(call, run.registry)))
        try:
            return await call_next(call)
        finally:
            PLACE.reset(token)

    @hookimpl
    async def locus_shorten_result(self, text: str, call: ToolCall, limit: int, run: RunContext) -> str | None:
        """Keep a result that is too long as a file, and show its beginning and end."""
        most = self._settings.offload_chars
        if most is None or len(text) <= most or call.name in self._own:
            return None
        kept, place = break_lines(text), PLACE.get()
        turn = run.run_id, run.state.iteration, call.id
        path, own = path_of(*turn), path_of(*turn, kept)
        written = run.stash.setdefault(_WRITTEN, {})
        # Another block of the same result may have been written there.
        if written.get(path, own) != own or not has_own_id(call, run.state.unanswered):
            path = own
        # Files that follow the conversation are of the run; another place is changed as far as the rules allow.
        needed: tuple[Access, ...] = ("read",) if self._follows else ("read", "write")
        if any(self._rules.action(path, access) != "allow" for access in needed):
            return None
        try:
            if not self._follows:
                await call_backend(self._backend, "write", path, kept)
                written[path] = own
            elif place is None or not await _keep(path, kept, place.turn, run):
                return None
        except BackendError as e:
            # Otherwise the quota is used up: what the kernel keeps of it is all there is.
            return tell_lost(text, limit) if e.code == "too_large" and len(text) > limit else None
        return shorten(text, path, kept.count("\n") + 1)


async def _keep(path: str, text: str, turn: Turn, run: RunContext) -> bool:
    """Keep a result with the files of a turn, and record it; whether that place has this text.

    Raises:
        BackendError: the file would be too large, or the quota is used up.
    """
    if path in turn.large:
        return turn.large[path] == text
    turn.compose(path, path, text)

    async def whole() -> str:
        return text

    turn.large[path] = await run.step(f"files{path}", whole, effect="pure")
    return True


async def _recall(path: str, run: RunContext) -> str | None:
    """A result that was kept before a crash; None where a result only looks like one."""

    async def nothing() -> str | None:
        return None

    return await run.step(f"files{path}", nothing, effect="pure")


def _base(state: AgentState, run: RunContext, above: Place | None) -> StateBackend:
    """The files as a turn finds them: those of the run, in a child those of the run above as well."""
    base = run.stash.get(_FILES, None)
    if base is None:
        base = StateBackend()
        if above is not None:
            for path, file in above.turn.base:
                base.put(path, file)
        for path, file in files_of(state):
            base.put(path, file)
        run.stash[_FILES] = base
    return base


def _may_have_children(name: str, run: RunContext) -> bool:
    tool = run.registry.get(name)
    return tool is not None and tool.context_parameter is not None


async def _bring(above: Place, state: AgentState, run: RunContext) -> None:
    """Record what a child has changed in the run above it, before the child is over."""
    number, entries = run.thread_id.rpartition("/")[2], entries_of(dict(files_of(state)))
    # Which call it is, the child's name says for certain.
    name = above.turn.calls.name_at(number_of_call(run.thread_id, above.run.thread_id), above.call)

    async def found() -> dict[str, Any]:
        return entries

    step = _step(name, number)
    above.turn.ended[step] = await above.run.step(step, found, effect="pure")


async def _collect(turn: Turn, name: str, run: RunContext) -> dict[str, StoredFile]:
    """What the children of a call have changed, also before a crash; where they end is recorded as well."""
    found: dict[str, StoredFile] = {}
    number = 0

    async def no_more() -> dict[str, Any] | None:
        return None

    while True:
        step = _step(name, str(number))
        entries = turn.ended[step] if step in turn.ended else await run.step(step, no_more, effect="pure")
        if entries is None:
            return found
        found |= dict(read_entries(entries))
        number += 1


def _step(call: str, child: str) -> str:
    """The name of the step with what a child has changed.

    Args:
        call: the name of the call of the run above, see `TurnCalls`.
        child: its number among the children of the call, which is the end of its thread's name.
    """
    return f"files/{call}/{child}"
