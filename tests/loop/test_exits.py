"""What is no `Exception`: a panic is a failure of its tool, its model or its predicate; an exit ends the program."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from tests.loop.kit import Recorder, add, collect, of, results

from locus import Agent, AgentState, Hook, TerminateEvent, ToolContext, tool
from locus.core.directives import Interrupt
from locus.core.errors import ConditionError, ModelError
from locus.core.termination import CustomCondition, MaxIterations, ToolCalled
from locus.journal import MemoryStore
from locus.models.protocol import ModelRequest
from locus.plugin import hookimpl
from locus_testkit import ScriptedModel, call

EXITS = [KeyboardInterrupt, SystemExit]


class Panic(BaseException):
    """What an extension module raises when it breaks: no `Exception`."""


# -- panics -----------------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["concurrent", "sequential"])
async def test_a_tool_that_panics_stops_neither_its_siblings_nor_the_run(mode: Any) -> None:
    @tool
    async def panic() -> str:
        """Break."""
        raise Panic("out of bounds")

    @tool(name="panic_beside")
    async def panic_in_a_group() -> str:
        """Break, in a task of its own."""
        async with anyio.create_task_group() as group:
            group.start_soon(panic.fn)
        return "never"

    calls = [call("panic"), call("add", a=1), call("panic_beside")]
    agent = Agent(ScriptedModel(calls, "done"), tools=[panic, panic_in_a_group, add], tool_execution=mode)
    result = await agent.run("x")
    first, second, third = results(result)
    assert (first, second) == ("Error: Panic: out of bounds", "2")
    assert third.startswith("Error: BaseExceptionGroup: ")
    assert third.endswith("Panic: out of bounds")
    assert result.stop_reason == "NoToolCalls"


@pytest.mark.anyio
async def test_a_synchronous_body_that_raises_generator_exit_has_failed() -> None:
    @tool
    def leave() -> str:
        """Leave as a closed generator does."""
        raise GeneratorExit

    agent = Agent(ScriptedModel([call("leave"), call("add", a=1)], "done"), tools=[leave, add])
    result = await agent.run("x")
    assert results(result) == ["Error: RuntimeError: function raised GeneratorExit", "2"]
    assert result.stop_reason == "NoToolCalls"


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["concurrent", "sequential"])
async def test_an_asynchronous_body_that_raises_generator_exit_has_failed(mode: Any) -> None:
    async def close() -> str:
        await anyio.lowlevel.checkpoint()
        raise GeneratorExit("closed")

    @tool
    async def leave() -> str:
        """Leave as a closed coroutine does."""
        await close()
        return "never"

    @tool
    async def leave_in_a_step(ctx: ToolContext[Any]) -> str:
        """Leave in a step of its own."""
        return await ctx.step("close", close, effect="pure")

    @tool
    async def leave_in_a_group() -> str:
        """Leave in a task of its own."""
        async with anyio.create_task_group() as group:
            group.start_soon(close)
        return "never"

    calls = [call("leave"), call("leave_in_a_step"), call("leave_in_a_group"), call("add", a=1)]
    tools = [leave, leave_in_a_step, leave_in_a_group, add]
    result = await Agent(ScriptedModel(calls, "done"), tools=tools, tool_execution=mode).run("x")
    first, second, third, fourth = results(result)
    assert first == second == "Error: GeneratorExit: closed"
    assert third.startswith("Error: BaseExceptionGroup: ")
    assert fourth == "2"
    assert result.stop_reason == "NoToolCalls"


@pytest.mark.anyio
async def test_a_model_or_an_observer_that_raises_generator_exit_has_failed() -> None:
    class Observer(Hook):
        async def on_think(self, event: Any) -> None:
            raise GeneratorExit

    class Closed:
        name = "test:closed"

        async def complete(self, request: ModelRequest, on_chunk: Any = None) -> Any:
            raise GeneratorExit("closed")

    result = await Agent(Closed()).run("x")
    assert result.stop_reason == "ModelError"
    assert "GeneratorExit: closed" in str(result.error)
    recorder = Recorder()
    result = await Agent(ScriptedModel("hi"), hooks=[Observer(), recorder]).run("x")
    assert result.text == "hi"
    assert len(of(recorder.events, TerminateEvent)) == 1


@pytest.mark.anyio
async def test_a_model_that_panics_is_a_model_error() -> None:
    def panic(_: ModelRequest) -> Any:
        raise Panic("out of bounds")

    result = await Agent(ScriptedModel(panic)).run("x")
    assert result.stop_reason == "ModelError"
    assert isinstance(result.error, ModelError)
    assert "Panic: out of bounds" in str(result.error)
    assert isinstance(result.error.__cause__, Panic)


@pytest.mark.anyio
@pytest.mark.parametrize("raised", [Panic("out of bounds"), Interrupt("Shall I stop?")])
@pytest.mark.parametrize("kind", ["state", "arguments"])
async def test_a_predicate_that_panics_or_asks_is_a_condition_error(raised: BaseException, kind: str) -> None:
    def panic(_: Any) -> bool:
        raise raised

    condition = CustomCondition(panic) if kind == "state" else ToolCalled("add", panic)
    agent = Agent(ScriptedModel(call("add", a=1), "done"), tools=[add], termination=condition | MaxIterations(3))
    result = await agent.run("x")
    assert result.stop_reason == "ConditionError"
    assert type(raised).__name__ in str(result.error) or result.error is raised


def test_a_predicate_that_is_asked_in_a_body_may_ask_a_person_and_may_not_panic() -> None:
    def ask(_: AgentState) -> bool:
        raise Interrupt("Shall I?")

    def panic(_: AgentState) -> bool:
        raise Panic

    with pytest.raises(Interrupt):
        CustomCondition(ask).evaluate(AgentState())
    with pytest.raises(ConditionError):
        CustomCondition(panic).evaluate(AgentState())


@pytest.mark.anyio
async def test_a_node_of_a_plugin_that_panics_is_a_node_error() -> None:
    class Broken(Hook):
        @hookimpl
        async def locus_think(self, state: AgentState, run: Any) -> AgentState | None:
            raise Panic("out of bounds")

    result = await Agent(ScriptedModel("hi"), hooks=[Broken()]).run("x")
    assert result.stop_reason == "NodeError"
    assert "Panic" in str(result.error)


# -- exits ------------------------------------------------------------------------------------------


def exiting(error: type[BaseException], where: str) -> tuple[Agent[Any, Any], Recorder]:
    """An agent whose body, thread, task group, model or predicate ends the program."""
    recorder = Recorder()

    @tool
    async def leave() -> str:
        """Leave, asynchronously."""
        raise error

    @tool
    def leave_in_a_thread() -> str:
        """Leave."""
        raise error

    @tool
    async def wait() -> str:
        """Is under way when the other leaves."""
        await anyio.sleep_forever()
        return "never"

    def model(_: ModelRequest) -> Any:
        raise error

    def predicate(_: AgentState) -> bool:
        raise error

    turns: dict[str, Any] = {
        "body": call("leave"),
        "thread": call("leave_in_a_thread"),
        "beside": [call("wait"), call("leave")],
        "thread beside": [call("wait"), call("leave_in_a_thread")],
        "model": model,
        "predicate": call("wait"),
    }
    agent = Agent(
        ScriptedModel(turns[where], "done"),
        tools=[leave, leave_in_a_thread, wait],
        hooks=[recorder],
        checkpointer=MemoryStore(),
        termination=CustomCondition(predicate) if where == "predicate" else None,
        max_iterations=5,
    )
    return agent, recorder


WHERE = ["body", "thread", "beside", "thread beside", "model", "predicate"]


@pytest.mark.parametrize("error", EXITS)
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_an_exit_ends_the_program_after_the_one_terminate_event(
    error: type[BaseException], where: str, backend: str
) -> None:
    agent, recorder = exiting(error, where)

    async def main() -> None:
        await agent.run("x", thread_id="t")

    with pytest.raises(error) as caught:
        anyio.run(main, backend=backend)
    assert caught.type is error
    [end] = of(recorder.events, TerminateEvent)
    assert end.reason == f"Cancelled: {error.__name__}"


@pytest.mark.anyio
@pytest.mark.parametrize("error", EXITS)
@pytest.mark.parametrize("where", WHERE)
async def test_an_exit_comes_out_of_an_iterated_run_whose_thread_can_be_resumed(
    error: type[BaseException], where: str
) -> None:
    agent, recorder = exiting(error, where)
    with anyio.fail_after(30), pytest.raises(error):
        await collect(agent.run("x", thread_id="t"))
    assert len(of(recorder.events, TerminateEvent)) == 1
    [left] = await agent.threads.list()
    assert left.status == "paused"
