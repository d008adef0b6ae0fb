"""Laws: the router is pure and total, and no answer of a model makes a node fail or write what cannot be kept."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus.core import freeze
from locus.core.state import AgentState
from locus_deepagent import (
    make_causal_inference_node,
    make_execute_node,
    make_grounding_eval_node,
    make_regenerate_summary_node,
    make_replan_node,
    make_summarize_node,
    route_after_grounding,
)
from locus_deepagent.research.evidence import CONCLUSION, Fact, extend
from locus_deepagent.research.keys import (
    KEY_CLAIMS,
    KEY_EVIDENCE,
    KEY_GROUNDING_SCORE,
    KEY_PROMPT,
    KEY_REGENERATION_COUNT,
    KEY_REPLAN_COUNT,
    KEY_SUMMARY,
    KEY_UNGROUNDED_CLAIMS,
)
from locus_plugin_graph import END
from locus_testkit import ScriptedModel

pytestmark = pytest.mark.proof

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.sampled_from(
    ["label", "type", "causes", "confidence", "text", "evidence", "claims", "output", "events", "x"]
)
ITEMS = st.dictionaries(NAMES, JSON | st.sampled_from(["a", "root_cause", [1], 0.5, "0.5"]), max_size=4)
FORMS = (
    JSON | ITEMS | st.lists(ITEMS | JSON, max_size=4) | st.dictionaries(NAMES, st.lists(ITEMS, max_size=3), max_size=3)
)


@st.composite
def answers(draw: st.DrawFn) -> str:
    """What a model may answer: JSON, JSON among words, a piece of it, or anything."""
    text = json.dumps(draw(FORMS)) if draw(st.booleans()) else draw(st.text())
    if draw(st.booleans()):
        text = f"{draw(st.text(max_size=9))}[{text}]{draw(st.text(max_size=9))}"
    return text[: draw(st.integers(0, len(text)))] if draw(st.booleans()) else text


def keep(update: dict[str, Any]) -> None:
    """As a store would."""
    state = AgentState(run_id="r")
    for key, value in update.items():
        state = state.with_metadata(key, freeze(value))
    json.dumps(state.to_checkpoint(), allow_nan=False, ensure_ascii=False).encode()


#: What every model of these nodes answers, and the nodes; building them takes longer than calling them.
SAID: list[str] = [""]
SAYS = ScriptedModel(lambda request: SAID[0], after="repeat")
NODES = [
    make_causal_inference_node(SAYS),
    make_summarize_node(SAYS, {"type": "object"}),
    make_summarize_node(SAYS),
    make_grounding_eval_node(SAYS),
    make_regenerate_summary_node(SAYS),
    make_replan_node(),
]
EXECUTE = make_execute_node(ScriptedModel("Done.", after="repeat"), [], reflexion=False)


def updates(answer: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    async def call() -> list[dict[str, Any]]:
        return [await node(values) for node in NODES]

    SAID[0] = answer
    return anyio.run(call)


@given(answers())
def test_no_answer_makes_a_node_fail(answer: str) -> None:
    values = {KEY_EVIDENCE: ["Gallium is a metal."], KEY_SUMMARY: "Gallium is a metal. It is soft and blue."}
    for update in updates(answer, values):
        keep(update)
        assert 0.0 <= update.get(KEY_GROUNDING_SCORE, 0.0) <= 1.0
        for claim in update.get(KEY_CLAIMS, ()):
            assert set(claim["evidence"]) <= {1}
            assert claim["text"]


@given(st.dictionaries(st.sampled_from([KEY_EVIDENCE, KEY_SUMMARY, KEY_CLAIMS, KEY_UNGROUNDED_CLAIMS]), JSON))
def test_no_values_make_a_node_fail(values: dict[str, Any]) -> None:
    for update in updates("Gallium is a metal.", values):
        keep(update)
    assert anyio.run(EXECUTE, values | {KEY_PROMPT: "p"})[KEY_EVIDENCE][-1] == "[conclusion] Done."


COUNTS = st.integers(0, 5)
VALUES = st.dictionaries(
    st.sampled_from([KEY_GROUNDING_SCORE, KEY_REPLAN_COUNT, KEY_REGENERATION_COUNT]), JSON | COUNTS | st.floats(0, 1)
)


@given(VALUES, st.floats(0, 1), COUNTS, COUNTS)
def test_the_router_always_answers_and_alike(values: dict[str, Any], threshold: float, most: int, more: int) -> None:
    router, before = route_after_grounding(threshold, most, more), dict(values)
    found = router(values)
    assert found in (END, "regenerate", "replan")
    assert router(values) == found
    assert repr(values) == repr(before)
    assert router == route_after_grounding(threshold, most, more)


@given(st.floats(0, 0.9), COUNTS, COUNTS)
def test_every_way_through_the_router_ends(score: float, replans: int, regenerations: int) -> None:
    router, values, way = route_after_grounding(0.95, replans, regenerations), {KEY_GROUNDING_SCORE: score}, []
    while (found := router(values)) != END:
        key = KEY_REGENERATION_COUNT if found == "regenerate" else KEY_REPLAN_COUNT
        values[key] = values.get(key, 0) + 1
        way.append(found)
    assert way == ["regenerate"] * regenerations + ["replan"] * replans


@given(st.lists(st.text(max_size=2000), max_size=45), st.lists(st.text(min_size=1, max_size=2000), max_size=45))
def test_evidence_only_grows_and_within_its_bounds(before: list[str], found: list[str]) -> None:
    conclusion = Fact(f"{CONCLUSION}so", "agent_conclusion")
    texts, facts = extend(before, [], [Fact(each, "t") for each in found], conclusion)
    assert texts[: len(before)] == before
    new = texts[len(before) :]
    assert new[:-1] == found[: max(0, len(new) - 1)]
    assert new[-1:] in ([], [conclusion.text])
    assert len(texts) <= max(40, len(before))
    assert not new or sum(map(len, texts)) <= 60_000
    assert [fact["text"] for fact in facts] == new
    assert len({fact["id"] for fact in facts}) == len(facts)
