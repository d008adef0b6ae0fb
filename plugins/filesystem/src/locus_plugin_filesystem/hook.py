"""`FilesystemHook`: the tools, and files that follow the conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from locus.core.messages import ToolCall
from locus.core.state import AgentState
from locus.files import BackendError
from locus.plugin import Hook, RunContext, StashKey, hookimpl
from locus.plugins import load
from locus_plugin_filesystem.offloading import FOLDER, break_lines, path_of, shorten
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
        changes: dict[str, StoredFile] = {}
        for each in done:
            if each.started and _may_have_children(each.tool_name, run):
                found = turn.brought.get(each.call_id)
                if found is None:  # it had finished before a crash
                    found = await _collect(turn, each.call_id, run)
                changes |= {path: file for path, file in found.items() if path not in changes}
        changes |= turn.changes(done, state.updated_at)
        for each in done:
            if each.result is None or FOLDER not in each.result[:_NOTE]:
                continue
            path = path_of(run.run_id, each.iteration, each.call_id)
            if path in each.result[:_NOTE]:
                text = turn.large.get(path) or await _recall(path, run)
                if text is not None:
                    changes[path] = StoredFile(text.encode(), 1, state.updated_at)
        if not changes:
            return after
        for path, file in changes.items():
            turn.base.put(path, file)
        return after.with_entries(entries_of(changes))

    @hookimpl
    async def locus_wrap_tool_call(
        self, call_next: Callable[[ToolCall], Awaitable[Any]], call: ToolCall, run: RunContext
    ) -> Any:
        """Tell the tools, and child runs, in which call of which turn they are."""
        above = PLACE.get()
        if above is None:
            return await call_next(call)
        token = PLACE.set(Place(above.turn, run, call.id))
        try:
            outcome = await call_next(call)
        finally:
            PLACE.reset(token)
        if _may_have_children(call.name, run):
            above.turn.brought[call.id] = await _collect(above.turn, call.id, run)
        return outcome

    @hookimpl
    async def locus_shorten_result(self, text: str, call: ToolCall, limit: int, run: RunContext) -> str | None:
        """Keep a result that is too long as a file, and show its beginning and end."""
        most = self._settings.offload_chars
        if most is None or len(text) <= most or call.name in self._own:
            return None
        path = path_of(run.run_id, run.state.iteration, call.id)
        # Files that follow the conversation are of the run; another place is changed as far as the rules allow.
        needed: tuple[Access, ...] = ("read",) if self._follows else ("read", "write")
        if any(self._rules.action(path, access) != "allow" for access in needed):
            return None
        kept, place = break_lines(text), PLACE.get()
        try:
            if not self._follows:
                await call_backend(self._backend, "write", path, kept)
            elif place is None or path in place.turn.large:
                return None
            else:
                place.turn.compose(call.id, path, kept)

                async def whole() -> str:
                    return kept

                place.turn.large[path] = await run.step(f"files{path}", whole, effect="pure")
        except BackendError:
            return None  # the file would be too large, or the quota is used up
        return shorten(text, path, kept.count("\n") + 1)


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

    async def found() -> dict[str, Any]:
        return entries

    step = _step(above.call_id, number)
    above.turn.ended[step] = await above.run.step(step, found, effect="pure")


async def _collect(turn: Turn, call_id: str, run: RunContext) -> dict[str, StoredFile]:
    """What the children of a call have changed; where they end is recorded as well."""
    found: dict[str, StoredFile] = {}
    number = 0

    async def no_more() -> dict[str, Any] | None:
        return None

    while True:
        step = _step(call_id, str(number))
        entries = turn.ended[step] if step in turn.ended else await run.step(step, no_more, effect="pure")
        if entries is None:
            return found
        found |= dict(read_entries(entries))
        number += 1


def _step(call_id: str, child: str) -> str:
    """The name of the step with what a child has changed.

    Args:
        call_id: the call of the run above.
        child: its number among the children of the call, which is the end of its thread's name.
    """
    return f"files/{call_id}/{child}"
