"""`scan`: a graph that discovers items, researches each of them, and gathers the rows.

A run of it opens the provider when it begins and closes it when it ends, whatever the end is: the provider is a session
of the run, so a process that resumes a scan opens and closes it as well. What is done for an item is on record bit by
bit: its evidence, each answer of its agent, and its row, so a resume repeats nothing that was finished.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

from attrs import field, fields, frozen
from locus.multiagent.graph import (  # type: ignore[import-not-found]  # a compat path
    END,
    START,
    CompiledGraph,
    StateGraph,
)

from locus import AgentResult, Run
from locus.core import EMPTY, FrozenDict, decode, freeze
from locus.core.labels import Label, Reads
from locus_plugin_knowledge.nodes import ScanHook, ScanNodes, append_done, row_type, send_items
from locus_plugin_knowledge.protocol import ItemRef, KnowledgeProvider, KnowledgeRow
from locus_plugin_knowledge.research import Fact, make_researcher
from locus_plugin_knowledge.rows import read_row

if TYPE_CHECKING:
    from collections.abc import Generator

    from locus import Agent, Budget
    from locus.models import Model
    from locus_plugin_knowledge.catalog import SqliteCatalog

__all__ = ["ScanResult", "compile_scan", "scan"]


@frozen(kw_only=True)
class ScanResult(AgentResult[Any]):
    """How a scan ended: an `AgentResult` with its rows.

    Args:
        items: what was discovered, in order.
        rows: the rows, in the order of the items; those of failed items are missing.
        errors: the key of each item without a row -> why.
        facts: the key of each item -> the facts that its agent gathered; `KnowledgeRow.facts` names them.
    """

    items: tuple[ItemRef, ...] = ()
    rows: tuple[KnowledgeRow, ...] = ()
    errors: FrozenDict[str, str] = EMPTY
    facts: FrozenDict[str, tuple[Fact, ...]] = field(default=EMPTY, repr=False)


if TYPE_CHECKING:

    class ScanRun(Run[Any]):
        """A `Run` whose result is a `ScanResult`."""

        def __await__(self) -> Generator[Any, Any, ScanResult]: ...

        @property
        def result(self) -> ScanResult: ...

else:
    ScanRun = Run


def scan(
    provider: KnowledgeProvider,
    query: str,
    *,
    model: Model | str,
    concurrency: int = 4,
    checkpointer: Any = None,
    thread_id: str | None = None,
    **options: Any,
) -> ScanRun:
    """Research what a provider finds for a query: a run, to be awaited or iterated, whose result is a `ScanResult`.

    With a checkpointer and a thread's id the same call goes on with a scan that a crash left open, and gives the result
    of one that has ended. An item that fails has an error and no row, and so has one whose row the catalog refuses; the
    scan goes on.

    Args:
        provider: the domain.
        query: what to discover, and what the rows are to say.
        model: of the agents that research the items.
        concurrency: how many items are researched at once.
        checkpointer: where the scan is kept, as for `Agent`.
        thread_id: its name there.
        options: see `compile_scan`.

    Raises, from the run:
        LocusError: what `open` raised.
    """
    app = compile_scan(provider, model=model, concurrency=concurrency, checkpointer=checkpointer, **options)
    request = {} if checkpointer is None or thread_id is None else {"request_id": f"scan:{_short_hash(query)}"}
    run: Run[Any] = app.run({"query": query}, thread_id=thread_id, **request)
    return cast("ScanRun", run.map(partial(_to_result, provider)))


def compile_scan(
    provider: KnowledgeProvider,
    *,
    model: Model | str,
    concurrency: int = 4,
    checkpointer: Any = None,
    catalog: SqliteCatalog | None = None,
    budget: Budget | None = None,
    agent: Callable[[Sequence[Any], Any], Agent[Any, Any]] | None = None,
    max_items: int = 1_000,
    reads: Reads = "untrusted",
    hooks: Sequence[object] = (),
    **options: Any,
) -> CompiledGraph:
    """The graph of a scan, for what `scan` does not show: resume with an answer, history, forks, drawings.

    Its input is ``{"query": ...}``.

    Args:
        provider: as for `scan`.
        model: as for `scan`.
        concurrency: as for `scan`.
        checkpointer: as for `scan`.
        catalog: where the rows are written, by key, when all items are done. A row that it refuses with a `ValueError`
            is the error of its item; any other failure leaves the scan open, so that it can be resumed.
        budget: what each item may spend.
        agent: makes the agent of the provider's tools and its output schema, such as a deep agent.
        max_items: how many items there may be; more are an error before the first is researched.
        reads: whose words the provider gives, see ``tool(reads=)``: rules about information flow hold from there on.
        hooks: further `Hook`s of the graph.
        options: further keywords of `StateGraph.compile`, such as ``termination=CostLimit(5.0)``.
    """
    if isinstance(max_items, bool) or not isinstance(max_items, int) or max_items < 1:
        raise ValueError(f"max_items must be an int of 1 or more, got {max_items!r}")
    made = ScanNodes(provider, partial(make_researcher, model, make_agent=agent), budget, catalog, max_items)
    graph = StateGraph(reducers={"done": append_done}, effect="pure")
    graph.add_node("discover", made.discover).add_node("item", made.research).add_node("collect", made.collect)
    graph.add_edge(START, "discover").add_edge("item", "collect", END)
    graph.add_conditional_edges("discover", send_items, ["item", "collect"])
    app: CompiledGraph = graph.compile(
        checkpointer=checkpointer,
        max_concurrency=concurrency,
        max_tasks=max_items,
        hooks=[ScanHook(made, Label(reads, frozenset({"knowledge"} if reads == "untrusted" else ()))), *hooks],
        **options,
    )
    return app


def _short_hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _to_result(provider: KnowledgeProvider, result: Any) -> ScanResult:
    values, kind = result.values, row_type(provider)
    done, refused = values.get("done") or (), values.get("refused") or {}
    errors = {each["key"]: each["error"] for each in done if each["error"] is not None}
    return ScanResult(
        **{each.name: getattr(result, each.name) for each in fields(AgentResult)},
        items=tuple(decode(form, ItemRef) for form in values.get("items", ())),
        rows=tuple(
            read_row(each["row"], kind) for each in done if each["row"] is not None and each["key"] not in refused
        ),
        errors=freeze({**errors, **refused}),
        facts=FrozenDict({each["key"]: tuple(Fact(**fact) for fact in each["facts"]) for each in done}),
    )
