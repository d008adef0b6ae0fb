"""From a tool trace to a graph, by rule and call by call.

What a trace can show is less than what people mean by causes, and it is sure. The rules:

- a call that fails causes its failure (a symptom);
- a value that a result brought into the run and a later call passes on: the first call causes the second; of a value
  that an error brought, the failure does;
- a call of a tool after another call of it failed, with other arguments, in a later turn: the failure causes the call;
  when it succeeds, it prevents the failure. Only the first such call after a failure counts;
- a call that failed and later succeeds with the same arguments is said both to cause and to prevent its failure: a
  contradiction, because the outcome depends on something that the trace does not show;
- turns of one call each that follow one another a second time, at most three turns after the first: what comes back
  is caused by what came before it, and the turns are a cycle.

Calls with the same tool and arguments are one node, so a run that goes in circles is a graph with a ring in it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby, pairwise

from attrs import evolve

from locus.core.state import ToolExecution
from locus_plugin_causal.graph import CausalEdge, CausalNode, Conflict, NodeType, Relation
from locus_plugin_causal.search import ring
from locus_plugin_causal.values import argument_values, result_values

__all__ = ["Change", "TraceBuilder", "describe_call"]

#: What a step adds to the graph; a node with a known id replaces the one before.
Change = CausalNode | CausalEdge | Conflict

#: How far apart equal turns may be to be a cycle.
_LONGEST_PERIOD = 3
#: How many nodes are looked at in search of a cycle that a new edge has closed.
_LOOKED_AT = 1000
_LONGEST_LABEL = 160


def _clip(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_LABEL else f"{line[: _LONGEST_LABEL - 4]} ..."


def describe_call(execution: ToolExecution) -> str:
    """A call, for people."""
    arguments = ", ".join(f"{key}={value!r:.60}" for key, value in execution.arguments.items())
    return _clip(f"{execution.tool_name}({arguments})")


def _key(execution: ToolExecution) -> str:
    """The same for calls of the same tool with the same arguments."""
    return execution.key or repr((execution.tool_name, sorted(execution.arguments.items(), key=repr)))


class TraceBuilder:
    """Grows a graph with a run; what a call costs depends on the call and not on how long the run is.

    Args:
        known: texts that the run begins with (the user's words): a value in them was not brought by any call.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        self.nodes: dict[str, CausalNode] = {}
        self.edges: dict[tuple[str, str, Relation], CausalEdge] = {}
        #: How many calls the graph holds.
        self.seen = 0
        self._calls: dict[str, str] = {}
        self._effects: dict[str, list[str]] = {}
        self._causes: dict[str, list[str]] = {}
        self._failures: dict[tuple[str, str], str] = {}
        self._failed: dict[str, list[str]] = {}
        # By tool: the failure that was not reacted to yet, and the call that failed.
        self._open: dict[str, tuple[str, str]] = {}
        # By value: the call that brought it, or None where it was there before.
        self._brought: dict[str, str | None] = {}
        for text in known:
            self._brought.update(dict.fromkeys(result_values(text)))
        self._turns = 0
        self._recent: deque[str | None] = deque(maxlen=_LONGEST_PERIOD + 1)
        self._last_turn: dict[str, int] = {}
        self._follows: set[tuple[str, str]] = set()
        self._told: set[frozenset[str]] = set()
        self._changes: list[Change] = []

    def extend(self, executions: Sequence[ToolExecution]) -> list[Change]:
        """Add calls in order, whole turns at a time, and say what changed."""
        for _, group in groupby(executions, key=lambda execution: execution.iteration):
            turn = list(group)
            calls = [self._call(execution) for execution in turn]
            # What a turn calls was decided before any of it answered.
            for call, execution in zip(calls, turn, strict=True):
                self._link_inputs(call, execution)
                self._reaction(call, execution)
            for call, execution in zip(calls, turn, strict=True):
                self._outcome(call, execution)
            self._follow(calls)
        changes, self._changes = self._changes, []
        return changes

    def id_of(self, execution: ToolExecution) -> str:
        """The node of a call that the graph holds."""
        return self._calls[_key(execution)]

    def between(self, ids: Collection[str]) -> list[CausalEdge]:
        """The edges by which some of the nodes cause others of them."""
        return [
            self.edges[cause, effect, Relation.CAUSES]
            for cause in ids
            for effect in self._effects.get(cause, ())
            if effect in ids
        ]

    # -- the rules --------------------------------------------------------------------------------

    def _call(self, execution: ToolExecution) -> str:
        self.seen += 1
        key = _key(execution)
        call = self._calls.get(key)
        if call is None:
            call = self._calls[key] = f"c{self.seen}"
            self._add(CausalNode(call, describe_call(execution), source="trace"))
        return call

    def _link_inputs(self, call: str, execution: ToolExecution) -> None:
        for value in argument_values(execution.arguments):
            origin = self._brought.setdefault(value, None)
            if origin is not None:
                self._connect(origin, call, f"brought {value!r:.80}")

    def _reaction(self, call: str, execution: ToolExecution) -> None:
        waiting = self._open.get(execution.tool_name)
        if waiting is None:
            return
        failure, failed = waiting
        if failed == call:
            return
        del self._open[execution.tool_name]
        self._connect(failure, call, "tried otherwise after the failure")
        if execution.succeeded:
            self._connect(call, failure, "succeeded where the other call had failed", Relation.PREVENTS)

    def _outcome(self, call: str, execution: ToolExecution) -> None:
        if execution.succeeded:
            for value in result_values(execution.result or ""):
                self._brought.setdefault(value, call)
            for failure in self._failed.get(call, ()):
                self._connect(call, failure, "succeeded with the same arguments", Relation.PREVENTS)
            if self._open.get(execution.tool_name, ("", ""))[1] == call:
                del self._open[execution.tool_name]
            return
        error = execution.error or ""
        failure = self._failures.get((call, error), "")
        if not failure:
            failure = self._failures[call, error] = f"e{len(self._failures) + 1}"
            self._failed.setdefault(call, []).append(failure)
            doing = "failed" if execution.started else "was refused"
            label = _clip(f"{execution.tool_name} {doing}: {error}")
            self._add(CausalNode(failure, label, NodeType.SYMPTOM, source="trace"))
            self._connect(call, failure, doing)
            self._link_error(call)
            for value in result_values(error):
                self._brought.setdefault(value, failure)
        self._open[execution.tool_name] = (failure, call)

    def _follow(self, calls: list[str]) -> None:
        """A turn is over: see whether it follows the one before it again."""
        self._turns += 1
        before = self._recent[-1] if self._recent else None
        this = calls[0] if len(calls) == 1 else None
        self._recent.append(this)
        if this is None:
            return
        period = self._turns - self._last_turn.get(this, -_LONGEST_PERIOD)
        self._last_turn[this] = self._turns
        if before is None:
            return
        if (before, this) not in self._follows:
            self._follows.add((before, this))
            return
        around = list(self._recent)[-1 - period :]
        if period > _LONGEST_PERIOD or None in around:
            return
        for earlier, later in pairwise(around):
            if earlier is not None and later is not None:
                self._connect(earlier, later, "came before it again")

    # -- the graph --------------------------------------------------------------------------------

    def _add(self, node: CausalNode) -> None:
        self.nodes[node.id] = node
        self._changes.append(node)

    def _connect(self, cause: str, effect: str, why: str, relation: Relation = Relation.CAUSES) -> None:
        edge = CausalEdge(cause, effect, relation, why=why, source="trace")
        if edge.key in self.edges:
            return
        self.edges[edge.key] = edge
        self._changes.append(edge)
        opposite = Relation.PREVENTS if relation is Relation.CAUSES else Relation.CAUSES
        if (cause, effect, opposite) in self.edges:
            self._changes.append(Conflict("contradiction", (cause, effect)))
        if relation is Relation.PREVENTS:
            return
        self._effects.setdefault(cause, []).append(effect)
        self._causes.setdefault(effect, []).append(cause)
        if self._effects.get(effect) or cause == effect:
            self._close(cause)
        node = self.nodes[effect]
        if node.node_type is NodeType.ROOT_CAUSE and cause != effect:
            self._add(evolve(node, node_type=NodeType.INTERMEDIATE))
        if node.node_type is not NodeType.UNKNOWN:
            self._link_error(cause)

    def _close(self, node: str) -> None:
        around = ring(self._effects, node, most=_LOOKED_AT)
        if around is not None and frozenset(around) not in self._told:
            self._told.add(frozenset(around))
            self._changes.append(Conflict.cycle(around))

    def _link_error(self, node_id: str) -> None:
        """Type what leads to a symptom. A node is typed once, so all of it together costs one pass over the graph."""
        todo = [node_id]
        while todo:
            node = self.nodes[todo.pop()]
            if node.node_type is not NodeType.UNKNOWN:
                continue
            causes = [cause for cause in self._causes.get(node.id, ()) if cause != node.id]
            self._add(evolve(node, node_type=NodeType.INTERMEDIATE if causes else NodeType.ROOT_CAUSE))
            todo += causes
