"""`StateGraph`: a graph while it is put together."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from locus import Agent, Budget
from locus.core.errors import closest
from locus_plugin_graph.app import CompiledGraph, assemble
from locus_plugin_graph.checks import check_plan
from locus_plugin_graph.errors import GraphError
from locus_plugin_graph.nodes import is_async, run_agent, run_graph, takes_context
from locus_plugin_graph.options import (
    as_mapping,
    check_agent_options,
    check_count,
    check_effect,
    check_function,
    check_name,
    check_seconds,
    names_in,
)
from locus_plugin_graph.plan import END, START, Branch, Join, Node, Plan
from locus_plugin_graph.schema import Schema

if TYPE_CHECKING:
    from locus.core.termination import TerminationCondition
    from locus.models import Model
    from locus_plugin_graph.nodes import Into
    from locus_plugin_graph.values import Reducer

__all__ = ["StateGraph"]


class StateGraph:
    """Nodes and edges over one state, a dict of values.

    Args:
        schema: a class whose annotations are the keys, ``Annotated[type, reducer]`` where parallel writes are merged;
            None = any keys.
        reducers: key -> ``(left, right) -> merged``, over those of the schema; pure.
        effect: that of nodes which do not say theirs: what may happen to a node in which the process died. ``"once"``
            asks a person, ``"keyed"`` enters it again with the same ``ctx.idempotency_key``, ``"pure"`` simply again.

    Raises:
        GraphError: a key of the schema has no JSON form, or a reducer is for a key that the schema does not have.
    """

    def __init__(
        self, schema: type | None = None, *, reducers: Mapping[str, Reducer] | None = None, effect: str = "once"
    ) -> None:
        self._schema = Schema(schema, reducers or {})
        self._effect = check_effect("StateGraph", effect)
        self._nodes: dict[str, Node] = {}
        self._edges: dict[str, list[str]] = {}
        self._branches: dict[str, list[Branch]] = {}
        self._joins: list[Join] = []

    def add_node(
        self,
        name: str | Callable[..., Any],
        fn: Any = None,
        *,
        effect: str | None = None,
        timeout: float | None = None,
        retries: int = 0,
        writes: Collection[str] | None = None,
        reads: Collection[str] | None = None,
        goto: str | Collection[str] = (),
        prompt: Callable[[dict[str, Any]], Any] | str | None = None,
        into: str | Into | None = None,
        outputs: Collection[str] | Mapping[str, str] | None = None,
        budget: Budget | None = None,
    ) -> StateGraph:
        """Add a node; gives the graph.

        Args:
            name: its name; a function alone gives its own name.
            fn: ``(values)`` or ``(values, ctx)``, where ``ctx`` may have a default, sync or async, that returns a dict
                of what it writes, None or a `Command`; or an `Agent`; or a compiled graph. Its values are a copy of
                its own.
            effect: ``"once"``, ``"keyed"`` or ``"pure"``. Agents and graphs are ``"pure"``: they have journals.
            timeout: seconds that one attempt may take. A synchronous function that takes longer goes on in its thread.
            retries: how often a node that failed is tried again before its failure counts.
            writes: the keys that it may write; two nodes that run together and write one are refused at once then.
            reads: the keys that it gets; None = all.
            goto: the nodes that a `Command` of it may name.
            prompt: of an agent: the key, or a function of the values, that gives what it is run on.
            into: of an agent: the key that its answer is written to, or a function of the values and the
                `AgentResult` that gives what the node writes; None = the node's name.
            outputs: of a graph: the keys that go back, or key here -> key there; None = what its nodes wrote. Of a key
                with a reducer there it is what its nodes have added.
            budget: of an agent or a graph: what it may spend.

        Raises:
            GraphError: the name is taken, or something does not fit the kind of node.
        """
        if fn is None and callable(name) and not isinstance(name, str):
            name, fn = getattr(name, "__name__", ""), name
        name = check_name(name)
        if name in self._nodes:
            raise GraphError(f"the graph has a node {name!r} already; give this one another name")
        options: dict[str, Any] = {
            "name": name,
            "timeout": check_seconds(f"timeout of node {name!r}", timeout),
            "retries": check_count(f"retries of node {name!r}", retries, 0),
            "writes": self._schema.known_keys(writes, f"writes of node {name!r}"),
            "reads": self._schema.known_keys(reads, f"reads of node {name!r}"),
            "goto": names_in(f"goto of node {name!r}", goto),
        }
        if isinstance(fn, Agent | CompiledGraph):
            if effect not in (None, "pure"):
                raise GraphError(f"node {name!r} has a journal of its own: its effect is 'pure', got {effect!r:.80}")
            if budget is not None and not isinstance(budget, Budget):
                raise GraphError(f"budget of node {name!r} must be a Budget, got {budget!r:.80}")
            self._nodes[name] = self._child(name, fn, prompt, into, outputs, budget, options)
            return self
        check_function(name, fn)
        if any(each is not None for each in (prompt, into, outputs, budget)):
            raise GraphError(
                f"node {name!r} is a function: prompt=, into=, outputs= and budget= are for agents and graphs"
            )
        chosen = check_effect(f"node {name!r}", self._effect if effect is None else effect)
        made = Node(run=fn, takes_context=takes_context(name, fn), is_async=is_async(fn), effect=chosen, **options)
        self._nodes[name] = made
        return self

    def _child(
        self,
        name: str,
        inner: Agent[Any, Any] | CompiledGraph,
        prompt: Callable[[dict[str, Any]], Any] | str | None,
        into: str | Into | None,
        outputs: Collection[str] | Mapping[str, str] | None,
        budget: Budget | None,
        options: dict[str, Any],
    ) -> Node:
        if isinstance(inner, CompiledGraph):
            if prompt is not None or into is not None:
                raise GraphError(
                    f"node {name!r} is a graph, which gets and gives values: prompt= and into= are for agents"
                )
            back = None if outputs is None else self._outputs(name, inner, outputs)
            if back is not None and options["writes"] is None:
                options["writes"] = tuple(back)
            run: Any = partial(run_graph, inner, self._schema.keys, back, budget)
            return Node(run=run, takes_context=True, kind="graph", effect="pure", inner=inner, outputs=back, **options)
        if outputs is not None:
            raise GraphError(f"node {name!r} is an agent, which gives an answer: outputs= is for graphs; use into=")
        if isinstance(prompt, str):
            self._schema.known_key(prompt, f"prompt of node {name!r}")
        elif not callable(prompt):
            raise GraphError(f"node {name!r} is an agent: say what it is run on, prompt=lambda values: ... or a key")
        if not callable(into):
            into = self._schema.known_key(name if into is None else into, f"into of node {name!r}")
            options["writes"] = (into,)
        run = partial(run_agent, inner, prompt, into, budget)
        return Node(run=run, takes_context=True, kind="agent", effect="pure", inner=inner, **options)

    def _outputs(
        self, name: str, inner: CompiledGraph, outputs: Collection[str] | Mapping[str, str]
    ) -> Mapping[str, str]:
        where, known = f"outputs of node {name!r}", inner.plan.keys
        if not isinstance(outputs, Mapping):
            outputs = {key: key for key in self._schema.known_keys(outputs, where) or ()}
        for key, there in outputs.items():
            self._schema.known_key(key, where)
            if known is not None and there not in known:
                near = closest(str(there), known)
                hint = f"; did you mean {near!r}?" if near else f"; it has {', '.join(sorted(known))}"
                raise GraphError(f"{where}: its graph has no key {there!r:.80}{hint}")
        return outputs

    def add_edge(self, source: str | Sequence[str], target: str, *then: str) -> StateGraph:
        """Let a node follow another; gives the graph.

        Args:
            source: the node before, or `START`; a list of nodes for a join, which waits until all of them have run.
            target: the node that follows, or `END`.
            then: what follows that, one after the other: ``add_edge(START, "plan", "write", END)``.
        """
        self._add_edge(source, target)
        for before, after in pairwise((target, *then)):
            self._add_edge(before, after)
        return self

    def _add_edge(self, source: str | Sequence[str], target: str) -> None:
        if target == START:
            raise GraphError("START cannot be the target of an edge; name the node that is to follow")
        if isinstance(source, str):
            if source == END:
                raise GraphError("END cannot have an edge; nothing follows it")
            targets = self._edges.setdefault(source, [])
            if target not in targets:
                targets.append(target)
        else:
            self._joins.append(Join(tuple(dict.fromkeys(names_in(f"the source of {target!r}", source))), target))

    def add_conditional_edges(
        self,
        source: str,
        router: Callable[[dict[str, Any]], Any],
        mapping: Mapping[Any, str] | Iterable[str] | None = None,
    ) -> StateGraph:
        """Let a function of the values say what follows a node; gives the graph.

        Args:
            source: the node before, or `START`.
            router: pure and not a coroutine; returns a key of the mapping, or a list of them, each of which may be a
                `Send`. It is asked once for a super-step, with the values after the merge.
            mapping: from each answer to the node that follows; in a list each name is its own answer; None = any node.
        """
        if not callable(router) or inspect.iscoroutinefunction(router):
            raise GraphError(f"the router of {source!r} must be a plain function of the values, got {router!r:.80}")
        made = None if mapping is None else as_mapping(f"the mapping of {source!r}", mapping)
        self._branches.setdefault(source, []).append(Branch(router, made))
        return self

    def compile(
        self,
        *,
        checkpointer: Any = None,
        max_steps: int = 100,
        termination: TerminationCondition | None = None,
        hooks: Sequence[object] = (),
        on_error: Mapping[str, str] | None = None,
        max_tasks: int = 1000,
        max_concurrency: int | None = None,
        model: Model | str | None = None,
        name: str | None = None,
        **options: Any,
    ) -> CompiledGraph:
        """Check the graph and make what runs it.

        Args:
            checkpointer: where its threads are kept, as for `Agent`.
            max_steps: super-steps of a run. A run that reaches them ends with ``"MaxIterations"`` and what it has.
            termination: another reason to stop, such as ``CostLimit(1.0)``.
            hooks: `Hook` objects.
            on_error: node -> the node that follows in place of its edges where it has failed. A failure of any other
                node leaves the run open: `CompiledGraph.resume` goes on with what has no result.
            max_tasks: how many tasks one super-step may have.
            max_concurrency: how many of them are under way at once; None = all.
            model: what `NodeContext.call_model` asks.
            name: a stable name of the graph.
            options: further keywords of `Agent`.

        Raises:
            GraphError: an edge names an unknown node, a node is not reached, or has no way to END, and what else is
                wrong; the message names it.
        """
        check_agent_options(options)
        if not isinstance(on_error, Mapping | None):
            raise GraphError(f"on_error must be a dict of nodes and the nodes that follow, got {on_error!r:.80}")
        plan = Plan(
            nodes=dict(self._nodes),
            edges={source: tuple(targets) for source, targets in self._edges.items()},
            branches={source: tuple(branches) for source, branches in self._branches.items()},
            joins=tuple(self._joins),
            reducers=dict(self._schema.reducers),
            keys=self._schema.keys,
            fallbacks=dict(on_error or {}),
            max_tasks=check_count("max_tasks", max_tasks, 1),
            at_once=None if max_concurrency is None else check_count("max_concurrency", max_concurrency, 1),
        )
        check_plan(plan)
        return assemble(
            plan,
            max_steps=max_steps,
            termination=termination,
            hooks=hooks,
            model=model,
            name=name,
            checkpointer=checkpointer,
            **options,
        )
