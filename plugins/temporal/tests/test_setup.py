"""What a `LocusPlugin` takes and refuses, and what it does to a client and a worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.common import RetryPolicy
from temporalio.converter import CompositePayloadConverter, DataConverter, DefaultPayloadConverter, PayloadConverter
from temporalio.workflow import ActivityConfig

from locus import Agent, tool
from locus.core.directives import Cancel
from locus.core.errors import ConfigError, UnknownName
from locus.core.messages import Message, Role, ToolCall, Usage
from locus.core.state import AgentState
from locus.plugin import hookimpl
from locus_plugin_temporal import (
    AgentTask,
    AgentWorkflow,
    DevServer,
    LocusPlugin,
    NotInWorkflow,
    run,
)
from locus_plugin_temporal.converter import with_locus_values
from locus_testkit import ScriptedModel, Turn, call

from .world import PATIENCE, working

pytestmark = pytest.mark.anyio


@tool(effect="once")
async def pay(total: int) -> str:
    """Pay."""
    return f"paid {total}"


@tool(effect="keyed", timeout=3)
async def ship() -> str:
    """Ship."""
    return "shipped"


def _agent(**options: Any) -> Agent[Any, Any]:
    turns: list[Turn] = [[call("pay", total=3), call("ship")], "Done."]
    return Agent(ScriptedModel(script=lambda _: turns), **{"tools": [pay, ship], "name": "shop", **options})


class _Connected:
    @hookimpl
    @asynccontextmanager
    async def locus_run_session(self, run: Any) -> AsyncIterator[None]:
        yield


def test_an_agent_that_workflows_could_not_find_is_refused() -> None:
    with pytest.raises(ConfigError, match="has no name, by which workflows find it; build it with name="):
        LocusPlugin([_agent(name=None)])
    with pytest.raises(ConfigError, match="two agents are named 'shop'"):
        LocusPlugin([_agent(), _agent()])


def test_an_agent_that_holds_connections_is_refused() -> None:
    with pytest.raises(ConfigError, match="hold connections open while a run goes on, which a workflow cannot"):
        LocusPlugin([_agent(hooks=[_Connected()])])


def test_options_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UnknownName, match="unknown tool in options 'payy'; did you mean 'pay'"):
        LocusPlugin([_agent()], options={"payy": ActivityConfig()})
    with pytest.raises(ConfigError, match="the tool 'pay' may run once only, and its retry_policy lets it run again"):
        LocusPlugin([_agent()], options={"pay": ActivityConfig(retry_policy=RetryPolicy(maximum_attempts=3))})
    LocusPlugin([_agent()], options={"ship": ActivityConfig(retry_policy=RetryPolicy(maximum_attempts=3))})
    LocusPlugin([_agent()], options={"pay": ActivityConfig(retry_policy=RetryPolicy(maximum_attempts=1))})


async def test_outside_of_a_workflow_no_agent_runs() -> None:
    with pytest.raises(NotInWorkflow, match=r"whose worker has a LocusPlugin: Client.connect"):
        await run("shop", "Sell.")


async def test_activities_have_the_limits_of_the_kernel_and_the_options_of_the_user(
    server: DevServer, queue: str
) -> None:
    options = {"pay": ActivityConfig(start_to_close_timeout=timedelta(seconds=77), summary="money")}
    plugin = LocusPlugin([_agent(model_timeout=50.0)], options=options)
    async with working(server.address, queue, plugin) as client:
        handle = await client.start_workflow(
            AgentWorkflow.run, AgentTask(agent="shop", prompt="Sell."), id=queue, task_queue=queue
        )
        await asyncio.wait_for(handle.result(), PATIENCE)
        history = await handle.fetch_history()
    found = {
        (
            a.activity_type.name,
            a.start_to_close_timeout.seconds,
            a.heartbeat_timeout.seconds,
            a.retry_policy.maximum_attempts,
        )
        for e in history.events
        if e.HasField("activity_task_scheduled_event_attributes")
        for a in [e.activity_task_scheduled_event_attributes]
    }
    assert found == {("locus.model", 80, 10, 5), ("locus.tool", 77, 10, 1), ("locus.tool", 33, 10, 5)}


async def test_a_prompt_that_cannot_be_used_fails_the_workflow(server: DevServer, queue: str) -> None:
    async with working(server.address, queue, LocusPlugin([_agent()])) as client:
        with pytest.raises(WorkflowFailureError) as caught:
            await asyncio.wait_for(
                client.execute_workflow(
                    AgentWorkflow.run,
                    AgentTask(agent="shop", prompt=" "),
                    id=queue,
                    task_queue=queue,
                ),
                PATIENCE,
            )
    assert "the prompt is empty" in str(caught.value.cause)


async def test_a_step_of_a_plugin_that_may_happen_once_is_refused(server: DevServer, queue: str) -> None:
    ran: list[str] = []

    class Stepping:
        guard = True

        @hookimpl
        async def locus_on_run_start(self, event: Any, run: Any) -> None:
            async def send() -> str:
                ran.append("sent")
                return "sent"

            await run.step("send", send, effect="once")

    async with working(server.address, queue, LocusPlugin([_agent(hooks=[Stepping()])])) as client:
        answer = await asyncio.wait_for(
            client.execute_workflow(
                AgentWorkflow.run, AgentTask(agent="shop", prompt="Sell."), id=queue, task_queue=queue
            ),
            PATIENCE,
        )
    assert ran == []
    assert "guard" in answer.stop_reason


def test_values_of_locus_travel_as_what_they_are() -> None:
    converter = with_locus_values(None).payload_converter
    call = ToolCall("1", "pay", {"total": 3})
    state = AgentState(messages=(Message(Role.USER, "Sell."), Message(Role.ASSISTANT, (call,))))
    for value in (state, state.messages[1], Usage(prompt_tokens=3), Cancel("enough")):
        (payload,) = converter.to_payloads([value])
        assert payload.metadata["encoding"] == b"json/locus"
        assert converter.from_payloads([payload], [type(value)]) == [value]
    for plain in ({"a": [1, None]}, "text", 3.5, AgentTask(agent="a", prompt="b"), b"bytes"):
        (payload,) = converter.to_payloads([plain])
        assert payload.metadata["encoding"] != b"json/locus"
        assert converter.from_payloads([payload], [type(plain)]) == [plain]


def test_a_converter_of_the_user_stays() -> None:
    class Own(DefaultPayloadConverter):
        pass

    class Bare(PayloadConverter):
        def to_payloads(self, values: Any) -> Any:
            return values

        def from_payloads(self, payloads: Any, type_hints: Any = None) -> Any:
            return payloads

    given = DataConverter(payload_converter_class=Own)
    made = with_locus_values(given)
    assert with_locus_values(made) is made
    kept = made.payload_converter_class()
    assert isinstance(kept, CompositePayloadConverter)
    assert kept.converters.keys() == {*Own().converters, b"json/locus"}
    with pytest.raises(ConfigError, match="Bare is not a CompositePayloadConverter"):
        with_locus_values(DataConverter(payload_converter_class=Bare))


async def test_one_plugin_serves_a_client_and_a_worker_at_once(server: DevServer, queue: str) -> None:
    plugin = LocusPlugin([_agent()])
    client = await Client.connect(server.address, plugins=[plugin])
    config = client.config(active_config=True)
    assert len(config["interceptors"]) <= 1
    (payload,) = config["data_converter"].payload_converter.to_payloads([Usage()])
    assert payload.metadata["encoding"] == b"json/locus"


def test_a_server_that_cannot_be_started_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name, path: None)
    with pytest.raises(ConfigError, match=r"install locus-plugin-temporal\[server\]"), DevServer(tmp_path):
        pass
