"""What is counted for Prometheus, by whom it can be read, and that no label can make series without bound."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import ExitStack
from http.client import HTTPConnection
from typing import Any

import anyio
import pytest
from attrs import field, frozen
from prometheus_client.parser import text_string_to_metric_families

from locus import Agent, ModelCompleteEvent, ToolCompleteEvent, ToolContext, ToolStartEvent, Usage, tool
from locus.core.errors import ConfigError, StoreError
from locus.core.events import Event
from locus.journal import QueueDepth
from locus_plugin_telemetry.prometheus import Endpoint, read_address
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


@frozen
class Watch:
    age: float = 0.25
    stuck_after: float = 10.0

    def is_alive(self) -> bool:
        return self.age < self.stuck_after


@frozen
class Watched:
    """A worker that stands still."""

    slots: int = 4
    busy: int = 1
    watch: Watch = field(factory=Watch)
    queues: Mapping[str, QueueDepth] = field(factory=dict)
    fails: bool = False

    async def depths(self) -> Mapping[str, QueueDepth]:
        if self.fails:
            raise StoreError("the disk is away")
        return self.queues


async def scrape(endpoint: Endpoint, worker: Watched | None = None, path: str = "/metrics") -> tuple[int, str]:
    """Status and text of one request over the network."""
    async with endpoint.serve(worker or Watched()) as url:
        host, _, port = url.removeprefix("http://").removesuffix("/metrics").rpartition(":")

        def ask() -> tuple[int, str]:
            connection = HTTPConnection(host.strip("[]"), int(port), timeout=60)
            connection.request("GET", path)
            answer = connection.getresponse()
            text = answer.read().decode()
            connection.close()
            return answer.status, text

        await anyio.wait_all_tasks_blocked()  # the first look into the queues
        return await anyio.to_thread.run_sync(ask)


async def values(endpoint: Endpoint, worker: Watched | None = None) -> dict[tuple[str, ...], float]:
    """What Prometheus reads, by name and values of labels in the order of their names."""
    families = text_string_to_metric_families((await scrape(endpoint, worker))[1])
    return {(s.name, *dict(sorted(s.labels.items())).values()): s.value for family in families for s in family.samples}


def about(**given: Any) -> dict[str, Any]:
    return {"run_id": "r", "iteration": 0, **given}


def tool_call(endpoint: Endpoint, name: str, *, starts: bool = True) -> None:
    if starts:
        endpoint.on_event(ToolStartEvent(**about(tool_name=name)))
    endpoint.on_event(ToolCompleteEvent(**about(tool_name=name, result="ok")))


async def test_names_that_a_model_makes_up_share_one_series() -> None:
    endpoint = Endpoint("0")
    for n in range(300):
        tool_call(endpoint, f"made_up_{n}", starts=False)
    for n in range(300):
        tool_call(endpoint, f"tool_{n}")

    found = {key: value for key, value in (await values(endpoint)).items() if key[0] == "locus_tool_calls_total"}

    assert len(found) == 101
    assert found["locus_tool_calls_total", "ok", "_OTHER"] == 500


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nlocus_forged 1", "a\r\nb", "\ud800", "x" * 10_000, "", "名前"])
async def test_hostile_names_are_one_label_each(name: str) -> None:
    endpoint = Endpoint("0")
    tool_call(endpoint, name)

    found = await values(endpoint, Watched(queues={name: QueueDepth(ready=2)}))

    (calls,) = [key for key in found if key[0] == "locus_tool_calls_total"]
    shown = name.encode("utf-8", "backslashreplace").decode()
    assert calls == ("locus_tool_calls_total", "ok", shown if len(shown) < 100 else f"{'x' * 100}...")
    assert found["locus_queue_depth", calls[2], "ready"] == 2
    assert not [key for key in found if "forged" in key[0]]


async def test_replayed_events_cost_nothing() -> None:
    endpoint = Endpoint("0")
    usage = Usage(prompt_tokens=100, completion_tokens=10, cost=0.5)
    for replayed in (True, False):
        endpoint.on_event(ModelCompleteEvent(**about(usage=usage, replayed=replayed)))

    found = await values(endpoint)

    assert found["locus_tokens_total", "input"] == 100
    assert found["locus_tokens_total", "output"] == 10
    assert found["locus_cost_dollars_total",] == 0.5


async def test_agents_are_measured_with_their_children() -> None:
    endpoint, heard = Endpoint("0"), list[Event]()
    child = Agent(ScriptedModel("Four."), name="child")

    @tool(effect="pure")
    async def ask(ctx: ToolContext[Any]) -> str:
        """Ask the child."""
        return str((await ctx.run_child(child, "2 + 2?")).text)

    agent = Agent(ScriptedModel(call("ask"), "It is four."), tools=[ask])

    def hear(event: Event) -> None:
        heard.append(event)
        endpoint.on_event(event)

    result = await agent.with_listener("test", hear).run("Go.")

    found = await values(endpoint)
    assert found["locus_model_calls_total",] == 3
    assert found["locus_tokens_total", "input"] == result.usage.prompt_tokens
    assert found["locus_tool_calls_total", "ok", "ask"] == 1
    assert await agent.run("Go.")
    assert len([event for event in heard if isinstance(event, ModelCompleteEvent)]) == 3


async def test_a_queue_that_cannot_be_read_is_left_out() -> None:
    found = await values(Endpoint("0"), Watched(fails=True))

    assert not [key for key in found if key[0].startswith("locus_queue")]
    assert found["locus_worker_slots",] == 4


async def test_health_is_that_of_the_event_loop() -> None:
    assert await scrape(Endpoint("0"), path="/healthz") == (200, "ok\n")
    hanging = Watched(watch=Watch(age=99.0))
    assert await scrape(Endpoint("0"), hanging, "/healthz") == (500, "the event loop has not turned for 99.0 s\n")


async def test_an_address_that_is_taken_is_named() -> None:
    with ExitStack() as stack:
        taken = stack.enter_context(socket.socket())
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{taken.getsockname()[1]}"):
            await scrape(Endpoint(f"127.0.0.1:{taken.getsockname()[1]}"))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0", ("127.0.0.1", 0)),
        ("9464", ("127.0.0.1", 9464)),
        ("localhost:9464", ("localhost", 9464)),
        ("0.0.0.0:9464", ("0.0.0.0", 9464)),
        ("[::1]:9464", ("::1", 9464)),
    ],
)
def test_a_port_alone_is_of_this_machine(text: str, wanted: tuple[str, int]) -> None:
    assert read_address(text) == wanted


@pytest.mark.parametrize(
    "text", ["", ":9464", "shop:agent", "host:", "127.0.0.1:70000", "::1:80", "-1", "1:2:3", "a b"]
)
def test_other_addresses_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--metrics: expected"):
        read_address(text)


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locus_plugin_telemetry.prometheus.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'locus-plugin-telemetry\[prometheus\]'"):
        Endpoint("0")
