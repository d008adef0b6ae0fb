"""The research workflow as a whole: its signature, its edges, its ways to an end, and its threads."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from locus.core.errors import ConfigError, UnknownName
from locus.journal import MemoryStore
from locus_deepagent import RulesFirst, create_research_workflow, make_summarize_node, route_after_grounding
from locus_deepagent.research.keys import (
    KEY_CAUSAL_CHAIN,
    KEY_CLAIMS,
    KEY_EVIDENCE,
    KEY_EXECUTE_PROMPT,
    KEY_GROUNDING_SCORE,
    KEY_PROMPT,
    KEY_REGENERATION_COUNT,
    KEY_REPLAN_COUNT,
    KEY_STRUCTURED_OUTPUT,
    KEY_SUMMARY,
)
from locus_plugin_causal import CausalChain
from locus_plugin_graph import END, START, NodeCompleteEvent, StateGraph
from locus_plugin_sqlite import SqliteStore
from locus_testkit import ScriptedModel

from .scripts import FACT, researcher, search

pytestmark = pytest.mark.anyio

DRAWING = Path(__file__).parent / "data" / "research.mermaid"


def test_the_signature_is_that_of_the_requirement() -> None:
    signature = inspect.signature(create_research_workflow)
    parameters = signature.parameters.values()
    assert {p.kind for p in parameters} == {inspect.Parameter.KEYWORD_ONLY}
    assert [(p.name, p.default) for p in parameters] == [
        ("model", inspect.Parameter.empty),
        ("tools", inspect.Parameter.empty),
        ("system_prompt", ""),
        ("output_schema", None),
        ("grounding_threshold", 0.65),
        ("max_replans", 2),
        ("max_regenerations", 1),
        ("max_iterations", 20),
        ("summarization_model", None),
        ("grounding_model", None),
        ("reflexion", True),
        ("causal_inference", True),
        ("checkpointer", None),
    ]


@pytest.mark.parametrize("causal", [True, False])
def test_the_edges_are_those_of_the_requirement(causal: bool) -> None:
    plan = create_research_workflow(model=researcher(), tools=[search], causal_inference=causal).plan

    edges = {(source, target) for source, targets in plan.edges.items() for target in targets}
    between = (
        {("execute", "causal_inference"), ("causal_inference", "summarize")} if causal else {("execute", "summarize")}
    )
    assert edges == between | {
        (START, "execute"),
        ("summarize", "grounding_eval"),
        ("regenerate", "grounding_eval"),
        ("replan", "execute"),
    }
    (branch,) = plan.branches["grounding_eval"]
    assert branch.mapping is not None
    assert set(branch.mapping.values()) == {END, "regenerate", "replan"}
    assert set(plan.nodes) == {
        "execute",
        *(["causal_inference"] if causal else []),
        "summarize",
        "grounding_eval",
        "regenerate",
        "replan",
    }


def test_the_drawing_is_the_workflow() -> None:
    flow = create_research_workflow(model=researcher(), tools=[search])
    assert flow.mermaid() == DRAWING.read_text(encoding="utf-8")
    assert flow.bounds().iterations == 100


async def nodes_of(flow: Any, values: dict[str, Any], **options: Any) -> tuple[list[str], Any]:
    run = flow.run(values, **options)
    names = [event.node async for event in run if isinstance(event, NodeCompleteEvent)]
    return names, run.result


async def test_a_grounded_summary_ends_the_run() -> None:
    flow = create_research_workflow(model=researcher(), tools=[search], reflexion=False)

    names, result = await nodes_of(flow, {KEY_PROMPT: "Who discovered gallium?"})

    assert names == ["execute", "causal_inference", "summarize", "grounding_eval"]
    assert (result.stop_reason, result.values[KEY_GROUNDING_SCORE]) == ("GraphEnd", 1.0)
    assert result.values[KEY_SUMMARY] == "Gallium was discovered in 1875 [1]."
    assert result.values[KEY_CLAIMS] == [{"text": "Gallium was discovered in 1875.", "evidence": [1]}]
    assert result.values[KEY_EVIDENCE] == [FACT, "[conclusion] It was in 1875."]


async def test_a_summary_that_is_never_grounded_is_rewritten_once_and_researched_twice_more() -> None:
    model = researcher("1: no")
    flow = create_research_workflow(model=model, tools=[search], reflexion=False)

    names, result = await nodes_of(flow, {KEY_PROMPT: "Who discovered gallium?"})

    again = ["execute", "causal_inference", "summarize", "grounding_eval"]
    assert names == [*again, "regenerate", "grounding_eval", "replan", *again, "replan", *again]
    assert result.stop_reason == "GraphEnd"
    assert (result.values[KEY_REGENERATION_COUNT], result.values[KEY_REPLAN_COUNT]) == (1, 2)
    assert len(result.values[KEY_EVIDENCE]) == 6
    # All that was spent is the run's.
    assert result.usage.prompt_tokens == 10 * len(model.requests)


async def test_each_node_says_what_came_of_it() -> None:
    flow = create_research_workflow(model=researcher("1: no"), tools=[search], reflexion=False, max_replans=1)
    fields = (
        *("prompt_preview", "replan", "fact_count", "node_count", "hypothesis_preview", "confidence"),
        *("summary_length", "has_structured_output", "score", "claims_evaluated", "ungrounded_count"),
        *("requires_replan", "regeneration"),
    )

    said = [
        (type(event).__name__, {name: getattr(event, name) for name in fields if hasattr(event, name)})
        async for event in flow.run({KEY_PROMPT: "Who discovered gallium?"})
        if type(event).__name__.startswith("Research")
    ]

    evaluated = {"score": 0.0, "claims_evaluated": 1, "ungrounded_count": 1, "requires_replan": True}
    built = {"node_count": 2, "hypothesis_preview": "a new line in a spectrum", "confidence": 0.9}
    summarized = {"summary_length": 35, "has_structured_output": False}
    again = "An investigation of 'Who discovered gallium?' left these claims unverified:\n"
    again += "- Gallium is from the year 1875.\n\nGather spe"
    assert said == [
        ("ResearchExecuteStartedEvent", {"prompt_preview": "Who discovered gallium?", "replan": 0}),
        ("ResearchExecuteCompletedEvent", {"fact_count": 2}),
        ("ResearchCausalBuiltEvent", built),
        ("ResearchSummarizeCompletedEvent", summarized),
        ("ResearchGroundingEvaluatedEvent", evaluated),
        ("ResearchRegenerateStartedEvent", {"ungrounded_count": 1}),
        ("ResearchRegenerateCompletedEvent", {"regeneration": 1}),
        ("ResearchGroundingEvaluatedEvent", evaluated),
        ("ResearchReplanEvent", {"prompt_preview": again, "replan": 1, "ungrounded_count": 1}),
        ("ResearchExecuteStartedEvent", {"prompt_preview": again, "replan": 1}),
        ("ResearchExecuteCompletedEvent", {"fact_count": 4}),
        ("ResearchCausalBuiltEvent", built),
        ("ResearchSummarizeCompletedEvent", summarized),
        ("ResearchGroundingEvaluatedEvent", evaluated),
    ]


async def test_roles_have_their_models() -> None:
    primary, writer, judge = (researcher("1: no") for _ in range(3))
    flow = create_research_workflow(
        model=primary, tools=[search], summarization_model=writer, grounding_model=judge, reflexion=False, max_replans=0
    )
    await flow.run({KEY_PROMPT: "p"})
    assert [request.purpose for request in primary.requests] == ["think", "think", "causal"]
    assert [request.purpose for request in writer.requests] == ["summarize", "regenerate"]
    assert [request.purpose for request in judge.requests] == ["grounding", "grounding"]


async def test_a_judge_with_rules_first_is_not_asked_about_what_they_confirm() -> None:
    model, judge = researcher("1: no"), ScriptedModel()
    flow = create_research_workflow(
        model=model, tools=[search], grounding_model=RulesFirst(judge), reflexion=False, causal_inference=False
    )

    result = await flow.run({KEY_PROMPT: "p"})

    assert judge.requests == ()
    assert result.values[KEY_GROUNDING_SCORE] == 1.0


async def test_the_workflow_gives_a_structured_output() -> None:
    class Element(BaseModel):
        year: int

    answer = '{"claims": [{"text": "Gallium was discovered in 1875.", "evidence": [1]}], "output": {"year": 1875}}'
    flow = create_research_workflow(
        model=researcher(summarize=answer), tools=[search], output_schema=Element, reflexion=False
    )
    result = await flow.run({KEY_PROMPT: "p"})
    assert result.values[KEY_STRUCTURED_OUTPUT] == {"year": 1875}


async def test_bad_answers_of_every_judge_end_the_run_without_an_error() -> None:
    junk = '{"label": [[}\x00 \ud800'
    model = researcher(junk, causal=junk, summarize=junk, regenerate=junk)
    result = await create_research_workflow(model=model, tools=[search], checkpointer=MemoryStore()).run(
        {KEY_PROMPT: "p"}, thread_id="t"
    )
    assert (result.stop_reason, result.error) == ("GraphEnd", None)
    assert result.values[KEY_GROUNDING_SCORE] < 0.65


async def test_many_replans_are_not_cut_off_by_the_bound_on_steps() -> None:
    flow = create_research_workflow(
        model=researcher("1: no"), tools=[search], reflexion=False, max_replans=25, causal_inference=False
    )
    result = await flow.run({KEY_PROMPT: "p"})
    assert (result.stop_reason, result.values[KEY_REPLAN_COUNT]) == ("GraphEnd", 25)


async def test_a_new_question_on_a_thread_begins_anew() -> None:
    model = researcher("1: no")
    flow = create_research_workflow(model=model, tools=[search], reflexion=False, checkpointer=MemoryStore())
    first = await flow.run({KEY_PROMPT: "Who discovered gallium?"}, thread_id="t")
    assert first.values[KEY_EXECUTE_PROMPT]
    asked = len(model.requests)

    second = await flow.run({KEY_PROMPT: "And indium?"}, thread_id="t")

    assert model.requests[asked].messages[-1].text == "And indium?"
    assert len(second.values[KEY_EVIDENCE]) == 6
    assert (second.values[KEY_REGENERATION_COUNT], second.values[KEY_REPLAN_COUNT]) == (1, 2)


async def test_the_causal_chain_comes_back_from_a_file(tmp_path: Path) -> None:
    def build(store: SqliteStore) -> Any:
        return create_research_workflow(model=researcher(), tools=[search], reflexion=False, checkpointer=store)

    async with SqliteStore(tmp_path / "runs.db") as store:
        result = await build(store).run({KEY_PROMPT: "p"}, thread_id="t")
    async with SqliteStore(tmp_path / "runs.db") as store:
        values = await build(store).state_at("t", result.state.iteration)
    chain = values[KEY_CAUSAL_CHAIN]
    assert isinstance(chain, CausalChain)
    assert chain == result.values[KEY_CAUSAL_CHAIN]
    assert [node.label for node in chain.root_causes] == ["a new line in a spectrum"]


def test_a_model_that_is_unknown_is_named_when_the_workflow_is_built() -> None:
    for options in ({"model": "no-such:m"}, {"grounding_model": "no-such:m"}, {"summarization_model": "no-such:m"}):
        with pytest.raises((UnknownName, ConfigError), match="no-such"):
            create_research_workflow(**{"model": researcher(), "tools": [search], **options})  # type: ignore[arg-type]


async def test_a_node_serves_in_a_graph_of_ones_own() -> None:
    model = ScriptedModel("Gallium is a metal.")
    graph = StateGraph().add_node("write", make_summarize_node(model))
    graph.add_edge(START, "write").add_edge("write", END)
    result = await graph.compile().run({KEY_EVIDENCE: ["Gallium."]})
    assert result.values[KEY_SUMMARY] == "Gallium is a metal."
    assert result.usage.prompt_tokens == 10


def test_the_compat_paths_are_those_of_the_requirement() -> None:
    assert importlib.import_module("locus.deepagent").create_research_workflow is create_research_workflow
    assert importlib.import_module("locus.deepagent.workflow").route_after_grounding is route_after_grounding


# -- the router ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("score", "replans", "regenerations", "wanted"),
    [
        (0.65, 0, 0, END),
        (1, 9, 9, END),
        (0.64, 0, 0, "regenerate"),
        (0.64, 2, 0, "regenerate"),
        (0.64, 0, 1, "replan"),
        (0.64, 1, 1, "replan"),
        (0.64, 2, 1, END),
        (0.64, 3, 2, END),
    ],
)
def test_rewrites_come_before_replans(score: float, replans: int, regenerations: int, wanted: str) -> None:
    values = {KEY_GROUNDING_SCORE: score, KEY_REPLAN_COUNT: replans, KEY_REGENERATION_COUNT: regenerations}
    assert route_after_grounding()(values) == wanted


def test_what_is_missing_counts_as_nothing() -> None:
    assert route_after_grounding()({}) == "regenerate"
    assert route_after_grounding(max_regenerations=0)({}) == "replan"
    assert route_after_grounding(max_replans=0, max_regenerations=0)({}) == END
    assert route_after_grounding(threshold=0.0)({}) == END
    with pytest.raises(ValueError, match="max_replans must be an int of 0 or more, got -1"):
        route_after_grounding(max_replans=-1)
