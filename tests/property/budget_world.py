"""Trees of runs with limits, and a meter beside them that knows at any moment what was spent and is under way."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Literal

import anyio
import anyio.lowlevel
from attrs import define, field, frozen

from locus import Agent, Budget, Message, ModelRequest, ModelResponse, Role, ToolContext, tool
from locus.core.errors import BudgetExceeded, ModelError
from locus.core.messages import TextBlock, ToolCall, Usage
from locus.core.termination import CostLimit, MaxIterations, TerminationCondition, TokenLimit
from locus.models.protocol import OnChunk, Price
from locus.plugin import hookimpl

__all__ = ["Meter", "Node", "Work", "agent_of", "grow"]

#: Dollars of a token: sums of it are exact, in whatever order they are made.
DOLLARS = 2.0**-10

Mode = Literal["concurrent", "sequential"]


@frozen
class Work:
    """One tool call: the children that its body starts, and whether it starts them together."""

    children: tuple[Node, ...] = ()
    together: bool = False


@frozen(kw_only=True)
class Node:
    """One run of a tree.

    Args:
        turns: the calls of each of its turns; after them it answers.
        tokens: how many each of its model calls takes.
        waits: how long one lasts, in turns of the scheduler.
        attempts: how often a wrapper asks the model for one answer.
        judged: a plugin asks the model about each call.
        max_tokens, max_dollars: its own limits, or None.
        budget: tokens that its parent gives it at most, or None.
        mode: how it runs the calls of a turn.
    """

    turns: tuple[tuple[Work, ...], ...]
    tokens: int
    waits: int = 0
    attempts: int = 1
    judged: bool = False
    max_tokens: int | None = None
    max_dollars: float | None = None
    budget: int | None = None
    mode: Mode = "concurrent"

    @property
    def size(self) -> int:
        """How many runs there are in its tree."""
        return 1 + sum(child.size for turn in self.turns for work in turn for child in work.children)


def grow(random: Random, *, depth: int = 3, top: bool = True) -> Node:
    """A tree of runs: its first one has a limit of tokens, of dollars, or of both."""
    work = random.choices((1, 1, 2, 3), k=random.randint(1, 2)) if depth else []
    limit = random.randint(0, 400) if top or random.random() < 0.2 else None
    kind = random.choice(("tokens", "dollars", "both"))
    return Node(
        turns=tuple(
            tuple(
                Work(
                    tuple(
                        grow(random, depth=depth - 1, top=False)
                        for _ in range(random.choice((0, 1, 1, 2, 3) if depth > 1 else (0, 1, 2, 4)))
                    ),
                    together=random.random() < 0.5,
                )
                for _ in range(calls)
            )
            for calls in work
        ),
        tokens=random.choice((1, 7, 20, 50)),
        waits=random.randint(0, 5),
        attempts=random.choice((1, 1, 1, 3)),
        judged=random.random() < 0.25,
        max_tokens=None if kind == "dollars" else limit,
        max_dollars=None if kind == "tokens" or limit is None else limit * DOLLARS,
        budget=random.randint(0, 100) if not top and random.random() < 0.2 else None,
        mode="concurrent" if random.random() < 0.7 else "sequential",
    )


@define(eq=False)
class Meter:
    """What a run and those below it have spent, and what was under way when a limit of it was reached.

    Args:
        max_tokens, max_dollars: the limits, or None.
        above: the meter of the run above, or None.
    """

    max_tokens: int | None
    max_dollars: float | None
    above: Meter | None = None
    tokens: int = 0
    #: The tokens of the calls under way, one for each.
    under_way: list[int] = field(factory=list)
    #: The tokens of those that were under way when a limit was reached, the one that reached it among them.
    then: list[int] | None = None
    #: How many calls began afterwards.
    late: int = 0

    def below(self, max_tokens: int | None, max_dollars: float | None) -> Meter:
        """A meter for a run below this one."""
        return Meter(max_tokens, max_dollars, above=self)

    def chain(self) -> Iterator[Meter]:
        """This meter and those above it."""
        meter: Meter | None = self
        while meter is not None:
            yield meter
            meter = meter.above

    @property
    def is_used_up(self) -> bool:
        """Whether no call may begin any more."""
        return (self.max_tokens is not None and self.tokens > self.max_tokens) or (
            self.max_dollars is not None and self.tokens * DOLLARS >= self.max_dollars
        )

    def begin(self, tokens: int) -> None:
        """A call begins."""
        for meter in self.chain():
            meter.late += meter.is_used_up
            meter.under_way.append(tokens)

    def end(self, tokens: int) -> None:
        """It has its answer."""
        for meter in self.chain():
            if not meter.is_used_up:
                before = list(meter.under_way)
                meter.tokens += tokens
                meter.then = before if meter.is_used_up else None
            else:
                meter.tokens += tokens
            meter.under_way.remove(tokens)

    @property
    def on_top(self) -> float:
        """The tokens that were spent beyond the limit that was reached first, 0 where none was."""
        if self.then is None:
            return 0
        dollars = None if self.max_dollars is None else self.max_dollars / DOLLARS
        return self.tokens - min(m for m in (self.max_tokens, dollars) if m is not None)

    def check(self) -> None:
        """The law.

        Raises:
            AssertionError: a call began beyond the limit, or more was spent on top than by the calls under way.
        """
        assert self.late == 0, f"{self.late} calls began after a limit was reached: {self}"
        assert self.on_top <= sum(self.then or ()), f"{self.on_top} tokens on top, {self.then} under way"


class Metered:
    """The model of a run: it asks for the calls of the run's turns, and tells the meter when it is asked."""

    name = "metered"
    price = Price(prompt=DOLLARS * 1e6, completion=0)

    def __init__(self, node: Node, meter: Meter) -> None:
        self.node, self.meter = node, meter

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        node, tokens = self.node, self.node.tokens
        self.meter.begin(tokens)
        for _ in range(node.waits):
            await anyio.lowlevel.checkpoint()
        self.meter.end(tokens)
        turn = sum(m.role is Role.ASSISTANT for m in request.messages)
        calls = node.turns[turn] if turn < len(node.turns) else ()
        usage = Usage(prompt_tokens=tokens, cost=tokens * DOLLARS)
        asked = [ToolCall(f"{turn}.{i}", "delegate", {"turn": turn, "i": i}) for i in range(len(calls))]
        message = Message(Role.ASSISTANT, asked or (TextBlock("done"),))
        return ModelResponse(message=message, usage=usage)


class Judging:
    """Asks the run's model about each call; goes on without an answer when there is nothing left to ask with."""

    @hookimpl
    async def locus_decide_tool_call(self, call: Any, run: Any) -> None:
        request = ModelRequest(messages=(Message(Role.USER, f"may it? {call.id}"),))
        try:
            await run.call_model(request, purpose="judge")
        except BudgetExceeded:
            return


class Repeating:
    """Asks the model several times for one answer, as far as it may."""

    def __init__(self, attempts: int) -> None:
        self.attempts = attempts

    @hookimpl
    async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> ModelResponse:
        response: ModelResponse | None = None
        for _ in range(self.attempts):
            try:
                response = await call_next(request)
            except BudgetExceeded:
                break
        if response is None:
            raise ModelError("not asked")
        return response


def agent_of(node: Node, meter: Meter, **options: Any) -> Agent[Any, Any]:
    """The agent that runs a tree.

    Args:
        node: the tree.
        meter: what its calls are noted on.
        options: of the agent.
    """

    @tool(effect="keyed")
    async def delegate(turn: int, i: int, ctx: ToolContext[Any]) -> str:
        """Start the children of one call."""
        work = node.turns[turn][i]

        async def start(number: int) -> None:
            child = work.children[number]
            tokens = [n for n in (child.max_tokens, child.budget) if n is not None]
            below = meter.below(min(tokens, default=None), child.max_dollars)
            meters.append(below)
            budget = None if child.budget is None else Budget(tokens=child.budget)
            try:
                await ctx.run_child(agent_of(child, below), "go", budget=budget)
            except BudgetExceeded:
                return

        if work.together:
            async with anyio.create_task_group() as group:
                for number in range(len(work.children)):
                    group.start_soon(start, number)
        else:
            for number in range(len(work.children)):
                await start(number)
        for below in meters:
            below.check()
        return f"{len(work.children)} done"

    meters: list[Meter] = []
    hooks: list[Any] = [Judging()] if node.judged else []
    if node.attempts > 1:
        hooks.append(Repeating(node.attempts))
    limits: TerminationCondition = MaxIterations(len(node.turns) + 1)
    if node.max_tokens is not None:
        limits = TokenLimit(node.max_tokens) | limits
    if node.max_dollars is not None:
        limits = CostLimit(node.max_dollars) | limits
    return Agent[Any, Any](
        Metered(node, meter), tools=[delegate], termination=limits, hooks=hooks, tool_execution=node.mode, **options
    )
