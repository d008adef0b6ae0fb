"""`CausalHook`: grows the graph in the Reflect node, tells it as events, and reports it with the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from locus.core.errors import JournalError, LocusError
from locus.core.messages import Role
from locus.loop.router import AnyOf
from locus.plugin import Event, Hook, StashKey, hookimpl
from locus_kit.metadata import read_run_data, with_run_data
from locus_kit.reflect import EveryIterations, OnRepetition, OnToolError
from locus_plugin_causal.building import chain_of
from locus_plugin_causal.chain import CausalChain
from locus_plugin_causal.claims import ClaimBuilder
from locus_plugin_causal.events import (
    CausalConflictEvent,
    CausalEdgeEvent,
    CausalInferenceFailedEvent,
    CausalNodeEvent,
)
from locus_plugin_causal.graph import CausalEdge, CausalNode, Conflict
from locus_plugin_causal.inference import Inference
from locus_plugin_causal.report import CausalReport
from locus_plugin_causal.settings import CausalSettings
from locus_plugin_causal.trace import Change, TraceBuilder
from locus_plugin_causal.types import fill_types

if TYPE_CHECKING:
    from locus.core.events import TerminateEvent
    from locus.core.state import AgentState
    from locus.loop.router import ReflectPolicy
    from locus.models import Model
    from locus.plugin import RunContext

__all__ = ["CausalHook", "users_words"]

_NAME = "causal"
_ERRORS = 5

_TRACE: StashKey[TraceBuilder] = StashKey("causal.trace")
_REPORT: StashKey[CausalReport] = StashKey("causal.report")


@frozen
class _Record:
    """What of the graph cannot be worked out from the calls: how many were reported, and what a model claimed.

    It is in the state, so a run that is resumed tells nothing twice and asks no model again.
    """

    told: int = 0
    claims: tuple[Any, ...] = ()

    @classmethod
    def of(cls, state: AgentState) -> _Record:
        found = read_run_data(state, _NAME)
        told, claims = found.get("told"), found.get("claims")
        return cls(told if isinstance(told, int) else 0, claims if isinstance(claims, tuple) else ())

    def into(self, state: AgentState) -> AgentState:
        return with_run_data(state, _NAME, {"told": self.told, "claims": self.claims})


class CausalHook(Hook):
    """Draws the graph of a run.

    Args:
        settings: where the graph comes from; None = from the trace, by rules.
        model: who infers causes where ``settings.infer`` is set, as an object in place of ``settings.model``.
    """

    name = _NAME

    def __init__(self, settings: CausalSettings | None = None, *, model: Model | None = None) -> None:
        self.settings = settings if settings is not None else CausalSettings()
        interval = self.settings.interval
        cadence = () if interval is None else (EveryIterations(interval),)
        self._policy: ReflectPolicy = AnyOf(OnToolError(), OnRepetition(), *cadence)
        self._inference = Inference(self.settings, model=model) if self.settings.infer else None

    @hookimpl
    def locus_register_events(self) -> list[type[Event]]:
        """The plugin's own events."""
        return [CausalNodeEvent, CausalEdgeEvent, CausalConflictEvent, CausalInferenceFailedEvent]

    @hookimpl
    def locus_register_reflect_policies(self) -> list[ReflectPolicy]:
        """When to reflect."""
        return [self._policy]

    @hookimpl
    async def locus_reflect(self, state: AgentState, run: RunContext) -> AgentState:
        """Add the calls since the last time, whichever policy asked; ask a model only for this plugin's own reasons."""
        kept = _Record.of(state)
        trace = await _extend_trace(state, kept, run)
        claims = kept.claims
        if self._inference is not None and self._policy(state) is not None:
            claims = await self._infer(self._inference, state, trace, claims, run)
        return _Record(trace.seen, claims).into(state)

    @hookimpl
    async def locus_terminate(self, state: AgentState, run: RunContext) -> None:
        """Add the calls after the last reflection, and emit their events."""
        await _extend_trace(state, _Record.of(state), run)

    def on_terminate(self, event: TerminateEvent, run: RunContext) -> None:
        """Report the graph of the whole run."""
        state = run.state
        trace = _restore_trace(state, len(state.tool_executions), run)
        trace.extend(state.tool_executions[trace.seen :])
        had = run.stash.get(_REPORT, CausalReport())
        made = CausalReport.of(
            chain_of(trace, _Record.of(state).claims),
            inferences=had.inferences,
            failures=had.failures,
            errors=had.errors,
        )
        run.report(_NAME, made)

    async def _infer(
        self, inference: Inference, state: AgentState, trace: TraceBuilder, claims: tuple[Any, ...], run: RunContext
    ) -> tuple[Any, ...]:
        executions = state.tool_executions[-self.settings.window :]
        calls = [(trace.id_of(execution), execution) for execution in executions]
        request = users_words(state)
        had = run.stash.get(_REPORT, CausalReport())
        try:
            found = await inference.claims(calls, request[-1] if request else "", run)
        except JournalError:
            raise  # no failure of the model: this worker must not go on
        except LocusError as e:
            told = f"{type(e).__name__}: {e}"
            run.stash[_REPORT] = evolve(had, failures=had.failures + 1, errors=(*had.errors, told)[-_ERRORS:])
            await run.emit(CausalInferenceFailedEvent(error=str(e), error_type=type(e).__name__))
            return claims
        run.stash[_REPORT] = evolve(had, inferences=had.inferences + 1)
        await _tell(_new_claims(found, claims, trace), trace.nodes, run)
        return found


def _new_claims(found: tuple[Any, ...], before: tuple[Any, ...], trace: TraceBuilder) -> list[Change]:
    """What a model claims that it did not claim before."""
    old, new = ClaimBuilder(trace.nodes), ClaimBuilder(trace.nodes)
    old.extend(before)
    new.extend(found)
    known_nodes = fill_types(old.nodes, old.edges.values())
    typed = fill_types(new.nodes, new.edges.values())
    nodes: list[Change] = [node for node in typed.values() if known_nodes.get(node.id) != node]
    edges: list[Change] = [edge for edge in new.edges.values() if edge.key not in old.edges]
    known = set(_find_conflicts(old, trace))
    return [*nodes, *edges, *(conflict for conflict in _find_conflicts(new, trace) if conflict not in known)]


def _find_conflicts(claimed: ClaimBuilder, trace: TraceBuilder) -> tuple[Conflict, ...]:
    """The conflicts of claims with each other and with what the trace says about the same nodes."""
    ids = dict.fromkeys(end for edge in claimed.edges.values() for end in (edge.cause, edge.effect))
    nodes = {**claimed.nodes, **{node: trace.nodes[node] for node in ids if node in trace.nodes}}
    return CausalChain(nodes, [*trace.between(ids), *claimed.edges.values()]).conflicts


def users_words(state: AgentState) -> list[str]:
    """What users said up to this run's first answer; reviewers' feedback, which comes later, is not theirs."""
    answers = len(state.reasoning_steps)
    words = []
    for message in reversed(state.messages):
        if message.role is Role.ASSISTANT:
            answers -= 1
        elif answers <= 0 and message.role is Role.USER and message.plugin is None:
            words.append(message.text)
    return words[::-1]


def _restore_trace(state: AgentState, seen: int, run: RunContext) -> TraceBuilder:
    """The graph of the first ``seen`` calls: the one that grew with the run, or after a resume another one like it."""
    trace = run.stash.get(_TRACE, None)
    if trace is None or trace.seen > seen:
        trace = run.stash[_TRACE] = TraceBuilder(users_words(state))
        trace.extend(state.tool_executions[:seen])
    return trace


async def _extend_trace(state: AgentState, kept: _Record, run: RunContext) -> TraceBuilder:
    trace = _restore_trace(state, kept.told, run)
    await _tell(trace.extend(state.tool_executions[trace.seen :]), trace.nodes, run)
    return trace


async def _tell(changes: Iterable[Change], nodes: Mapping[str, CausalNode], run: RunContext) -> None:
    for change in changes:
        await run.emit(_event(change, nodes))


def _event(change: Change, nodes: Mapping[str, CausalNode]) -> Event:
    if isinstance(change, CausalNode):
        return CausalNodeEvent(
            node_id=change.id,
            label=change.label,
            node_type=change.node_type.value,
            confidence=change.confidence,
            source=change.source,
        )
    if isinstance(change, CausalEdge):
        return CausalEdgeEvent(
            cause=change.cause,
            effect=change.effect,
            relation=change.relation.value,
            confidence=change.confidence,
            why=change.why,
            source=change.source,
        )
    labels = [nodes[node].label if node in nodes else node for node in change.nodes]
    return CausalConflictEvent(kind=change.kind, nodes=change.nodes, labels=labels)
