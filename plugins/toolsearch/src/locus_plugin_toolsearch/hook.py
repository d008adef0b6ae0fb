"""`ToolSearchHook`: chooses before each Think, narrows each request, and answers the model's searches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from attrs import evolve

from locus.core.state import AgentState
from locus.models import ModelRequest, ModelResponse
from locus.plugin import Event, Hook, RunContext, StashKey, hookimpl
from locus.tools import ToolRegistry, ToolSpec
from locus_kit.tool_names import check_tool_names
from locus_plugin_toolsearch.events import ToolsOfferedEvent
from locus_plugin_toolsearch.index import Index, Indexes, Match
from locus_plugin_toolsearch.minilm import MiniLM, check, is_usable
from locus_plugin_toolsearch.report import ToolSearchReport
from locus_plugin_toolsearch.search import SEARCH, SEARCHING, result, tool_search
from locus_plugin_toolsearch.selection import KEY, extend_names, find_called, find_pinned, prompt, read_names
from locus_plugin_toolsearch.settings import ToolSearchSettings

__all__ = ["ToolSearchHook"]

NAME = "toolsearch"

#: The names that requests are narrowed to; None = all tools are sent.
_OFFERED: StashKey[tuple[str, ...] | None] = StashKey("toolsearch: the names of the tools to send")
_REPORTED: StashKey[ToolSearchReport] = StashKey("toolsearch: what was reported")
_FAILURE: StashKey[str] = StashKey("toolsearch: why the embedding model was not used")
#: What a request was narrowed from and to what: the same tuple each time, so that whatever is cached beside it holds.
_NARROWED: StashKey[tuple[object, object, object, tuple[ToolSpec, ...]]] = StashKey("toolsearch: the tools sent last")
#: One thread of an event loop makes an index; other users of the same one wait here, and not in threads of their own.
_MAKING: RunVar[CapacityLimiter] = RunVar("locus_toolsearch_making")


class ToolSearchHook(Hook):
    """Sends a model the tools that fit, where there are many.

    Args:
        settings: when, and which; None = the defaults.

    Raises:
        EmbeddingUnavailable: the settings want the embedding model, and something that it needs is not installed.
    """

    name = NAME

    def __init__(self, settings: ToolSearchSettings | None = None) -> None:
        self.settings = ToolSearchSettings() if settings is None else settings
        embeds = _wants_embedding(self.settings)
        self._indexes = Indexes(MiniLM.at(self.settings.weights) if embeds else None)
        # What is left when the embedding model fails in the middle of a run.
        self._plain = Indexes() if embeds else self._indexes

    @hookimpl
    def locus_register_events(self) -> list[type[Event]]:
        """The plugin's own event."""
        return [ToolsOfferedEvent]

    @hookimpl
    def locus_check_tools(self, tools: ToolRegistry) -> None:
        """Refuse names of tools that do not exist."""
        check_tool_names(self.settings.pinned, tools, "toolsearch.pinned")

    @hookimpl
    def locus_register_tools(self) -> list[object]:
        """The tool that searches; it is sent where not all tools are."""
        return [tool_search]

    @hookimpl
    async def locus_wrap_node(
        self, call_next: Callable[[AgentState], Awaitable[AgentState]], node: str, state: AgentState, run: RunContext
    ) -> AgentState:
        """Choose before Think; be there for the model's searches in Execute."""
        if node == "think":
            return await call_next(await self._choose(state, run))
        if node != "execute":
            return await call_next(state)
        token = SEARCHING.set(partial(self._answer_search, run) if self._narrows(run) else None)
        try:
            return await call_next(state)
        finally:
            SEARCHING.reset(token)

    @hookimpl
    async def locus_wrap_model_call(
        self,
        call_next: Callable[[ModelRequest], Awaitable[ModelResponse]],
        request: ModelRequest,
        run: RunContext,
    ) -> ModelResponse:
        """Send the chosen tools, in the order in which they were chosen."""
        return await call_next(_narrow_choice(request, run))

    # -- choosing ---------------------------------------------------------------------------------

    def _narrows(self, run: RunContext) -> bool:
        return _total(run) > self.settings.threshold

    async def _choose(self, state: AgentState, run: RunContext) -> AgentState:
        """The state with the names of the tools to send from now on."""
        if not self._narrows(run):
            run.stash[_OFFERED] = None
            return state
        before = read_names(state)
        if before is None or not state.iteration:
            names, why = await self._for_the_prompt(before or (), state, run), "prompt"
        else:
            names, why = extend_names(before, find_called(state), run.registry), "call"
        run.stash[_OFFERED] = names
        self._report(run, names)
        if names == before:
            return state
        new = names[len(before) :] if before is not None and names[: len(before)] == before else names
        await run.emit(ToolsOfferedEvent(tools=new, why=why, sent=len(names), total=_total(run)))
        return state.with_metadata(KEY, names)

    async def _for_the_prompt(self, before: tuple[str, ...], state: AgentState, run: RunContext) -> tuple[str, ...]:
        registry = run.registry
        kept = extend_names((), before if len(before) <= self.settings.keep else (), registry)
        always = find_pinned(self.settings.pinned, state, registry)

        async def retrieve() -> list[str]:
            top = self.settings.top
            found = [each.name for each in await self._best(prompt(state), top, run, always)]
            # A model that sees only the search would conclude that the agent can do nothing.
            return found or [name for name in registry.names if name not in always][:top]

        # Recorded, so that a resumed run sends the same tools even with another index or none.
        found = await run.step(NAME, retrieve, effect="pure")
        return extend_names(kept, [*always, *found], registry)

    def _report(self, run: RunContext, names: tuple[str, ...]) -> None:
        last = run.stash.get(_REPORTED, None)
        failure = run.stash.get(_FAILURE, "")
        if last is None or last.sent != names or last.failure != failure:
            report = ToolSearchReport(sent=names, total=_total(run), failure=failure)
            run.stash[_REPORTED] = report
            run.report(NAME, report)

    # -- searching --------------------------------------------------------------------------------

    async def _answer_search(self, run: RunContext, query: str) -> str:
        found = await self._best(query, self.settings.results, run)
        return result(query, found, _total(run))

    async def _best(self, query: str, count: int, run: RunContext, without: Iterable[str] = ()) -> tuple[Match, ...]:
        try:
            return await _search(self._indexes, query, count, run, without)
        except Exception as e:
            if self._indexes.embedder is None:
                raise
            run.stash[_FAILURE] = f"{type(e).__name__}: {e}"
        return await _search(self._plain, query, count, run, without)


def _wants_embedding(settings: ToolSearchSettings) -> bool:
    if settings.retriever == "bm25":
        return False
    if settings.retriever == "auto" and settings.weights is None and not is_usable():
        return False
    check(settings.weights)
    return True


def _total(run: RunContext) -> int:
    registry = run.registry
    return len(registry) - (SEARCH in registry)


async def _search(
    indexes: Indexes, query: str, count: int, run: RunContext, without: Iterable[str]
) -> tuple[Match, ...]:
    specs = run.registry.specs
    index: Index | None = indexes.ready(specs)
    if index is None:
        make = partial(indexes.of, specs, leaving=SEARCH)
        index = await to_thread.run_sync(make, abandon_on_cancel=True, limiter=_index_limiter())
    best = partial(index.best, query, count, without=frozenset(without))
    return best() if indexes.embedder is None else await to_thread.run_sync(best, abandon_on_cancel=True)


def _index_limiter() -> CapacityLimiter:
    limiter = _MAKING.get(None)
    if limiter is None:
        limiter = CapacityLimiter(1)
        _MAKING.set(limiter)
    return limiter


def _narrow_choice(request: ModelRequest, run: RunContext) -> ModelRequest:
    offered = run.stash.get(_OFFERED, None)
    choice = request.settings.tool_choice
    last = run.stash.get(_NARROWED, None)
    if last is None or last[0] is not request.tools or last[1] is not offered or last[2] != choice:
        tools = _select_sent(request.tools, offered, choice, run)
        run.stash[_NARROWED] = last = (request.tools, offered, choice, tools)
    return evolve(request, tools=last[3])


def _select_sent(
    tools: tuple[ToolSpec, ...], offered: tuple[str, ...] | None, choice: str | None, run: RunContext
) -> tuple[ToolSpec, ...]:
    if offered is None:
        return tuple(spec for spec in tools if spec.name != SEARCH)
    by_name = {spec.name: spec for spec in tools}
    # A tool that is not the agent's was added by another wrapper, on purpose.
    names = [*(name for name in by_name if name not in run.registry), *offered]
    if choice is not None and choice not in offered:
        names.append(choice)  # the model has to call it now; where it is "auto", no tool has that name
    return tuple(by_name[name] for name in dict.fromkeys(names) if name in by_name)
