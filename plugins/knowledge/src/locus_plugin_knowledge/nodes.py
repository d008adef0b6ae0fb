"""The nodes of a scan, and the hook that opens and closes its provider."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any, get_type_hints

from attrs import asdict, evolve
from locus.multiagent.graph import NodeContext, Send  # type: ignore[import-not-found]  # a compat path

from locus.core import decode, encode, thaw
from locus.core.labels import Label
from locus.core.state import AgentState
from locus.plugin import Event, Hook, RunContext, StashKey, hookimpl
from locus_plugin_knowledge.calling import call_method, list_items
from locus_plugin_knowledge.events import ScanItemEvent
from locus_plugin_knowledge.protocol import Grounding, ItemRef, KnowledgeProvider, KnowledgeRow
from locus_plugin_knowledge.research import Researcher, find_facts, write_prompt
from locus_plugin_knowledge.rows import read_row, write_row

if TYPE_CHECKING:
    from locus import Budget
    from locus_plugin_knowledge.catalog import SqliteCatalog

__all__ = ["ScanHook", "ScanNodes", "append_done", "row_type", "send_items"]

#: What a catalog raises for a row that it cannot keep, rather than for a file that cannot be written.
_REFUSALS = (ValueError, OverflowError)

_DONE: StashKey[int] = StashKey("knowledge: how many items are done")


def append_done(left: Any, right: Any) -> Any:
    """Append; None, which a new turn on the thread writes, begins anew."""
    return [] if right is None else [*(left or ()), *right]


def send_items(values: dict[str, Any]) -> Any:
    """A task for each item, or the end at once."""
    items = values["items"]
    return [Send("item", {"item": item, "query": values["query"], "of": len(items)}) for item in items] or "collect"


def row_type(provider: KnowledgeProvider) -> type[KnowledgeRow]:
    """The class of the rows: what `merge_to_row` is annotated to return."""
    try:
        found = get_type_hints(provider.merge_to_row).get("return")
    except (NameError, TypeError, AttributeError):
        return KnowledgeRow
    return found if isinstance(found, type) and issubclass(found, KnowledgeRow) else KnowledgeRow


class ScanNodes:
    """The nodes of a scan, and what is open of it in this process, by run."""

    def __init__(
        self,
        provider: KnowledgeProvider,
        make: Callable[[Sequence[Any], Any, str], Researcher],
        budget: Budget | None,
        catalog: SqliteCatalog | None,
        max_items: int,
    ) -> None:
        self._provider, self._make, self._budget = provider, make, budget
        self._catalog, self._max_items = catalog, max_items
        self._offers: dict[str, tuple[Sequence[Any], Any]] = {}
        self._researchers: dict[tuple[str, str], Researcher] = {}

    @contextlib.asynccontextmanager
    async def hold_open(self, run_id: str) -> AsyncIterator[None]:
        """The provider, open while a run goes on in this process."""
        provider = self._provider
        await call_method(provider.open)
        try:
            tools = await call_method(provider.tools_for_agent)
            self._offers[run_id] = tools, await call_method(provider.output_schema)
            yield
        finally:
            self._offers.pop(run_id, None)
            for known in [known for known in self._researchers if known[0] == run_id]:
                del self._researchers[known]
            await call_method(provider.close)

    def _researcher(self, run_id: str, query: str) -> Researcher:
        found = self._researchers.get((run_id, query))
        if found is None:
            tools, schema = self._offers[run_id]
            found = self._researchers[run_id, query] = self._make(tools, schema, query)
        return found

    # -- the nodes --------------------------------------------------------------------------------

    async def discover(self, values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
        """Find the items; what an earlier turn of the thread has done is forgotten."""
        found = await call_method(self._provider.discover, values["query"])
        items = [encode(item) for item in await list_items(found, self._max_items)]
        return {"items": items, "done": None, "refused": {}}

    async def research(self, values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
        """Ground an item, run its agent, and make its row; what fails is recorded as its error."""
        item = decode(values["item"], ItemRef)
        record: dict[str, Any] = {"key": item.key, "name": item.name, "of": values["of"]}
        record |= {"row": None, "error": None, "facts": []}
        try:
            await self._fill(record, item, values["query"], ctx)
        except Exception as e:  # noqa: BLE001  # whatever a provider raises is the item's error
            record["error"] = _show_error(e)
        return {"done": [record]}

    async def _fill(self, record: dict[str, Any], item: ItemRef, query: str, ctx: NodeContext) -> None:
        async def ground() -> Any:
            found = await call_method(self._provider.ground, item)
            if not isinstance(found, Grounding):
                raise TypeError(f"ground() must return a Grounding, got {found!r:.80}")
            return encode(found)

        # What a step gave is frozen: its lists are tuples, which `decode` does not look into for data.
        grounding = decode(thaw(await ctx.step("ground", ground, effect="pure")), Grounding)
        by = self._researcher(ctx.run_id, query)
        result = await ctx.run_child(by.agent, write_prompt(item, grounding, query), budget=self._budget)
        facts = find_facts(result.state)
        record["facts"] = [asdict(fact) for fact in facts]
        wants_data = self._offers[ctx.run_id][1] is not None
        if result.failed or result.is_open or (wants_data and result.parsed is None):
            raise RuntimeError(f"its research ended without a result, {result.stop_reason}: {result.detail}")
        research = result.parsed if wants_data else result.text
        merge = self._provider.merge_to_row
        row = await call_method(merge, item, grounding, research, model_id=by.model_id, prompt_hash=by.prompt_hash)
        if not isinstance(row, KnowledgeRow):
            raise TypeError(f"merge_to_row() must return a KnowledgeRow, got {row!r:.80}")
        row = evolve(
            row,
            key=item.key,
            model_id=row.model_id or by.model_id,
            prompt_hash=row.prompt_hash or by.prompt_hash,
            facts=row.facts or tuple(fact.id for fact in facts),
        )
        form = write_row(row)
        read_row(form, row_type(self._provider))  # what cannot be read again would lose the other rows at the end
        record["row"] = form

    async def collect(self, values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
        """Write the rows into the catalog; one that it refuses is the error of its item."""
        rows = [read_row(each["row"], row_type(self._provider)) for each in values["done"] or () if each["row"]]
        refused: dict[str, str] = {}
        if self._catalog is not None:
            refused = await _write_rows(self._catalog, rows)
        return {"written": 0 if self._catalog is None else len(rows) - len(refused), "refused": refused}


async def _write_rows(catalog: SqliteCatalog, rows: Sequence[KnowledgeRow]) -> dict[str, str]:
    """Write rows; gives the key of each that the catalog refuses -> why. Whatever else is wrong with it is raised."""
    refused: dict[str, str] = {}
    try:
        await catalog.upsert(rows)
    except _REFUSALS:
        # It does not say which one it is, and has written none.
        for row in rows:
            try:
                await catalog.upsert([row])
            except _REFUSALS as e:
                refused[row.key] = _show_error(e)
    return refused


def _show_error(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:1_000]


class ScanHook(Hook):
    """Opens and closes the provider, says how far the scan is, and whose words are in it."""

    name = "knowledge_scan"

    def __init__(self, made: ScanNodes, label: Label) -> None:
        self._scan, self._label = made, label

    @hookimpl
    def locus_register_events(self) -> list[type[Event]]:
        """The event of progress."""
        return [ScanItemEvent]

    @hookimpl
    def locus_run_session(self, run: RunContext) -> contextlib.AbstractAsyncContextManager[None]:
        """The provider, open as long as the run goes on in this process."""
        return self._scan.hold_open(run.run_id)

    @hookimpl
    async def locus_wrap_node(self, call_next: Any, node: str, state: AgentState, run: RunContext) -> AgentState:
        """Label what follows as having read the provider's words."""
        done: AgentState = await call_next(state)
        # From the first super-step on, which discovers, the agents are shown what the provider gave.
        return done if node != "think" else done.with_label(self._label)

    @hookimpl
    async def locus_on_node_complete(self, event: Any, run: RunContext) -> None:
        """Say that an item is done, also one whose outcome was on record."""
        if event.node != "item" or event.error is not None:
            return
        record = event.update["done"][0]
        count = run.stash[_DONE] = run.stash.get(_DONE, 0) + 1
        await run.emit(
            ScanItemEvent(key=record["key"], name=record["name"], done=count, total=record["of"], error=record["error"])
        )
