"""What a graph does: nodes, edges, joins, routers, Sends, Commands, questions, failures, limits and time travel."""

from __future__ import annotations

import operator
from collections import Counter
from typing import Annotated, Any, TypedDict

import anyio
import pytest

from locus import Agent, AgentResult, Budget, Cancel, Hook, MaxIterations, TokenLimit, tool
from locus.core.errors import InputError, OutcomeUnknown, StepMismatch
from locus.core.messages import Message
from locus.journal import MemoryStore
from locus_plugin_graph import END, START, Command, ConflictingUpdate, NodeContext, NodeError, Send, StateGraph
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


class Notes(TypedDict):
    topic: str
    notes: Annotated[list[str], operator.add]
    draft: str


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


def line(*nodes: Any, **options: Any) -> Any:
    """A graph of nodes one after the other."""
    graph = StateGraph(effect=options.pop("effect", "once"), reducers=options.pop("reducers", None))
    names: list[str] = []
    for node in nodes:
        name = node.__name__
        graph.add_node(name, node)
        graph.add_edge(names[-1] if names else START, name)
        names.append(name)
    graph.add_edge(names[-1], END)
    return graph.compile(**options)


# -- values ------------------------------------------------------------------------------------------


async def test_a_context_with_a_default_is_given_by_its_name() -> None:
    async def with_context(values: dict[str, Any], ctx: NodeContext | None = None) -> dict[str, Any]:
        return {"node": None if ctx is None else ctx.node}

    async def without(values: dict[str, Any], factor: int = 2) -> dict[str, Any]:
        return {"factor": factor}

    result = await line(with_context, without).run({})
    assert result.values == {"node": "with_context", "factor": 2}


async def test_values_go_from_node_to_node_and_sync_and_async_nodes_are_alike() -> None:
    async def first(values: dict[str, Any]) -> dict[str, Any]:
        return {"b": values["a"] + 1}

    def second(values: dict[str, Any]) -> dict[str, Any]:
        return {"c": values["b"] * 2}

    result = await line(first, second).run({"a": 1})

    assert (result.values, result.stop_reason) == ({"a": 1, "b": 2, "c": 4}, "GraphEnd")


async def test_a_node_changes_nothing_but_what_it_returns() -> None:
    async def spoil(values: dict[str, Any]) -> None:
        values["list"].append("x")
        values["deep"]["list"].append("x")
        values["set"].add(2)
        values["new"] = 1

    result = await line(spoil).run({"list": [1], "deep": {"list": [[]]}, "set": {1}})

    assert result.values == {"list": [1], "deep": {"list": [[]]}, "set": {1}}


async def test_what_a_run_is_given_is_merged_with_what_the_thread_has() -> None:
    async def count(values: dict[str, Any]) -> dict[str, Any]:
        return {"log": [len(values["log"])]}

    app = line(count, reducers={"log": operator.add}, checkpointer=MemoryStore())
    await app.run({"log": ["a"]}, thread_id="t")

    result = await app.run({"log": ["b"]}, thread_id="t")

    assert result.values == {"log": ["a", 1, "b", 3]}


async def test_messages_are_values() -> None:
    async def answer(values: dict[str, Any]) -> dict[str, Any]:
        return {"messages": [Message("assistant", values["messages"][-1].text.upper())]}

    result = await line(answer, reducers={"messages": operator.add}).run({"messages": [Message("user", "hi")]})

    assert [message.text for message in result.values["messages"]] == ["hi", "HI"]


async def test_two_tasks_that_write_one_key_need_a_reducer() -> None:
    graph = StateGraph(effect="pure")
    for name in ("left", "right"):
        graph.add_node(name, lambda values: {"x": 1}).add_edge(START, name).add_edge(name, END)

    result = await graph.compile().run()

    assert isinstance(result.error, ConflictingUpdate)
    assert "'left' and 'right' both wrote 'x'" in result.detail
    assert result.is_open


@pytest.mark.parametrize(
    ("update", "problem"),
    [
        (3, "expected a dict of the keys that it writes, got 3"),
        ({1: 2}, "the key 1"),
        ({"x": object()}, "the value of 'x' cannot be saved"),
        ({"x": [float("nan")]}, "NaN"),
        ({"x": CYCLE}, "contains itself"),
        ({"typo": 1}, "the key 'typo' is not known; the schema has draft, notes, topic"),
    ],
)
async def test_an_update_that_cannot_be_kept_is_the_nodes_error_and_the_thread_goes_on(
    update: Any, problem: str
) -> None:
    schema = Notes if update == {"typo": 1} else None
    graph = StateGraph(schema, effect="pure")
    answers = [update, {"topic": "mended"}]
    graph.add_node("a", lambda values: answers.pop(0)).add_edge(START, "a").add_edge("a", END)
    app = graph.compile(checkpointer=MemoryStore())

    result = await app.run(thread_id="t")

    assert isinstance(result.error, NodeError)
    assert problem in result.detail
    assert (await app.resume("t")).values == {"topic": "mended"}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (3, "a graph is run on a dict of values, got 3"),
        ({"x": object()}, "the value of 'x' cannot be saved"),
        ({"x": float("nan")}, "NaN"),
        ({"x": CYCLE}, "contains itself"),
        ({1: 2}, "the key 1 is not a str"),
        ({"typo": 1}, "the key 'typo' is not known; the schema has draft, notes, topic"),
    ],
)
def test_an_input_that_cannot_be_kept_is_refused_where_it_is_given(given: Any, problem: str) -> None:
    schema = Notes if given == {"typo": 1} else None
    app = StateGraph(schema).add_node("a", _nothing).add_edge(START, "a", END).compile()
    with pytest.raises(InputError) as refused:
        app.run(given)
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (Send("a", [1]), "sends (1,) to 'a'; expected a dict of values"),
        (Send("b", {}), "its router sends to 'b'; expected one of 'a', '__end__'"),
        (Send("a", {"x": object()}), "the value of 'x' cannot be saved"),
        ([Send("a", {})] * 10_000, "10,000 tasks would follow, and max_tasks is 1,000"),
        (None, "its router answered None, which is not in its mapping: 'a', '__end__'"),
        ({"a"}, "which is not in its mapping"),
    ],
)
async def test_what_a_router_may_not_say_is_named_and_the_thread_goes_on(said: Any, problem: str) -> None:
    answers = [said, END]
    graph = StateGraph(effect="pure").add_node("a", _nothing).add_edge(START, "a")
    graph.add_conditional_edges("a", lambda values: answers.pop(0), ["a", END])
    app = graph.compile(checkpointer=MemoryStore())
    result = await app.run(thread_id="t")

    assert (result.stop_reason, result.is_open) == ("NodeError", True)
    assert problem in result.detail
    assert (await app.resume("t")).stop_reason == "GraphEnd"


async def test_a_command_of_a_node_without_goto_says_what_to_write() -> None:
    result = await line(lambda values: Command(goto="b")).run()
    assert "it goes to 'b', and has no goto=; say where it may go: goto=('b',)" in result.detail


def _nothing(values: dict[str, Any]) -> None:
    return None


# -- routing -----------------------------------------------------------------------------------------


def mapper(count: int, **options: Any) -> Any:
    graph = StateGraph(reducers={"out": operator.add}, effect="pure")
    graph.add_node("plan", _nothing).add_node("work", lambda values: {"out": [values["i"]]}).add_node("sum", _sum)
    graph.add_edge(START, "plan").add_edge("work", "sum").add_edge("sum", END)
    graph.add_conditional_edges("plan", lambda values: [Send("work", {"i": i}) for i in range(count)], ["work"])
    return graph.compile(**options)


def _sum(values: dict[str, Any]) -> dict[str, Any]:
    return {"sum": sum(values["out"])}


async def test_sends_run_side_by_side_and_are_merged_in_order() -> None:
    result = await mapper(20).run()

    assert result.values == {"out": [*range(20)], "sum": 190}


async def test_too_many_tasks_are_refused_and_the_thread_can_be_resumed() -> None:
    store = MemoryStore()
    result = await mapper(10_000, checkpointer=store).run(thread_id="t")

    assert "10,000 tasks would follow, and max_tasks is 1,000" in result.detail
    assert result.is_open
    assert (await mapper(3, checkpointer=store).resume("t")).values["sum"] == 3


async def test_a_join_waits_for_all_of_its_sources() -> None:
    graph = StateGraph(reducers={"log": operator.add}, effect="pure")
    for name in ("short", "long1", "long2", "join"):
        graph.add_node(name, _logger(name))
    graph.add_edge(START, "short").add_edge(START, "long1").add_edge("long1", "long2")
    graph.add_edge(["short", "long2"], "join").add_edge("join", END)

    result = await graph.compile().run({"log": []})

    assert result.values["log"] == ["short", "long1", "long2", "join"]


def _logger(name: str) -> Any:
    async def log(values: dict[str, Any]) -> dict[str, Any]:
        return {"log": [name]}

    return log


async def test_a_command_goes_where_its_node_says_it_may() -> None:
    def build(goto: tuple[str, ...]) -> Any:
        graph = StateGraph(reducers={"log": operator.add}, effect="pure")
        graph.add_node("a", lambda values: Command(update={"log": ["a"]}, goto="b"), goto=goto)
        graph.add_node("b", _logger("b")).add_edge(START, "a").add_edge("b", END).add_edge("a", END)
        graph.add_conditional_edges(START, lambda values: "a", ["a", "b"])
        return graph.compile()

    assert (await build(("b",)).run({"log": []})).values["log"] == ["a", "b"]
    refused = await build(()).run({"log": []})
    assert "node 'a': it goes to 'b'" in refused.detail


async def test_a_routers_answer_outside_its_mapping_names_the_valid_ones() -> None:
    graph = StateGraph(effect="pure").add_node("a", _nothing).add_edge(START, "a")
    graph.add_conditional_edges("a", lambda values: "maybe", {"yes": END, "no": "a"})

    result = await graph.compile().run()

    assert "node 'a': its router answered 'maybe', which is not in its mapping: 'yes', 'no'" in result.detail


async def test_a_cycle_ends_at_max_steps_with_what_it_has() -> None:
    graph = StateGraph(effect="pure").add_node("a", lambda values: {"n": values["n"] + 1}).add_edge(START, "a")
    graph.add_conditional_edges("a", lambda values: "a", ["a", END])
    app = graph.compile(max_steps=7)

    result = await app.run({"n": 0})

    assert (result.stop_reason, result.values) == ("MaxIterations", {"n": 7})
    assert app.bounds().iterations == 7


# -- questions ---------------------------------------------------------------------------------------


async def test_questions_are_answered_in_any_subset_and_siblings_do_not_run_again() -> None:
    entered: Counter[str] = Counter()
    graph = StateGraph(reducers={"log": operator.add})

    def asker(name: str) -> Any:
        async def ask(values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
            entered[name] += 1
            return {"log": [f"{name}={ctx.interrupt(f'{name}?')}"]}

        return ask

    async def busy(values: dict[str, Any]) -> dict[str, Any]:
        entered["busy"] += 1
        return {"log": ["busy"]}

    for name, fn in {"a": asker("a"), "b": asker("b"), "busy": busy}.items():
        graph.add_node(name, fn).add_edge(START, name).add_edge(name, END)
    app = graph.compile()

    first = await app.run({"log": []})
    assert first.stop_reason == "Interrupted"
    ids = {asked.question: asked.interrupt_id for asked in first.interrupts}
    second = await app.resume(first, {ids["b?"]: "yes"})
    assert [asked.question for asked in second.interrupts] == ["a?"]
    third = await app.resume(second, "no")

    assert third.values["log"] == ["a=no", "b=yes", "busy"]
    assert entered == {"a": 2, "b": 2, "busy": 1}


async def test_a_step_before_a_question_runs_once() -> None:
    paid: list[int] = []

    async def pay(values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
        async def charge() -> int:
            paid.append(1)
            return 7

        price = await ctx.step("charge", charge)
        return {"paid": price, "said": ctx.interrupt("ship it?", options=["yes", "no"])}

    app = line(pay)
    asked = await app.run()
    result = await app.resume(asked, "yes")

    assert (result.values, paid) == ({"paid": 7, "said": "yes"}, [1])


async def test_a_question_in_a_sub_graph_surfaces_with_its_options() -> None:
    async def ask(values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
        return {"said": ctx.interrupt("sure?", options=["yes", "no"])}

    graph = StateGraph().add_node("inner", line(ask)).add_edge(START, "inner").add_edge("inner", END)
    app = graph.compile(checkpointer=MemoryStore())

    asked = await app.run(thread_id="t")
    assert [(q.question, q.options) for q in asked.interrupts] == [("sure?", ("yes", "no"))]

    assert (await app.resume("t", "yes")).values == {"said": "yes"}


# -- failures ----------------------------------------------------------------------------------------


async def test_a_failure_leaves_the_run_open_and_keeps_what_its_siblings_did() -> None:
    entered: Counter[str] = Counter()
    broken = [True]

    async def weak(values: dict[str, Any]) -> dict[str, Any]:
        entered["weak"] += 1
        if broken:
            raise OSError("no route")
        return {"weak": 1}

    async def strong(values: dict[str, Any]) -> dict[str, Any]:
        entered["strong"] += 1
        return {"strong": 1}

    graph = StateGraph()
    for name, fn in {"weak": weak, "strong": strong}.items():
        graph.add_node(name, fn).add_edge(START, name).add_edge(name, END)
    app = graph.compile(checkpointer=MemoryStore())

    failed = await app.run(thread_id="t")
    assert (failed.stop_reason, failed.detail) == ("NodeError", "node 'weak': OSError: no route")
    broken.clear()
    result = await app.resume("t")

    assert result.values == {"weak": 1, "strong": 1}
    assert entered == {"weak": 2, "strong": 1}


async def test_a_node_is_tried_again_as_often_as_it_says_and_keeps_its_finished_steps() -> None:
    calls: Counter[str] = Counter()

    async def weak(values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
        async def once() -> str:
            calls["step"] += 1
            return "done"

        calls[f"attempt {ctx.attempt}"] += 1
        done = await ctx.step("once", once)
        if ctx.attempt < 2:
            raise OSError("again")
        return {"x": done}

    graph = StateGraph().add_node("weak", weak, retries=2).add_edge(START, "weak").add_edge("weak", END)

    assert (await graph.compile().run()).values == {"x": "done"}
    assert calls == {"step": 1, "attempt 0": 1, "attempt 1": 1, "attempt 2": 1}


async def test_a_node_that_failed_may_be_followed_by_another_one_instead() -> None:
    def weak(values: dict[str, Any]) -> None:
        raise OSError("no route")

    graph = StateGraph(effect="pure").add_node("weak", weak).add_node("plan_b", lambda values: {"b": 1})
    graph.add_edge(START, "weak").add_edge("weak", END).add_edge("plan_b", END)

    assert (await graph.compile(on_error={"weak": "plan_b"}).run()).values == {"b": 1}


async def test_a_node_that_takes_too_long_fails() -> None:
    graph = (
        StateGraph(effect="pure").add_node("slow", _forever, timeout=0.01).add_edge(START, "slow").add_edge("slow", END)
    )

    assert (await graph.compile().run()).detail == "node 'slow': TimeoutError: it did not finish within 0.01 s"


async def _forever(values: dict[str, Any]) -> None:
    await anyio.sleep_forever()


async def test_a_frontier_with_a_node_that_is_gone_is_a_mismatch_that_names_it() -> None:
    store = MemoryStore()

    async def ask(values: dict[str, Any], ctx: NodeContext) -> None:
        ctx.interrupt("?")

    async def first(values: dict[str, Any]) -> None:
        return None

    await line(first, ask, checkpointer=store).run(thread_id="t")
    with pytest.raises(StepMismatch, match="'ask', which the graph does not have"):
        await line(first, checkpointer=store).resume("t", "x")
    # The answer was recorded.
    assert (await line(first, ask, checkpointer=store).resume("t")).stop_reason == "GraphEnd"


@pytest.mark.parametrize(
    ("answer", "reason", "values"),
    [("run again", "GraphEnd", {"paid": 1, "after": 1}), ("skip", "GraphEnd", {"after": 1}), ("stop", "NodeError", {})],
)
async def test_a_person_decides_about_a_node_whose_outcome_is_unknown(answer: str, reason: str, values: Any) -> None:
    entered: list[int] = []

    async def pay(values: dict[str, Any]) -> dict[str, Any]:
        entered.append(1)
        if len(entered) == 1:
            raise OutcomeUnknown("the charge")
        return {"paid": 1}

    async def after(values: dict[str, Any]) -> dict[str, Any]:
        return {"after": 1}

    app = line(pay, after, checkpointer=MemoryStore())
    asked = await app.run(thread_id="t")
    assert [str(option) for option in asked.interrupts[0].options] == ["run again", "skip", "stop"]

    result = await app.resume("t", answer)

    assert (result.stop_reason, result.values, result.is_open) == (reason, values, False)
    assert len(entered) == (2 if answer == "run again" else 1)


# -- agents and graphs in nodes ------------------------------------------------------------------------


async def test_an_agent_in_a_node_is_charged_and_heard_and_a_failed_one_fails_its_node() -> None:
    good = Agent(ScriptedModel("a draft"))
    graph = StateGraph(Notes).add_node("write", good, prompt="topic", into="draft", budget=Budget(tokens=20_000))
    graph.add_edge(START, "write").add_edge("write", END)
    run = graph.compile().run({"topic": "gallium"})
    heard = [event.type for event in [event async for event in run] if event.parent_run_id is not None]

    assert run.result.values["draft"] == "a draft"
    assert run.result.usage.total_tokens > 0
    assert heard[0] == "run_start"
    assert heard[-1] == "terminate"

    bad = StateGraph(Notes).add_node("write", Agent(ScriptedModel(OSError("no model"))), prompt="topic", into="draft")
    failed = await bad.add_edge(START, "write").add_edge("write", END).compile().run({"topic": "x"})
    assert failed.detail.startswith("node 'write': RunFailed")


async def test_a_sub_graph_gives_back_what_its_nodes_wrote() -> None:
    inner = StateGraph(reducers={"log": operator.add}, effect="pure").add_node("sub", _logger("sub"))
    inner.add_edge(START, "sub").add_edge("sub", END)
    graph = StateGraph(reducers={"log": operator.add}, effect="pure").add_node("a", _logger("a"))
    graph.add_node("inner", inner.compile()).add_edge(START, "a").add_edge("a", "inner").add_edge("inner", END)

    assert (await graph.compile().run({"log": ["in"]})).values["log"] == ["in", "a", "sub"]


async def test_outputs_say_what_a_sub_graph_gives_back_and_under_which_key() -> None:
    """Given a sub-graph that writes three keys; when outputs name two, one of them another key; then they go back."""

    def work(values: dict[str, Any]) -> dict[str, Any]:
        return {"log": ["sub"], "draft": "d", "scratch": 1}

    child = StateGraph(reducers={"log": operator.add}, effect="pure").add_node("work", work)
    inner = child.add_edge(START, "work", END).compile()
    wanted: list[tuple[Any, dict[str, Any]]] = [
        (None, {"log": ["in", "sub"], "draft": "d", "scratch": 1}),
        (("log",), {"log": ["in", "sub"]}),
        ({"log": "log", "text": "draft", "other": "missing"}, {"log": ["in", "sub"], "text": "d"}),
        ((), {"log": ["in"]}),
    ]
    for outputs, values in wanted:
        graph = StateGraph(reducers={"log": operator.add}).add_node("sub", inner, outputs=outputs)
        result = await graph.add_edge(START, "sub", END).compile().run({"log": ["in"]})
        assert result.values == values


async def test_a_sub_graph_that_failed_goes_on_where_it_stopped() -> None:
    entered: Counter[str] = Counter()
    broken = [True]

    async def first(values: dict[str, Any]) -> dict[str, Any]:
        entered["first"] += 1
        return {"first": 1}

    async def second(values: dict[str, Any]) -> dict[str, Any]:
        entered["second"] += 1
        if broken:
            raise OSError("no")
        return {"second": 1}

    graph = StateGraph().add_node("inner", line(first, second)).add_edge(START, "inner").add_edge("inner", END)
    app = graph.compile(checkpointer=MemoryStore())
    assert (await app.run(thread_id="t")).stop_reason == "NodeError"
    broken.clear()

    assert (await app.resume("t")).values == {"first": 1, "second": 1}
    assert entered == {"first": 1, "second": 2}


async def test_a_limit_of_tokens_holds_over_all_agents_of_a_graph() -> None:
    @tool
    async def more() -> str:
        """More."""
        return "more"

    graph = StateGraph(reducers={"out": operator.add}, effect="pure")

    async def work(values: dict[str, Any], ctx: NodeContext) -> dict[str, Any]:
        model = ScriptedModel(*[call("more") for _ in range(50)], "end")
        result: AgentResult[Any] = await ctx.run_child(Agent(model, tools=[more], max_iterations=60), "x")
        return {"out": [result.usage.total_tokens]}

    graph.add_node("work", work).add_edge("work", END)
    graph.add_conditional_edges(START, lambda values: [Send("work", {}) for _ in range(4)], ["work"])

    result = await graph.compile(termination=TokenLimit(300)).run({"out": []})

    assert result.usage.total_tokens < 300 + 4 * 30
    assert result.stop_reason in ("GraphEnd", "TokenLimit")


async def test_a_cancel_ends_a_graph_and_leaves_the_values_of_the_last_step() -> None:
    class Stop(Hook):
        async def on_node_complete(self, event: Any) -> Cancel | None:
            return Cancel("enough") if event.node == "second" else None

    def first(values: dict[str, Any]) -> dict[str, Any]:
        return {"a": 1}

    def second(values: dict[str, Any]) -> dict[str, Any]:
        return {"b": 1}

    def third(values: dict[str, Any]) -> dict[str, Any]:
        return {"c": 1}

    result = await line(first, second, third, hooks=[Stop()]).run()

    assert (result.stop_reason, result.values) == ("Cancelled: enough", {"a": 1, "b": 1})


# -- time travel -------------------------------------------------------------------------------------


async def test_a_graph_has_a_history_and_is_forked_replayed_and_asked_what_if() -> None:
    app = mapper(3, checkpointer=MemoryStore())
    await app.run(thread_id="t")

    whys = [entry.why for entry in await app.history("t")]
    assert whys[1:3] == ["plan -> work, work, work", "work, work, work -> sum"]
    assert (await app.replay("t")).ok
    assert (await app.state_at("t", 3))["out"] == [0, 1, 2]
    fork = await app.fork("t", at=3)
    assert (await app.resume(fork)).values["sum"] == 3
    assert (await app.diff("t", fork)) is not None
    assert "would have stopped" in str(await app.what_if("t", termination=MaxIterations(1)))


def test_a_drawing_shows_what_ran_and_what_is_next() -> None:
    app = mapper(3, max_steps=2)
    text = app.mermaid(app.run_sync().state)

    assert 'n0["plan"]' in text
    assert "n0 -.-> n1" in text
    assert "class n0,n1 ran" in text
    assert "class n2 next" in text


def test_the_svg_marks_what_ran_and_what_is_next_and_escapes_names() -> None:
    graph = StateGraph()
    graph.add_node("<b>first</b>", lambda values: {"a": 1})
    graph.add_edge(START, "<b>first</b>").add_edge("<b>first</b>", END)
    app = graph.compile()
    drawn = app.svg()
    assert drawn.startswith("<svg ")
    assert "&lt;b&gt;first&lt;/b&gt;" in drawn
    assert "<b>" not in drawn
    assert 'class="ran"' not in drawn
    assert 'class="ran"' in app.svg(app.run_sync().state)
