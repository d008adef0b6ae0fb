"""What makes a graph short to write: paths of edges, functions of answers, plain questions to a model."""

from __future__ import annotations

import operator
from typing import Any

import pytest

from locus import Agent, tool
from locus.core.messages import Message
from locus.models import ModelRequest
from locus_plugin_graph import END, START, GraphError, NodeContext, Send, StateGraph
from locus_testkit import ScriptedModel

pytestmark = pytest.mark.anyio


def noting(name: str) -> Any:
    return lambda values: {"log": [name]}


def build() -> StateGraph:
    graph = StateGraph(reducers={"log": operator.add})
    for name in ("a", "b", "c"):
        graph.add_node(name, noting(name))
    return graph


async def test_one_call_adds_a_path_of_edges() -> None:
    path = build().add_edge(START, "a", "b", "c", END).compile()
    single = build().add_edge(START, "a").add_edge("a", "b").add_edge("b", "c").add_edge("c", END).compile()

    assert (await path.run()).values == (await single.run()).values == {"log": ["a", "b", "c"]}
    assert path.mermaid() == single.mermaid()


async def test_a_path_may_begin_with_a_join() -> None:
    app = build().add_edge(START, "a").add_edge(START, "b").add_edge(["a", "b"], "c", END).compile()

    assert (await app.run()).values == {"log": ["a", "b", "c"]}


@pytest.mark.parametrize("path", [("a", START, "b"), ("a", END, "b")])
def test_a_path_that_goes_on_behind_its_end_is_refused(path: Any) -> None:
    with pytest.raises(GraphError, match=r"START cannot be the target|END cannot have an edge"):
        build().add_edge(*path)


async def test_a_function_says_what_is_written_of_an_agents_answer() -> None:
    graph = StateGraph(reducers={"jokes": operator.add})
    joker = Agent(ScriptedModel("Ha.", after="repeat"))
    graph.add_node("joke", joker, prompt="subject", into=lambda values, result: {"jokes": [result.text]})
    graph.add_conditional_edges(START, lambda values: [Send("joke", {"subject": s}) for s in ("tea", "cats")], ["joke"])
    app = graph.add_edge("joke", END).compile()

    assert (await app.run()).values == {"jokes": ["Ha.", "Ha."]}


async def test_what_the_function_writes_is_checked_as_any_update() -> None:
    def give_text(values: dict[str, Any], result: Any) -> Any:
        return result.text

    graph = StateGraph().add_node("joke", Agent(ScriptedModel("Ha.")), prompt="s", into=give_text)
    result = await graph.add_edge(START, "joke", END).compile().run({"s": "tea"})

    assert result.stop_reason == "NodeError"
    assert "expected a dict of the keys that it writes" in result.detail


@pytest.mark.parametrize(
    "asked",
    [
        "Hello.",
        Message("user", "Hello."),
        [Message("user", "Hello.")],
        ModelRequest(messages=(Message("user", "Hello."),)),
    ],
)
async def test_a_node_asks_a_model_with_text_messages_or_a_whole_request(asked: Any) -> None:
    model = ScriptedModel("Hi.")

    async def ask(values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
        return {"said": (await ctx.call_model(asked)).message.text}

    app = StateGraph().add_node(ask).add_edge(START, "ask", END).compile(model=model)

    assert (await app.run()).values == {"said": "Hi."}
    assert [message.text for message in model.requests[0].messages] == ["Hello."]


async def test_the_model_is_offered_the_tools_that_a_node_names() -> None:
    model = ScriptedModel("Hi.")

    @tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    async def ask(values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
        return {"said": (await ctx.call_model("Hello.", tools=[add])).message.text}

    await StateGraph().add_node(ask).add_edge(START, "ask", END).compile(model=model).run()

    assert [spec.name for spec in model.requests[0].tools] == ["add"]
