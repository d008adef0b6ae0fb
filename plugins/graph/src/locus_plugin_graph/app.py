"""`CompiledGraph`: a graph that runs, as the agent that it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from attrs import fields, frozen

from locus import Agent, AgentResult, MaxIterations, Run
from locus.core.errors import ModelError
from locus.core.state import AgentState
from locus.models import Price
from locus.plugin import Lazy
from locus_plugin_graph.condition import GraphEnd
from locus_plugin_graph.drawing import draw_mermaid
from locus_plugin_graph.hook import GraphHook
from locus_plugin_graph.page import draw_svg
from locus_plugin_graph.values import to_prompt, values_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from locus.core.termination import Bounds, TerminationCondition
    from locus.journal import History
    from locus.models import Model, ModelRequest, ModelResponse
    from locus.threads import Threads
    from locus_plugin_graph.plan import Plan
    from locus_plugin_timetravel import Diff, Replay, RouterLike, WhatIf

timetravel: Any = Lazy("locus.timetravel")

__all__ = ["CompiledGraph", "GraphResult", "assemble"]


@frozen(kw_only=True)
class GraphResult(AgentResult[Any]):
    """How a run of a graph ended: an `AgentResult` with the values."""

    @property
    def values(self) -> dict[str, Any]:
        """The values as last committed, as a copy: lists, dicts and sets, after a resume too."""
        return values_of(self.state)


if TYPE_CHECKING:

    class GraphRun(Run[Any]):
        """A `Run` whose result is a `GraphResult`."""

        def __await__(self) -> Generator[Any, Any, GraphResult]: ...

        @property
        def result(self) -> GraphResult: ...

else:
    GraphRun = Run


class _NoModel:
    """The model of a graph that was compiled without one."""

    name = "graph:none"
    price = Price(prompt=0.0, completion=0.0)

    async def complete(self, request: ModelRequest, on_chunk: Any = None) -> ModelResponse:
        """Refuse.

        Raises:
            ModelError: always.
        """
        raise ModelError("the graph was compiled without a model; compile(model='provider:model'), or name one")


def assemble(
    plan: Plan,
    *,
    max_steps: int,
    termination: TerminationCondition | None,
    hooks: Sequence[object],
    model: Model | str | None,
    name: str | None,
    **options: Any,
) -> CompiledGraph:
    """The agent of a plan."""
    condition: TerminationCondition = GraphEnd() | MaxIterations(max_steps)
    if termination is not None:
        condition = condition | termination
    agent: Agent[Any, Any] = Agent(
        _NoModel() if model is None else model,
        hooks=[GraphHook(plan), *hooks],
        termination=condition,
        stop_on_text=False,
        name=name,
        **options,
    )
    return CompiledGraph(plan, agent)


class CompiledGraph:
    """A graph that runs; made by `StateGraph.compile`. It is immutable and serves any number of runs at a time.

    Args:
        plan: the graph.
        agent: what runs it. Each super-step is one iteration of the agent.
    """

    __slots__ = ("agent", "plan")

    def __init__(self, plan: Plan, agent: Agent[Any, Any]) -> None:
        self.plan, self.agent = plan, agent

    def __repr__(self) -> str:
        return f"<CompiledGraph {self.agent.name or ''} nodes={len(self.plan.nodes)}>"

    # -- running ----------------------------------------------------------------------------------

    def run(self, values: Mapping[str, Any] | None = None, **options: Any) -> GraphRun:
        """A run, to be awaited, iterated or entered; its result is a `GraphResult`.

        Args:
            values: the input. On a thread that has values, it is merged with them by the reducers.
            options: ``thread_id``, ``deps``, ``request_id``, ``metadata``, ``termination``, as for `Agent.run`.

        Raises:
            InputError: a value has no JSON form, or the schema does not have its key.
        """
        return cast("GraphRun", self.agent.run(self.to_prompt(values), **options).map(self.to_result))

    def run_sync(self, values: Mapping[str, Any] | None = None, **options: Any) -> GraphResult:
        """`run` for callers without an event loop."""
        return self.to_result(self.agent.run_sync(self.to_prompt(values), **options))

    def resume(self, thread: str | AgentResult[Any], answer: Any = None, **options: Any) -> GraphRun:
        """Go on with a run that a crash, a failure, a cancellation or a question left open.

        Args:
            thread: its thread id, or the result of the run.
            answer: the answer to the open question; ``{interrupt_id: answer}`` for any of several.
            options: ``deps``, ``termination``, ``max_attempts``, as for `Agent.resume`.
        """
        return cast("GraphRun", self.agent.resume(thread, answer, **options).map(self.to_result))

    def resume_sync(self, thread: str | AgentResult[Any], answer: Any = None, **options: Any) -> GraphResult:
        """`resume` for callers without an event loop."""
        return self.to_result(self.agent.resume_sync(thread, answer, **options))

    def cancel(self, reason: str | None = "", *, run_id: str | None = None, thread_id: str | None = None) -> int:
        """End runs that are active now, at their next safe point; gives how many."""
        return self.agent.cancel(reason, run_id=run_id, thread_id=thread_id)

    def to_prompt(self, values: Mapping[str, Any] | None) -> str:
        """The input as the user's message, which guards see."""
        return to_prompt(values, self.plan.keys)

    def to_result(self, result: AgentResult[Any]) -> GraphResult:
        """The result of the agent as that of the graph."""
        return GraphResult(**{each.name: getattr(result, each.name) for each in fields(AgentResult)})

    # -- looking ----------------------------------------------------------------------------------

    def bounds(self) -> Bounds:
        """What a run cannot exceed, in super-steps (iterations), tokens, dollars and seconds."""
        return self.agent.condition.bounds()

    def mermaid(self, state: AgentState | None = None) -> str:
        """The graph as a mermaid flowchart; with a state, what has run and what is next is marked."""
        return draw_mermaid(self.plan, state)

    def svg(self, state: AgentState | None = None) -> str:
        """The same as an SVG element without styles: groups and paths have classes, and names are escaped."""
        return draw_svg(self.plan, state)

    @property
    def threads(self) -> Threads:
        """The threads that its store keeps."""
        return self.agent.threads

    # -- time travel ------------------------------------------------------------------------------

    async def history(self, thread_id: str) -> History:
        """What happened on a thread."""
        found: History = await timetravel.history(self.agent, thread_id)
        return found

    async def state_at(self, thread_id: str, n: int) -> dict[str, Any]:
        """The values that a thread's n-th transition committed."""
        return values_of(await timetravel.state_at(self.agent, thread_id, n))

    async def fork(self, thread_id: str, *, at: int | None = None, into: str | None = None) -> str:
        """Another thread that begins like one; gives its id."""
        made: str = await timetravel.fork(self.agent, thread_id, at=at, into=into)
        return made

    async def replay(
        self, thread_id: str, *, deps: Any = None, termination: TerminationCondition | None = None
    ) -> Replay:
        """Run the graph against the journal of a thread, whose nodes are not entered; whether it comes to the same.

        Args:
            thread_id: the thread; nothing is written to it.
            deps: what nodes get as ``ctx.deps``.
            termination: what its runs were called with, where that has no JSON form and so is not in the journal.
        """
        found: Replay = await timetravel.replay(self.agent, thread_id, deps=deps, termination=termination)
        return found

    async def what_if(
        self,
        thread_id: str,
        *,
        termination: TerminationCondition | None = None,
        router: RouterLike | None = None,
        run_id: str | None = None,
    ) -> WhatIf:
        """Where a run would have stopped under another rule.

        Args:
            thread_id: the thread.
            termination: the condition, in place of the one that the run had.
            router: in place of that: a pure function ``(node, state) -> Route``.
            run_id: which of the thread's runs; None = the last one.
        """
        found: WhatIf = await timetravel.what_if(
            self.agent, thread_id, termination=termination, router=router, run_id=run_id
        )
        return found

    async def diff(self, one: str, other: str) -> Diff:
        """Two threads side by side, and where they part."""
        found: Diff = await timetravel.diff_threads(self.agent, one, other)
        return found
