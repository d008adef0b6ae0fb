"""What a node may ask of its run: models, events, limits of tokens and dollars; and what is heard of sub-graphs."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.from_thread
import pytest

from locus import Event
from locus.core.events import register_event
from locus.core.frozen import frozen
from locus.core.journal import Outcome
from locus.core.messages import Message
from locus.journal import MemoryStore
from locus.models import ModelRequest, Price
from locus.plugin import current_run
from locus_plugin_graph import END, START, NodeCompleteEvent, NodeContext, NodeStartEvent, StateGraph
from locus_testkit import ScriptedModel

pytestmark = pytest.mark.anyio


@register_event
@frozen(kw_only=True)
class Found(Event):
    """A plugin's own event."""

    type = "found_in_a_node"
    what: str = ""


#: Of 10 prompt and 5 completion tokens it makes 0.0015 dollars.
PRICE = Price(prompt=100.0, completion=100.0)


class Crash(GeneratorExit):
    """The process is gone."""


def ask(text: str) -> ModelRequest:
    """A question for a model."""
    return ModelRequest(messages=(Message("user", text),))


def one(node: Any, **options: Any) -> Any:
    """A graph of one node."""
    graph = StateGraph(effect=options.pop("effect", "pure"))
    graph.add_node("a", node, **{key: options.pop(key) for key in ("retries",) if key in options})
    return graph.add_edge(START, "a").add_edge("a", END).compile(**options)


# -- models ------------------------------------------------------------------------------------------


async def test_a_model_call_of_a_node_is_a_step_of_the_node() -> None:
    async def node(values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
        return {"said": (await ctx.call_model(ask("?"), purpose="look")).message.text}

    store = MemoryStore()
    result = await one(node, model=ScriptedModel("yes"), checkpointer=store).run(thread_id="t")

    assert result.values == {"said": "yes"}
    assert result.usage.total_tokens == 15
    steps = [e.body.step_id for e in await store.read("t") if isinstance(e.body, Outcome)]
    assert [str(step.parent) for step in steps if step.purpose == "look"] == ["0/node/0:a"]


async def test_a_retry_asks_again_and_a_resume_does_not() -> None:
    """Given a node that refuses the first answer, and dies after the second; then the third attempt has both."""
    dies, said = [False, True], list[str]()

    async def node(values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
        said.append((await ctx.call_model(ask("?"))).message.text)
        if said[-1] == "bad":
            raise ValueError("bad")
        await ctx.step("noted", anyio.lowlevel.checkpoint)
        if dies.pop():
            raise Crash
        return {"said": said[-1]}

    model = ScriptedModel("bad", "good")
    app = one(node, retries=1, model=model, checkpointer=MemoryStore())
    with pytest.raises(Crash):
        await app.run(thread_id="t")
    result = await app.resume("t")

    assert said == ["bad", "good", "good"]
    assert result.values == {"said": "good"}
    assert len(model.requests) == 2
    assert result.usage.total_tokens == 30


async def test_a_replay_asks_no_model() -> None:
    async def node(values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
        return {"said": (await ctx.call_model(ask("?"))).message.text}

    model = ScriptedModel("yes")
    app = one(node, model=model, checkpointer=MemoryStore())
    await app.run(thread_id="t")

    assert (await app.replay("t")).difference is None
    assert len(model.requests) == 1


# -- events ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [True, False])
async def test_an_event_of_a_node_is_on_the_stream(is_async: bool) -> None:
    async def node(values: dict[str, Any], ctx: NodeContext) -> None:
        assert current_run() is not None
        await ctx.emit(Found(what="x"))

    def node_in_a_thread(values: dict[str, Any], ctx: NodeContext) -> None:
        run = current_run()
        assert run is not None
        anyio.from_thread.run(run.emit, Found(what="x"))

    run = one(node if is_async else node_in_a_thread).run(thread_id="t")
    events = [event async for event in run]

    [found] = [event for event in events if isinstance(event, Found)]
    kinds = [type(event) for event in events]
    assert (found.what, found.run_id, found.thread_id, found.iteration) == ("x", run.result.run_id, "t", 1)
    assert kinds.index(NodeStartEvent) < kinds.index(Found) < kinds.index(NodeCompleteEvent)
    assert [event.seq for event in events] == sorted(event.seq for event in events)


async def test_what_happens_in_a_sub_graph_is_heard_while_it_happens() -> None:
    """Given a sub-graph whose second node waits for the consumer; then the first one's events are there already."""
    heard = anyio.Event()

    async def first(values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
        await ctx.emit(Found(what="inside"))
        return {"n": 1}

    async def second(values: dict[str, Any]) -> dict[str, Any]:
        with anyio.fail_after(10):
            await heard.wait()
        return {"n": 2}

    inner = StateGraph(effect="pure").add_node("first", first).add_node("second", second)
    inner.add_edge(START, "first").add_edge("first", "second").add_edge("second", END)
    run = one(inner.compile(name="inner")).run()
    inside: list[str] = []
    async for event in run:
        if isinstance(event, NodeCompleteEvent) and event.node == "first":
            assert event.parent_run_id is not None
            heard.set()
        if event.parent_run_id is not None and isinstance(event, Found | NodeStartEvent | NodeCompleteEvent):
            inside.append(f"{event.type}:{getattr(event, 'node', '')}")

    assert run.result.values == {"n": 2}
    assert inside == [
        "node_start:first",
        "found_in_a_node:",
        "node_complete:first",
        "node_start:second",
        "node_complete:second",
    ]
