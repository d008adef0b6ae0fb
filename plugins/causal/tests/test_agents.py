"""An agent that draws its causes: what it tells, reports, keeps and asks, and what a model that fails does to it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import anyio
import pytest

import locus_plugin_timetravel as timetravel
from locus import Agent, tool
from locus.core.errors import Fenced, ModelError, SettingsError, StoreError
from locus.core.events import Event, ModelCompleteEvent, TerminateEvent, event_from_json, event_to_json
from locus.core.messages import Message, Role, plugin_message
from locus.core.state import AgentState, ReasoningStep
from locus.core.termination import MaxIterations, TokenLimit
from locus.journal import MemoryStore
from locus.models import ModelRequest
from locus.plugin import hookimpl
from locus.plugins.discovery import Catalogue
from locus_plugin_causal import (
    CausalChain,
    CausalConflictEvent,
    CausalEdgeEvent,
    CausalHook,
    CausalInferenceFailedEvent,
    CausalNodeEvent,
    CausalReport,
    CausalSettings,
    build_causal_chain,
)
from locus_plugin_causal.hooks import users_words
from locus_plugin_causal.inference import Inference
from locus_plugin_causal.manifest import plugin
from locus_testkit import CrashingStore, FailingStore, PluginContract, ScriptedModel, SimulatedCrash, call, never

pytestmark = pytest.mark.anyio

INSTALLED = Catalogue.only(plugin)
TOLD = (CausalNodeEvent, CausalEdgeEvent, CausalConflictEvent)


class TestPlugin(PluginContract):
    """The manifest keeps its promises."""

    name = "causal"


@tool(effect="pure")
def find(what: str) -> str:
    """Find something."""
    return f"{what} is AA-181"


@tool
def book(flight: str, seat: int = 1) -> str:
    """Book a flight."""
    if seat == 1:
        raise RuntimeError("the seat is taken")
    return "BK-58291"


FIND, FAIL, BOOK = call("find", what="it"), call("book", flight="AA-181"), call("book", flight="AA-181", seat=2)


def agent(*script: Any, catalogue: Catalogue = INSTALLED, **options: Any) -> Agent[Any, str]:
    return Agent(ScriptedModel(*script), tools=[find, book], catalogue=catalogue, **options)


async def events_of(run: Any) -> list[Event]:
    return [event async for event in run]


def summarise(events: Sequence[Event]) -> list[str]:
    """The plugin's events in short, with the iteration in which they came."""
    found = []
    for e in events:
        if isinstance(e, CausalNodeEvent):
            found.append(f"{e.iteration} {e.node_id} {e.node_type}")
        elif isinstance(e, CausalEdgeEvent):
            found.append(f"{e.iteration} {e.cause} {e.relation} {e.effect}")
        elif isinstance(e, CausalConflictEvent):
            found.append(f"{e.iteration} {e.kind} {' '.join(e.nodes)}")
    return found


async def test_the_graph_is_emitted_as_it_grows_and_reported_at_the_end() -> None:
    run = agent(FIND, FAIL, BOOK, "Booked.", causal=True).run("Book it.")
    events = await events_of(run)
    assert summarise(events) == [
        "2 c1 unknown",
        "2 c2 unknown",
        "2 c1 causes c2",
        "2 e1 symptom",
        "2 c2 causes e1",
        "2 c2 intermediate",
        "2 c1 root_cause",
        "4 c3 unknown",
        "4 c1 causes c3",
        "4 e1 causes c3",
        "4 c3 prevents e1",
    ]
    assert isinstance(events[-1], TerminateEvent)
    for event in events:
        assert event_from_json(event_to_json(event)) == event
    report = run.result.reports["causal"]
    assert isinstance(report, CausalReport)
    assert (
        report.chain == build_causal_chain(run.result.state.tool_executions) == build_causal_chain(events_only(events))
    )
    assert (report.hypothesis, report.confidence, report.conflicts) == ("find(what='it')", 1.0, ())


def events_only(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, TOLD)]


async def test_a_run_that_goes_in_circles_has_a_cycle() -> None:
    run = agent(FIND, FIND, FIND, "Found.", causal=True).run("Find it.")
    events = await events_of(run)
    (conflict,) = [e for e in events if isinstance(e, CausalConflictEvent)]
    assert (conflict.iteration, conflict.kind, conflict.labels) == (3, "cycle", ("find(what='it')",))
    assert [c.nodes for c in run.result.reports["causal"].conflicts] == [("c1",)]


async def test_what_the_user_said_was_not_caused_by_a_tool() -> None:
    result = await agent(FIND, BOOK, "Booked.", causal=True).run("Book AA-181.")
    assert result.reports["causal"].chain.edges == ()


@pytest.mark.parametrize(
    "how",
    [
        {"causal": True},
        {"causal": {"interval": 1}},
        {"causal": CausalSettings(interval=1)},
        {"plugins": ["causal"]},
        {"hooks": [CausalHook()]},
    ],
)
async def test_it_is_enabled_in_every_way_in_which_plugins_are(how: dict[str, Any]) -> None:
    result = await agent(FIND, "Found.", **how).run("Find it.")
    assert len(result.reports["causal"].chain.nodes) == 1


async def test_without_it_nothing_is_reported() -> None:
    assert "causal" not in (await agent(FIND, "Found.", causal=False).run("Find it.")).reports


async def test_a_run_without_calls_has_an_empty_report() -> None:
    assert (await agent("Hello.", causal=True).run("Hello?")).reports["causal"] == CausalReport()


async def test_another_turn_of_the_thread_has_a_graph_of_its_own() -> None:
    script = [FAIL, "No.", FIND, "Yes."]
    made = agent(*script, causal=True, checkpointer=MemoryStore())
    await made.run("Book it.", thread_id="t")
    run = made.run("Find it.", thread_id="t")
    assert summarise(await events_of(run)) == ["2 c1 unknown"]
    assert [node.label for node in run.result.reports["causal"].chain.nodes.values()] == ["find(what='it')"]


async def test_metadata_of_another_plugin_under_its_name_is_not_taken_for_its_own() -> None:
    result = await agent(FAIL, "No.", causal=True).run("Book.", metadata={"causal": {"told": "all", "claims": 3}})
    assert len(result.reports["causal"].chain.nodes) == 2


async def test_runs_side_by_side_have_graphs_of_their_own() -> None:
    def script(request: ModelRequest) -> Sequence[Any]:
        return [call("find", what=request.messages[0].text), FAIL, "Done."]

    made = Agent(ScriptedModel(script=script), tools=[find, book], causal=True, catalogue=INSTALLED)
    found: dict[str, list[str]] = {}

    async def one(name: str) -> None:
        chain = (await made.run(name)).reports["causal"].chain
        found[name] = [node.label for node in chain.nodes.values()]

    async with anyio.create_task_group() as group:
        for n in range(8):
            group.start_soon(one, f"n{n}")
    failed = ["book(flight='AA-181', seat=1)", "book failed: RuntimeError: the seat is taken"]
    assert found == {f"n{n}": [f"find(what='n{n}')", *failed] for n in range(8)}


async def test_a_chain_can_be_kept_in_the_state() -> None:
    class Keeper:
        @hookimpl
        def locus_reflect(self, state: AgentState) -> AgentState:
            return state.with_metadata("chain", build_causal_chain(state.tool_executions))

    store = MemoryStore()
    made = agent(FAIL, "No.", causal=True, hooks=[Keeper()], checkpointer=store)
    await made.run("Book.", thread_id="t")
    chain = (await timetravel.history(made, "t")).state.metadata["chain"]
    assert isinstance(chain, CausalChain)
    assert [s.label for s in chain.symptoms] == ["book failed: RuntimeError: the seat is taken"]


# -- crashes and replays --------------------------------------------------------------------------


def claims(*events: dict[str, Any]) -> str:
    return json.dumps({"events": events})


STRIKE = {"label": "strike", "causes": [], "type": "root_cause", "confidence": 0.7}
BLAMED = {"label": "e1", "causes": ["strike"], "type": "symptom", "confidence": 0.6}


@pytest.mark.parametrize("node", ["think", "execute", "reflect"])
@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize(
    ("kind", "raised"), [(CrashingStore, SimulatedCrash), (FailingStore, StoreError)], ids=["dies", "fails"]
)
async def test_a_run_that_is_resumed_has_the_graph_of_one_that_was_not(
    node: str, stored: bool, kind: type[CrashingStore], raised: type[BaseException]
) -> None:
    def turn(request: ModelRequest) -> Any:
        if request.purpose == "causal":
            return claims(STRIKE, BLAMED)
        return [FIND, FAIL, BOOK, "Booked."][sum(bool(m.tool_calls) for m in request.messages)]

    store = kind(node, stored=stored)
    made = Agent(
        ScriptedModel(turn, after="repeat"),
        tools=[find, book],
        causal={"infer": True},
        checkpointer=store,
        catalogue=INSTALLED,
    )
    with pytest.raises(raised):
        await made.run("Book it.", thread_id="t")
    assert store.crashes == 1
    await store.revive()
    run = made.resume("t")
    events = await events_of(run)

    plain = await agent(FIND, FAIL, claims(STRIKE, BLAMED), BOOK, "Booked.", causal={"infer": True}).run("Book it.")
    assert run.result.reports["causal"].chain == plain.reports["causal"].chain
    if (node, stored) == ("reflect", True):
        assert summarise(events) == ["4 c3 unknown", "4 c1 causes c3", "4 e1 causes c3", "4 c3 prevents e1"]
        asked = [r for r in made.runtime.model.requests if r.purpose == "causal"]  # type: ignore[attr-defined]
        assert len(asked) == 1
    assert (await timetravel.replay(made, "t")).ok


# -- a model that infers --------------------------------------------------------------------------


async def test_a_model_may_claim_more_than_the_trace_shows() -> None:
    made = agent(FIND, FAIL, claims(STRIKE, BLAMED), BOOK, "Booked.", causal={"infer": True})
    run = made.run("Book it.")
    events = await events_of(run)
    assert [each for each in summarise(events) if "strike" in each] == ["2 strike root_cause", "2 strike causes e1"]
    report = run.result.reports["causal"]
    assert (report.inferences, report.failures) == (1, 0)
    assert report.chain.path("strike", "e1") == ("strike", "e1")
    assert {node.source for node in report.chain.nodes.values()} == {"trace", "claim"}
    assert run.result.usage.total_tokens == 5 * 15

    (asked,) = [r for r in made.runtime.model.requests if r.purpose == "causal"]  # type: ignore[attr-defined]
    shown = json.loads(asked.messages[1].text.split("\n", 1)[1])
    assert shown["request"] == "Book it."
    assert [(each["id"], each["tool"]) for each in shown["calls"]] == [("c1", "find"), ("c2", "book")]
    assert shown["calls"][1]["error"] == "RuntimeError: the seat is taken"
    assert asked.output is not None


async def test_a_claim_that_contradicts_the_trace_is_reported() -> None:
    wrong = claims({"label": "c2", "prevents": ["e1"]}, {"label": "c1", "causes": ["e1"]})
    events = await events_of(agent(FIND, FAIL, wrong, "No.", causal={"infer": True}).run("Book it."))
    assert [each for each in summarise(events) if "contradiction" in each or "cycle" in each] == [
        "2 cycle c1 c2 e1",
        "2 contradiction c2 e1",
    ]


async def test_a_model_is_asked_for_the_plugins_own_reasons_only() -> None:
    class Other:
        @hookimpl
        def locus_register_reflect_policies(self) -> list[Any]:
            return [lambda state: "always"]

    run = agent(FIND, "Found.", causal={"infer": True}, hooks=[Other()]).run("Find it.")
    events = await events_of(run)
    assert summarise(events) == ["1 c1 unknown"]
    assert [event.purpose for event in events if isinstance(event, ModelCompleteEvent)] == ["think", "think"]
    assert (run.result.text, run.result.reports["causal"].inferences) == ("Found.", 0)


async def test_a_worker_that_must_not_go_on_is_not_a_failing_model(monkeypatch: pytest.MonkeyPatch) -> None:
    async def lost(*_: Any, **__: Any) -> None:
        raise Fenced("another worker has the thread")

    monkeypatch.setattr(Inference, "claims", lost)
    result = await agent(FAIL, "No.", causal={"infer": True}).run("Book it.")
    assert isinstance(result.error, Fenced)


async def test_a_conflict_that_is_claimed_again_is_reported_once() -> None:
    wrong = claims({"label": "c1", "prevents": ["e1"]})
    events = await events_of(agent(FAIL, wrong, FAIL, wrong, "No.", causal={"infer": True}).run("Book it."))
    assert [each for each in summarise(events) if "contradiction" in each] == ["1 contradiction c1 e1"]


def test_the_users_words_are_neither_a_plugins_nor_a_reviewers() -> None:
    def said(role: Role, text: str) -> Message:
        return Message(role, text)

    messages = [
        said(Role.USER, "first"),
        said(Role.ASSISTANT, "an answer"),
        said(Role.USER, "second"),
        plugin_message("p", "a lesson"),
        said(Role.ASSISTANT, "a draft"),
        said(Role.USER, "feedback"),
        said(Role.ASSISTANT, "a call"),
    ]
    steps = [ReasoningStep(iteration=n) for n in range(2)]
    assert users_words(AgentState(messages=messages, reasoning_steps=steps)) == ["first", "second"]


async def test_a_model_that_claims_the_same_again_is_reported_once_and_its_last_claims_are_kept() -> None:
    later = claims(STRIKE, BLAMED, {"label": "storm"})
    script = [FAIL, claims(STRIKE, BLAMED), FAIL, later, "No."]
    run = agent(*script, causal={"infer": True}).run("Book it.")
    events = await events_of(run)
    assert [e.node_id for e in events if isinstance(e, CausalNodeEvent) and e.source == "claim"] == ["strike", "storm"]
    assert set(run.result.reports["causal"].chain.nodes) == {"c1", "e1", "strike", "storm"}


async def test_a_model_is_held_to_the_number_of_nodes() -> None:
    many = claims(*({"label": f"event {n}"} for n in range(500)))
    result = await agent(FAIL, many, "No.", causal={"infer": True, "max_nodes": 3}).run("Book it.")
    assert len(result.reports["causal"].chain.nodes) == 2 + 3


GARBAGE = {
    "prose": "The seat was taken.",
    "no events": '{"events": []}',
    "no labels": '{"events": [{"causes": ["x"]}, 7, null]}',
    "another shape": '{"events": {"label": "a"}}',
    "a number": "7",
    "NaN": '{"events": [{"label": "a", "confidence": NaN}]}',
    "nothing": "",
    "a failure": ModelError("overloaded"),
    "a bug": RuntimeError("a bug"),
    "no answer in time": never,
}


@pytest.mark.parametrize("answer", GARBAGE.values(), ids=GARBAGE)
async def test_a_model_that_fails_leaves_the_graph_as_it_is_and_is_reported(answer: Any) -> None:
    judge = ScriptedModel(answer)
    hook = CausalHook(CausalSettings(infer=True, timeout=0.02), model=judge)
    made = agent(FAIL, "No.", hooks=[hook], checkpointer=MemoryStore())
    run = made.run("Book it.", thread_id="t")
    events = await events_of(run)
    (failed,) = [e for e in events if isinstance(e, CausalInferenceFailedEvent)]
    assert failed.error_type in ("ModelError", "OutputError", "NoClaims")
    assert [e for e in events if e.type == "hook_failed"] == []
    report = run.result.reports["causal"]
    assert report.chain == build_causal_chain(run.result.state.tool_executions)
    assert (report.inferences, report.failures) == (0, 1)
    assert report.errors[0].startswith(failed.error_type)
    assert (await timetravel.replay(made, "t")).ok


async def test_a_claim_that_is_malformed_does_not_cost_the_others() -> None:
    mixed = '{"events": [{"label": 3}, {"label": "storm", "confidence": "high", "causes": [1, "wind"]}, "x"]}'
    result = await agent(FAIL, mixed, "No.", causal={"infer": True}).run("Book it.")
    assert set(result.reports["causal"].chain.nodes) == {"c1", "e1", "storm", "wind"}


async def test_a_run_that_may_not_spend_more_asks_no_model() -> None:
    limit = TokenLimit(10) | MaxIterations(5)
    made = agent(FAIL, causal={"infer": True}, termination=limit)
    assert (await made.run("Book it.")).stop_reason == "TokenLimit"


@pytest.mark.parametrize("wrong", [{"interval": 0}, {"timeout": -1}, {"max_nodes": 0}, {"window": 0}, {"max_chars": 1}])
def test_settings_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        agent(causal=wrong)


def test_it_comes_after_the_reflection() -> None:
    assert plugin.after == ("guardrails", "reflexion")


def test_the_chain_is_found_where_programs_look_for_it() -> None:
    window = import_module("locus.reasoning.causal")
    assert (window.CausalChain, window.build_causal_chain) == (CausalChain, build_causal_chain)
    assert window.NodeType.ROOT_CAUSE == "root_cause"
