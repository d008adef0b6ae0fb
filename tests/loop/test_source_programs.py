"""The programs of the two pages that describe the loop and its state, as those pages print them.

A page leaves names out (a tool, a finance system, a provider); the test supplies them. What belongs to an add-on
is left out of a program, line by line; everything else is run as it stands.
"""

from __future__ import annotations

import ast
import asyncio
import importlib
import inspect
import json
import textwrap
from collections.abc import Mapping
from typing import Any

import pytest
from tests.loop.kit import Recorder, collect, kinds, of, results
from tests.unit.toy_plugins import Shelf, shelf

import locus
from locus import (
    Agent,
    AgentState,
    Hook,
    Message,
    ReflectEvent,
    Role,
    TerminateEvent,
    ThinkEvent,
    ToolStartEvent,
    tool,
)
from locus.core.messages import ThinkingBlock
from locus.core.state import ToolExecution
from locus.core.termination import ConfidenceMet, CustomCondition, MaxIterations, ToolCalled
from locus.plugin import RunContext, hookimpl
from locus_kit.reflect import EveryIterations
from locus_testkit import ScriptedModel, call

__all__ = ["shelf"]

pytestmark = pytest.mark.anyio


async def execute(program: str, **names: Any) -> dict[str, Any]:
    """Run a program with the names that it leaves out; the names it has then."""
    space: dict[str, Any] = dict(names)
    code = compile(
        textwrap.dedent(program), "<program>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
    )
    made = eval(code, space)
    if inspect.isawaitable(made):
        await made
    return space


async def search_vendors(query: str) -> list[str]:
    """Search vendors."""
    return [f"vendor for {query}"]


# -- the loop ---------------------------------------------------------------------------------------------


async def test_the_condition_of_the_page_on_the_loop() -> None:
    space = await execute(
        """
        from locus.core.termination import (
            MaxIterations, ToolCalled, ConfidenceMet, TokenLimit,
        )

        terminate = (
            ToolCalled("submit_po") & ConfidenceMet(0.9)
        ) | MaxIterations(10) | TokenLimit(15_000)
        """
    )
    terminate = space["terminate"]
    assert terminate.bounds().iterations == 10
    assert terminate.check(AgentState()) is False
    called = AgentState(confidence=0.95).with_tool_execution(ToolExecution(tool_name="submit_po", result="ok"))
    assert terminate.evaluate(called).reason == "ToolCalled AND ConfidenceMet"


async def test_the_hook_of_the_page_on_the_loop() -> None:
    space = await execute(
        """
        class CostGuardHook(Hook):
            async def on_iteration(self, ev: IterationEvent) -> Directive:
                if ev.token_total > 100_000:
                    return Cancel(reason=f"token budget exhausted at {ev.token_total}")
                return Continue()
        """,
        **{name: getattr(locus, name) for name in ("Hook", "IterationEvent", "Directive", "Cancel", "Continue")},
    )
    usage = locus.Usage(prompt_tokens=60_000)
    model = ScriptedModel(call("search_vendors", query="x"), usage=usage, after="repeat")
    result = await Agent(model, tools=[search_vendors], hooks=[space["CostGuardHook"]()]).run("x")
    assert result.stop_reason == "Cancelled: token budget exhausted at 120000"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_cancellation_of_the_page_on_the_loop() -> None:
    started, log = asyncio.Event(), list[str]()

    @tool
    async def work() -> str:
        """Work until somebody clicks."""
        started.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            log.append("released")
            raise
        return "never"

    space = await execute(
        """
        import asyncio

        run = asyncio.create_task(agent.run(prompt))
        await started.wait()
        # … later, on a timeout, on a user click, on whatever:
        run.cancel()
        """,
        agent=Agent(ScriptedModel(call("work")), tools=[work]),
        prompt="go",
        started=started,
    )
    with pytest.raises(asyncio.CancelledError):
        await space["run"]
    assert log == ["released"]


PROCUREMENT = """
    from locus import Agent
    from locus.tools.decorator import tool
    from locus.core.termination import (
        MaxIterations, ToolCalled, ConfidenceMet,
    )

    @tool(idempotent=True)
    def submit_po(vendor_id: str, amount_usd: float) -> dict:
        return finance.submit(vendor_id, amount_usd)

    agent = Agent(
        model="oci:openai.gpt-5.5",
        tools=[search_vendors, submit_po],
        system_prompt="You are a procurement officer.",
        termination=(
            ToolCalled("submit_po") & ConfidenceMet(0.9)
        ) | MaxIterations(10),
    )

    async for event in agent.run("Find a vendor for $2M cloud spend.",
                                 thread_id="th-q3-2026"):
        match event:
            case ThinkEvent(reasoning=r) if r:    print(f"💭 {r}")
            case ToolStartEvent(tool_name=n):     print(f"🔧 {n}")
            case ReflectEvent(judgment=j):        print(f"🪞 {j}")
            case TerminateEvent(reason=why):      print(f"✅ {why}")
"""


class Finance:
    """The finance system behind the tool."""

    def __init__(self) -> None:
        self.orders: list[tuple[str, float]] = []

    def submit(self, vendor_id: str, amount_usd: float) -> dict[str, Any]:
        self.orders.append((vendor_id, amount_usd))
        return {"order": len(self.orders)}


async def test_the_whole_program_of_the_page_on_the_loop(shelf: Shelf, capsys: pytest.CaptureFixture[str]) -> None:
    order = call("submit_po", vendor_id="v-1", amount_usd=2_000_000.0)
    model = ScriptedModel(
        [ThinkingBlock("I should look first."), call("search_vendors", query="cloud")], order, order, "Ordered."
    )
    shelf.module(
        "toy_oci_models", "made = []\ndef make(name, settings=None):\n    made.append(name)\n    return model\n"
    )
    shelf.plugin("oci", dist="locus-plugin-oci", provides="{'model': 'toy_oci_models:make'}")
    provider: Any = importlib.import_module("toy_oci_models")
    provider.model = model
    finance = Finance()

    await execute(
        PROCUREMENT,
        finance=finance,
        search_vendors=search_vendors,
        ThinkEvent=ThinkEvent,
        ToolStartEvent=ToolStartEvent,
        ReflectEvent=ReflectEvent,
        TerminateEvent=TerminateEvent,
    )

    assert provider.made == ["openai.gpt-5.5"]
    assert finance.orders == [("v-1", 2_000_000.0)]  # the second identical call was answered from the first
    assert capsys.readouterr().out.splitlines() == [
        "💭 I should look first.",
        "🔧 search_vendors",
        "🔧 submit_po",
        "✅ NoToolCalls",
    ]
    assert model.requests[0].messages[0] == Message(Role.SYSTEM, "You are a procurement officer.")


class SecondIteration(Hook):
    """Stands in for the add-on that judges: every second iteration, and then it is sure."""

    @hookimpl
    def locus_register_reflect_policies(self) -> list[EveryIterations]:
        return [EveryIterations(2)]

    @hookimpl
    async def locus_reflect(self, state: AgentState, run: RunContext) -> AgentState:
        await run.emit(ReflectEvent(judgment="booked", confidence=0.93))
        return state.with_confidence(0.93)


async def test_the_worked_example_of_the_page_on_the_loop() -> None:
    @tool
    async def search_flights(origin: str, destination: str, date: str) -> list[str]:
        """Search flights."""
        return ["AA-181"]

    @tool(idempotent=True)
    async def book_flight(flight_id: str, customer_id: str) -> str:
        """Book a flight."""
        return "BK-58291"

    recorder = Recorder()
    model = ScriptedModel(
        call("search_flights", origin="JFK", destination="NRT", date="2026-05-04"),
        call("book_flight", flight_id="AA-181", customer_id="C-42"),
        "never",
    )
    agent = Agent(
        model,
        tools=[search_flights, book_flight],
        hooks=[SecondIteration(), recorder],
        termination=(ToolCalled("book_flight") & ConfidenceMet(0.9)) | MaxIterations(8),
    )
    result = await agent.run("Book a flight from JFK to NRT on 2026-05-04 for customer C-42.")

    # Two iterations, two tool calls, one Reflect, one Terminate, and no third Think.
    assert len(model.requests) == 2
    assert results(result) == ['["AA-181"]', "BK-58291"]
    assert [e.iteration for e in of(recorder.events, ReflectEvent)] == [2]
    assert kinds(recorder.events).count("terminate") == 1
    assert result.stop_reason == "ToolCalled AND ConfidenceMet"
    assert result.state.confidence == 0.93


async def test_the_no_progress_advice_of_the_page_on_the_loop() -> None:
    def no_progress(state: AgentState) -> bool:
        last = state.tool_executions[-2:]
        return len(last) == 2 and last[0].result == last[1].result

    model = ScriptedModel(call("search_vendors", query="x"), after="repeat")
    agent = Agent(model, tools=[search_vendors], termination=CustomCondition(no_progress), max_iterations=10)
    result = await agent.run("x")
    assert (result.stop_reason, len(model.requests)) == ("CustomCondition", 2)


# -- the state ------------------------------------------------------------------------------------------------


async def test_the_first_program_of_the_page_on_the_state() -> None:
    space = await execute(
        """
        from locus.core.state import AgentState
        from locus.core.messages import Message, Role

        state = AgentState(agent_id="my-agent", max_iterations=20)
        before = state
        state = state.with_message(Message(role=Role.USER, content="hi"))
        state = state.with_confidence(0.85)

        # The original is untouched.
        assert state.confidence == 0.85
        """
    )
    assert (space["before"].messages, space["before"].confidence) == ((), 0.0)
    assert space["state"].messages == (Message(Role.USER, "hi"),)


async def test_the_builders_of_the_page_on_the_state() -> None:
    execution = ToolExecution(tool_name="search", result="found")
    space = await execute(
        """
        state = (
            state
            .with_message(Message(role=Role.ASSISTANT, content="..."))
            .with_tool_execution(execution)
            .with_iteration(state.iteration + 1)
            .with_confidence(0.78)
            .with_error("rate-limited")
            .with_metadata("user_tz", "America/New_York")
            .with_token_usage(prompt_tokens=312, completion_tokens=87)
        )
        """,
        state=AgentState(),
        execution=execution,
        Message=Message,
        Role=Role,
    )
    state = space["state"]
    assert (state.iteration, state.confidence, state.total_tokens_used) == (1, 0.78, 399)
    assert state.tool_history == ("search",)
    assert state.errors == ("rate-limited",)
    assert isinstance(state.metadata, Mapping)


async def test_the_round_trip_of_the_page_on_the_state() -> None:
    result = await Agent(ScriptedModel(call("search_vendors", query="x"), "done"), tools=[search_vendors]).run("x")
    space = await execute(
        """
        data: dict = state.to_checkpoint()             # plain dict, JSON-safe
        restored = AgentState.from_checkpoint(data)
        assert restored == state
        """,
        state=result.state,
        AgentState=AgentState,
    )
    assert json.loads(json.dumps(space["data"])) == space["data"]


async def test_seeding_a_run_as_the_page_on_the_state_says() -> None:
    space = await execute(
        """
        seed = AgentState(messages=(Message(role=Role.USER, content="hi"),))
        async for event in agent.run(seed):
            events.append(event)
        """,
        AgentState=AgentState,
        Message=Message,
        Role=Role,
        agent=Agent(ScriptedModel("hello")),
        events=[],
    )
    assert space["events"][-1].final_message == "hello"


async def test_a_predicate_of_the_page_on_the_state() -> None:
    condition = CustomCondition(lambda s: len(s.tool_executions) >= 2)
    model = ScriptedModel(call("search_vendors", query="x"), after="repeat")
    agent = Agent(model, tools=[search_vendors], termination=condition, max_iterations=9)
    events = await collect(agent.run("x"))
    assert of(events, TerminateEvent)[0].reason == "CustomCondition"
    assert len(model.requests) == 2


async def test_what_the_page_on_the_state_warns_of_is_refused() -> None:
    state = AgentState()
    with pytest.raises(AttributeError):
        state.messages.append(Message(Role.USER, "hi"))  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        state.confidence = 1.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        state.with_metadata("k", {"a": 1}).metadata["k"]["a"] = 2


# -- names ---------------------------------------------------------------------------------------------------------


def test_every_event_directive_and_hook_comes_from_locus() -> None:
    for name in (
        *("RunStartEvent", "IterationEvent", "ThinkEvent", "ModelChunkEvent", "ModelCompleteEvent", "ModelErrorEvent"),
        *("ModelRestartEvent", "ToolStartEvent", "ToolCompleteEvent", "ToolCacheHitEvent", "ReflectEvent"),
        *("InterruptEvent", "CheckpointEvent", "HookFailedEvent", "TerminateEvent"),
        *("Continue", "Cancel", "Retry", "Reject", "Directive", "Hook"),
    ):
        assert name in locus.__all__
        assert getattr(locus, name)
