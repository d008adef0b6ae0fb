"""What children may spend: reserved before they start, shared by those of one body, and never beyond a limit above."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest
from attrs import evolve
from tests.loop.kit import Recorder, add, confirm, of, results

from locus import Agent, AgentResult, Budget, ModelRequest, TerminateEvent, ToolContext, tool
from locus.core.directives import Allow
from locus.core.errors import BudgetExceeded
from locus.core.journal import Outcome
from locus.core.messages import Message, Role
from locus.core.termination import CostLimit, TerminationCondition, TimeLimit, TokenLimit
from locus.journal import MemoryStore
from locus.models import ModelResponse
from locus.models.protocol import OnChunk, Price
from locus.plugin import hookimpl
from locus_testkit import DEFAULT_USAGE, ScriptedModel, Turn, call

pytestmark = pytest.mark.anyio

#: A call of a scripted model has 15 tokens, and costs a cent.
CENT = Price(prompt=1_000, completion=0)


class Slow:
    """A model that lets others run while it is asked, and counts the calls that begin."""

    name = "slow"

    def __init__(self, *script: Turn, price: Price | None = CENT) -> None:
        self.inner, self.price = ScriptedModel(*script, after="repeat"), price
        self.begun = 0

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        self.begun += 1
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        return await self.inner.complete(request, on_chunk)


class Instant:
    """A model that answers at once: no two of its calls are under way at the same time."""

    name = "instant"

    def __init__(self, price: Price) -> None:
        self.price, self.begun = price, 0

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        self.begun += 1
        return ModelResponse(message=Message(Role.ASSISTANT, "done"), usage=DEFAULT_USAGE)


def delegate_to(child: Agent[Any, Any], budget: Budget | None = None) -> Any:
    @tool
    async def delegate(ctx: ToolContext[Any], task: str = "work") -> str:
        """Delegate a task."""
        result = await ctx.run_child(child, task, budget=budget)
        return f"{result.stop_reason}: {result.message}"

    return delegate


def looping(model: Any, **options: Any) -> Agent[Any, Any]:
    return Agent(model, tools=[add], max_iterations=50, **options)


def parent(limit: TerminationCondition, tools: list[Any], *script: Turn, **options: Any) -> Agent[Any, Any]:
    return Agent(ScriptedModel(*script, price=CENT), tools=tools, termination=limit, max_iterations=9, **options)


async def reservations(store: MemoryStore, thread_id: str = "t") -> list[Any]:
    bodies = [e.body for e in await store.read(thread_id)]
    return [b.value for b in bodies if isinstance(b, Outcome) and b.step_id.name == "reserved"]


async def test_children_at_the_same_time_share_what_is_left() -> None:
    inner = Slow(call("add", a=1))
    agent = parent(TokenLimit(300), [delegate_to(looping(inner))], [call("delegate", task=str(i)) for i in range(10)])
    result = await agent.run("x")
    # 285 are left for ten: each asks a second time at 15 of 28, and no third time at 30.
    assert inner.begun == 20
    assert result.usage.total_tokens == 15 + 20 * 15
    assert result.stop_reason == "TokenLimit"


async def test_children_that_follow_each_other_stop_where_the_first_limit_is_reached() -> None:
    inner = Slow(call("add", a=1))
    agent = parent(
        TokenLimit(300),
        [delegate_to(looping(inner))],
        [call("delegate", task=str(i)) for i in range(10)],
        tool_execution="sequential",
    )
    result = await agent.run("x")
    assert result.usage.total_tokens == 315


async def test_no_call_begins_once_the_money_is_spent_however_many_children_there_are() -> None:
    inner = Instant(price=CENT)
    calls = [call("delegate", task=str(i)) for i in range(100)]
    agent = parent(CostLimit(0.05), [delegate_to(Agent(inner))], calls, "never")
    result = await agent.run("x")
    assert inner.begun == 4
    assert result.cost == pytest.approx(0.05)
    assert result.stop_reason == "CostLimit"
    assert sum(text == "CostLimit: done" for text in results(result)) == 4
    assert sum(text.startswith("Error: BudgetExceeded: no child run was started") for text in results(result)) == 96


async def test_a_call_with_nothing_left_starts_no_child() -> None:
    inner = ScriptedModel("done", after="repeat")
    agent = parent(TokenLimit(15), [delegate_to(Agent(inner))], call("delegate"), "the end")
    result = await agent.run("x")
    assert inner.requests == ()
    assert results(result) == [
        "Error: BudgetExceeded: no child run was started: nothing is left of what the children of this call may spend"
    ]
    # Its own limit is not exceeded by what reaches it.
    assert result.message == "the end"


async def test_a_part_of_nothing_starts_no_child() -> None:
    inner = ScriptedModel("done", after="repeat")
    calls = [call("delegate", task=str(i)) for i in range(3)]
    agent = parent(TokenLimit(17), [delegate_to(Agent(inner))], calls, tool_execution="sequential")
    result = await agent.run("x")
    assert len(inner.requests) == 1  # two tokens for three calls; the first child exceeds them for all
    assert [text.split(":")[0] for text in results(result)] == ["TokenLimit", "Error", "Error"]


@pytest.mark.parametrize("budget", [Budget(tokens=0), Budget(dollars=0.0)])
async def test_an_empty_budget_starts_no_child(budget: Budget) -> None:
    inner = ScriptedModel("done", price=CENT)
    agent = Agent(ScriptedModel(call("delegate"), "end"), tools=[delegate_to(Agent(inner), budget)])
    assert results(await agent.run("x"))[0].startswith("Error: BudgetExceeded: no child run was started")
    assert inner.requests == ()


async def test_a_child_has_iterations_of_its_own() -> None:
    """A child that needs three calls, delegated in the third of four iterations of its parent."""
    child = Agent(ScriptedModel(call("add", a=1), call("add", a=2), "five"), tools=[add])
    model = ScriptedModel(call("add", a=1), call("add", a=1), call("delegate"), "it is five")
    result = await Agent(model, tools=[add, delegate_to(child)], max_iterations=4).run("x")
    assert results(result)[2] == "NoToolCalls: five"
    assert result.message == "it is five"


async def test_a_call_that_can_start_no_child_gets_no_part() -> None:
    store = MemoryStore()
    calls = [call("add", a=1), call("delegate"), call("add", a=2), call("delegate", a=3), call("delegate")]
    agent = parent(
        TokenLimit(100),
        [add, delegate_to(Agent(ScriptedModel("done", after="repeat")))],
        calls,
        "z",
        checkpointer=store,
    )
    await agent.run("x", thread_id="t")
    [reserved] = await reservations(store)
    assert dict(reserved) == {"calls": (1, 4), "tokens": 85, "dollars": None}


async def test_without_a_limit_or_a_tool_that_may_start_a_child_nothing_is_reserved() -> None:
    for limit, tools in ((TimeLimit(60), [confirm]), (TokenLimit(1000), [add])):
        store = MemoryStore()
        await parent(
            limit,
            tools,
            call(tools[0].name, **({"a": 1} if tools == [add] else {"what": "go"})),
            "z",
            checkpointer=store,
        ).run("x", thread_id="t")
        assert await reservations(store) == []


async def test_children_one_after_another_in_a_body_have_what_is_left_of_its_part() -> None:
    reasons = []

    @tool
    async def both(ctx: ToolContext[Any]) -> str:
        """Three children."""
        for _ in range(3):
            reasons.append((await ctx.run_child(looping(inner), "x")).stop_reason)
        return "done"

    inner = Slow(call("add", a=1))
    result = await parent(TokenLimit(60), [both], call("both"), "z").run("x")
    assert reasons == ["TokenLimit"]  # 45 left: 15, 30, 45 are not more than that, 60 are
    assert inner.begun == 4
    assert results(result)[0].startswith("Error: BudgetExceeded: no child run was started")


async def test_children_of_one_body_at_the_same_time_go_on_until_its_part_is_used_up() -> None:
    ended: list[AgentResult[Any]] = []

    @tool
    async def gather(ctx: ToolContext[Any]) -> str:
        """Two children together."""

        async def one(task: str) -> None:
            ended.append(await ctx.run_child(looping(inner), task))

        async with anyio.create_task_group() as group:
            group.start_soon(one, "a")
            group.start_soon(one, "b")
        return "done"

    inner = Slow(call("add", a=1))
    result = await parent(TokenLimit(135), [gather], call("gather"), "z").run("x")
    assert [e.usage.total_tokens for e in ended] == [75, 75]  # 120 left; both begin a call at 120
    assert result.usage.total_tokens == 165
    assert {e.stop_reason for e in ended} == {"TokenLimit"}


async def test_an_ending_by_a_limit_above_says_so() -> None:
    recorder = Recorder()

    @tool
    async def gather(ctx: ToolContext[Any]) -> str:
        """Two children together."""
        async with anyio.create_task_group() as group:
            for task in "ab":
                group.start_soon(ctx.run_child, looping(inner, hooks=[recorder]), task)
        return "done"

    inner = Slow(call("add", a=1))
    await parent(TokenLimit(135), [gather], call("gather"), "z").run("x")
    ends = of(recorder.events, TerminateEvent)
    assert [(e.reason, e.satisfied) for e in ends] == [("TokenLimit", ("TokenLimit",))] * 2
    assert {e.detail for e in ends} == {"used up together with what other runs of the tree have spent"}


async def test_what_a_child_spends_is_seen_above_before_it_ends() -> None:
    """A plugin of the parent asks its model while a child is under way, until there is nothing left for both."""
    inside, judged = anyio.Event(), anyio.Event()
    answers = list[str]()

    class Judge:
        @hookimpl
        async def locus_decide_tool_call(self, call: Any, run: Any) -> Any:
            if call.name == "add":
                await inside.wait()
                try:
                    for i in range(9):
                        request = ModelRequest(messages=(Message(Role.USER, f"may it? {i}"),))
                        answers.append((await run.call_model(request, purpose="judge")).message.text)
                except BudgetExceeded as e:
                    answers.append(e.reason)
                judged.set()
            return Allow()

    @tool
    async def hold() -> str:
        """Goes on when the judge was refused."""
        inside.set()
        await judged.wait()
        return "went on"

    child = Agent(ScriptedModel(call("hold"), "done"), tools=[hold])
    script: list[Turn] = [[call("delegate"), call("add", a=1)], "yes", "yes", "yes"]
    agent = parent(TokenLimit(59), [add, delegate_to(child)], *script, hooks=[Judge()])
    with anyio.fail_after(10):
        result = await agent.run("x")
    assert answers == ["yes", "yes", "TokenLimit"]  # at 30 and 45, not at 60
    assert result.usage.total_tokens == 60


async def test_a_retry_of_a_child_asks_the_whole_chain() -> None:
    class Again:
        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: Any, run: Any) -> Any:
            for _ in range(9):
                response = await call_next(request)
            return response

    inner = ScriptedModel("done", after="repeat")
    child = Agent(inner, hooks=[Again()])
    result = await parent(TokenLimit(60), [delegate_to(child)], call("delegate"), "z").run("x")
    assert len(inner.requests) == 4  # 15 of the parent's own, and 60 exceed what is left
    assert result.usage.total_tokens == 75


async def test_a_limit_at_the_top_holds_for_the_children_of_children() -> None:
    leaf = Slow(call("add", a=1))
    middle = Agent(
        ScriptedModel([call("delegate", task=str(i)) for i in range(4)], after="repeat"),
        tools=[delegate_to(looping(leaf))],
        max_iterations=50,
    )
    agent = parent(TokenLimit(400), [delegate_to(middle)], [call("delegate", task=str(i)) for i in range(4)], "z")
    result = await agent.run("x")
    assert 400 < result.usage.total_tokens <= 400 + 16 * 15


async def test_seconds_are_the_parents_and_are_not_split() -> None:
    found: list[float] = []

    @tool
    async def look(ctx: ToolContext[Any]) -> str:
        """Look at the deadline."""
        assert ctx.deadline is not None
        found.append(ctx.deadline - anyio.current_time())
        return "seen"

    child = Agent(ScriptedModel(script=lambda request: [call("look"), "done"]), tools=[look])
    calls = [call("delegate", task=str(i)) for i in range(5)]
    await parent(TimeLimit(1000), [delegate_to(child)], calls, "z").run("x")
    assert len(found) >= 5
    assert min(found) > 900


async def test_a_child_begins_no_call_after_the_deadline_of_its_parent() -> None:
    inner = ScriptedModel("late")

    @tool
    async def wait(ctx: ToolContext[Any]) -> str:
        """Starts a child when the time is over."""
        with anyio.CancelScope(shield=True):
            assert ctx.deadline is not None
            await anyio.sleep_until(ctx.deadline)
            result = await ctx.run_child(Agent(inner), "x")
        reasons.append(result.stop_reason)
        return "done"

    reasons: list[str] = []
    # Long enough for a busy machine to enter the body before it is over.
    await parent(TimeLimit(1.0), [wait], call("wait"), "z").run("x")
    assert reasons == ["TimeLimit"]
    assert inner.requests == ()


async def test_a_child_without_a_price_is_charged_as_its_parent_says() -> None:
    inner = looping(ScriptedModel(call("add", a=1), after="repeat"))
    limit = CostLimit(1.0, unknown_price=10_000)  # 15 tokens for 15 cents
    agent = Agent(ScriptedModel(call("delegate"), "z"), tools=[delegate_to(inner)], termination=limit, max_iterations=9)
    result = await agent.run("x")
    assert result.cost == pytest.approx(1.05)


async def test_a_child_without_a_price_is_refused_where_dollars_are_limited() -> None:
    inner = ScriptedModel("done")
    result = await parent(CostLimit(1.0), [delegate_to(Agent(inner))], call("delegate"), "z").run("x")
    assert results(result)[0].startswith("Error: ConfigError: ")
    assert inner.requests == ()


@pytest.mark.parametrize("store", ["none", "memory"])
async def test_a_resumed_turn_shares_as_it_did_before(store: str) -> None:
    """Three calls, one of which asks: what the others have spent by then does not make its part another one."""
    inner = looping(Slow(call("add", a=1)))

    @tool
    async def careful(ctx: ToolContext[Any]) -> str:
        """Asks, then delegates."""
        ctx.interrupt("now?")
        return str((await ctx.run_child(inner, "x")).stop_reason)

    kept = MemoryStore()
    agent = parent(
        TokenLimit(150),
        [careful, delegate_to(inner)],
        [call("careful"), call("delegate"), call("delegate")],
        "z",
        checkpointer=kept if store == "memory" else None,
    )
    asked = await agent.run("x", thread_id="t")
    assert asked.usage.total_tokens == 15 + 2 * 60  # 45 each: not exceeded by 45, so a fourth call
    result = await agent.resume(asked, "yes")
    # What is left for it is not its part of what is left now, but 15 of the 150 that bind them all.
    assert result.usage.total_tokens == 165
    if store == "memory":
        assert [dict(r) for r in await reservations(kept)] == [{"calls": (0, 1, 2), "tokens": 135, "dollars": None}]


async def test_a_child_that_asked_has_spent_what_it_spent() -> None:
    """Two children of one body; the first asks. After the answer they share what is left and no more."""
    inner = Slow(call("confirm", what="go"), call("add", a=1))

    @tool
    async def both(ctx: ToolContext[Any]) -> str:
        """Two children."""
        one = await ctx.run_child(Agent(inner, tools=[confirm, add], max_iterations=50), "a")
        return f"{one.stop_reason}, {one.usage.total_tokens}"

    agent = parent(TokenLimit(60), [both], call("both"), "z")
    asked = await agent.run("x")
    result = await agent.resume(asked, "yes")
    assert result.usage.total_tokens == 75
    assert results(result) == ["TokenLimit, 60"]


@pytest.mark.parametrize("store", ["none", "memory"])
async def test_a_child_that_was_given_up_has_spent_what_it_spent(store: str) -> None:
    """Its usage is not in the state of its parent, which ends for the limit nevertheless."""

    @tool
    async def impatient(ctx: ToolContext[Any]) -> str:
        """Gives its child up in the middle."""
        with anyio.CancelScope() as scope:

            @tool
            async def hang() -> str:
                """Is given up here."""
                scope.cancel()
                await anyio.sleep_forever()
                return "never"

            await ctx.run_child(Agent(ScriptedModel(call("hang")), tools=[hang]), "x")
        return "gave up"

    model = ScriptedModel([call("impatient")], after="repeat")
    kept = MemoryStore()
    agent = Agent(
        model,
        tools=[impatient],
        termination=TokenLimit(59),
        max_iterations=9,
        checkpointer=kept if store == "memory" else None,
    )
    result = await agent.run("x", thread_id="t")
    assert result.stop_reason == "TokenLimit"
    assert result.detail == "used up together with what other runs of the tree have spent"
    assert result.error is None
    assert len(model.requests) == 2  # 15 each, and the same for two children: 60


async def test_a_state_in_the_middle_counts_what_was_spent_before() -> None:
    inner = Slow(call("add", a=1))
    agent = parent(TokenLimit(300), [delegate_to(looping(inner))], call("delegate"), "z")
    before = await Agent(ScriptedModel("hi")).run("x")
    seed = evolve(before.state, prompt_tokens_used=250, completion_tokens_used=0)
    result = await agent.run(seed)
    assert result.state.total_tokens_used <= 315
