"""What each node of the research workflow reads and writes, called alone and in a graph."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import frozen
from pydantic import BaseModel

from locus import tool
from locus.core.errors import ConfigError
from locus.models import ModelRequest
from locus_deepagent import (
    RulesFirst,
    make_causal_inference_node,
    make_execute_node,
    make_grounding_eval_node,
    make_regenerate_summary_node,
    make_replan_node,
    make_summarize_node,
)
from locus_deepagent.research import keys
from locus_deepagent.research.execute import RESEARCHER
from locus_deepagent.research.keys import (
    KEY_CAUSAL_CHAIN,
    KEY_CAUSAL_CONFIDENCE,
    KEY_CAUSAL_HYPOTHESIS,
    KEY_CLAIMS,
    KEY_EVIDENCE,
    KEY_EXECUTE_PROMPT,
    KEY_GROUNDING_FACTS,
    KEY_GROUNDING_REASON,
    KEY_GROUNDING_SCORE,
    KEY_PROMPT,
    KEY_REGENERATION_COUNT,
    KEY_REPLAN_COUNT,
    KEY_STRUCTURED_OUTPUT,
    KEY_SUMMARY,
    KEY_UNGROUNDED_CLAIMS,
)
from locus_plugin_filesystem import StateBackend, make_filesystem_tools
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio

NOTHING_CAUSAL = {KEY_CAUSAL_CHAIN: None, KEY_CAUSAL_HYPOTHESIS: "", KEY_CAUSAL_CONFIDENCE: 0.0}


@tool(effect="pure")
def look(what: Any) -> Any:
    """Look something up.

    Args:
        what: what comes back.
    """
    if what == "raise":
        raise ValueError("nothing there")
    return what


def asked(model: ScriptedModel, n: int = -1) -> str:
    return model.requests[n].messages[-1].text


def test_each_key_is_the_end_of_its_name_in_lower_case() -> None:
    names = [name for name in keys.__all__ if name.startswith("KEY_")]
    assert len(names) == 15
    assert {name: getattr(keys, name) for name in names} == {n: n.removeprefix("KEY_").lower() for n in names}


# -- execute -------------------------------------------------------------------------------------


async def test_the_results_of_tools_and_the_conclusion_are_evidence() -> None:
    model = ScriptedModel([call("look", what="x" * 3000), call("look", what="short")], "y" * 3000)

    made = await make_execute_node(model, [look], reflexion=False)({KEY_PROMPT: "find it"})

    assert made[KEY_EVIDENCE] == ["x" * 2000, "short", "[conclusion] " + "y" * 2000]
    assert made[KEY_GROUNDING_FACTS] == [
        {"id": "fact_000", "text": "x" * 2000, "source": "look"},
        {"id": "fact_001", "text": "short", "source": "look"},
        {"id": "fact_002", "text": "[conclusion] " + "y" * 2000, "source": "agent_conclusion"},
    ]
    assert asked(model, 0) == "find it"


@pytest.mark.parametrize("result", [None, "", "  ", 0, 0.0, False, [], {}, "raise"])
async def test_a_result_that_is_false_or_failed_is_left_out_of_the_evidence(result: Any) -> None:
    model = ScriptedModel(call("look", what=result), call("look", what="true"), "Done.")
    made = await make_execute_node(model, [look], reflexion=False)({KEY_PROMPT: "p"})
    assert made[KEY_EVIDENCE] == ["true", "[conclusion] Done."]


async def test_a_code_of_a_file_tool_is_left_out_of_the_evidence() -> None:
    backend = StateBackend({"/a.md": "timeout: 30 seconds"})
    model = ScriptedModel(
        [call("read_file", path="/b.md"), call("grep", pattern="30"), call("look", what="timeout")], "x"
    )
    tools = [look, *make_filesystem_tools(backend)]
    made = await make_execute_node(model, tools, reflexion=False)({KEY_PROMPT: "p"})
    assert [fact["source"] for fact in made[KEY_GROUNDING_FACTS]] == ["grep", "look", "agent_conclusion"]


async def test_a_replan_adds_to_the_evidence_and_its_ids_continue() -> None:
    model = ScriptedModel(call("look", what="b"), "Again.")
    facts = [{"id": "fact_006", "text": "a", "source": "look"}]

    made = await make_execute_node(model, [look], reflexion=False)(
        {KEY_PROMPT: "p", KEY_EXECUTE_PROMPT: "look closer", KEY_EVIDENCE: ["a"], KEY_GROUNDING_FACTS: facts}
    )

    assert made[KEY_EVIDENCE] == ["a", "b", "[conclusion] Again."]
    assert [fact["id"] for fact in made[KEY_GROUNDING_FACTS]] == ["fact_006", "fact_007", "fact_008"]
    assert asked(model, 0) == "look closer"


async def test_evidence_has_an_end_and_keeps_the_conclusion() -> None:
    many = ScriptedModel([call("look", what=f"n{i}") for i in range(50)], "Done.")
    made = await make_execute_node(many, [look], reflexion=False)({KEY_PROMPT: "p"})
    assert made[KEY_EVIDENCE] == [*(f"n{i}" for i in range(39)), "[conclusion] Done."]

    long = ScriptedModel([call("look", what=f"{i:02d}" + "z" * 2000) for i in range(35)], "Done.")
    made = await make_execute_node(long, [look], reflexion=False)({KEY_PROMPT: "p"})
    assert [text[:2] for text in made[KEY_EVIDENCE][:-1]] == [f"{i:02d}" for i in range(29)]
    assert made[KEY_EVIDENCE][-1] == "[conclusion] Done."
    assert sum(map(len, made[KEY_EVIDENCE])) <= 60_000

    full = {KEY_PROMPT: "p", KEY_EVIDENCE: ["a"] * 40}
    made = await make_execute_node(ScriptedModel("Done."), [look], reflexion=False)(full)
    assert made[KEY_EVIDENCE] == ["a"] * 40


async def test_without_a_system_prompt_the_agent_is_a_researcher() -> None:
    for given, wanted in (("", RESEARCHER), ("You are a chemist.", "You are a chemist.")):
        model = ScriptedModel("Done.")
        await make_execute_node(model, [look], given, False, 3)({KEY_PROMPT: "p"})
        assert wanted in model.requests[0].messages[0].text


async def test_each_call_is_a_conversation_of_its_own_within_its_iterations() -> None:
    model = ScriptedModel(call("look", what="a"), after="repeat")
    node = make_execute_node(model, [look], reflexion=False, max_iterations=2)

    for _ in range(2):
        made = await node({KEY_PROMPT: "p"})
        assert made[KEY_EVIDENCE] == ["a", "a"]

    assert [len(request.messages) for request in model.requests] == [2, 4, 2, 4]


async def test_reflexion_judges_the_steps_of_the_agent() -> None:
    def purpose(request: ModelRequest) -> Any:
        if request.purpose != "think":
            return json.dumps({"judgment": "on_track", "confidence": 0.5, "assessment": "fine", "guidance": ""})
        return call("look", what="a") if len(request.messages) < 6 else "Done."

    for wanted in (True, False):
        model = ScriptedModel(purpose, after="repeat")
        await make_execute_node(model, [look], reflexion=wanted)({KEY_PROMPT: "p"})
        assert ("reflexion" in {request.purpose for request in model.requests}) is wanted


async def test_without_a_prompt_there_is_nothing_to_research() -> None:
    with pytest.raises(ValueError, match="expected a text to research under 'prompt', got None"):
        await make_execute_node(ScriptedModel("Done."), [look])({})


# -- causal_inference ----------------------------------------------------------------------------


async def test_the_chain_and_its_hypothesis_come_from_the_answer() -> None:
    events = [
        {"label": "full disk", "type": "root_cause", "confidence": 0.9},
        {"label": "failed write", "causes": ["full disk"], "type": "intermediate", "confidence": 0.8},
        {"label": "outage", "causes": ["failed write"], "type": "symptom", "confidence": 0.7},
    ]
    model = ScriptedModel(f"Here it is: {json.dumps(events)} That is all.")
    evidence = ["e" * 600, *("x" for _ in range(30))]

    made = await make_causal_inference_node(model)({KEY_PROMPT: "why?", KEY_EVIDENCE: evidence})

    assert list(made[KEY_CAUSAL_CHAIN].nodes) == ["full disk", "failed write", "outage"]
    assert (made[KEY_CAUSAL_HYPOTHESIS], made[KEY_CAUSAL_CONFIDENCE]) == ("full disk", 0.9)
    text = asked(model)
    assert "why?" in text
    assert "up to 10" in text
    assert "[1] " + "e" * 500 + "\n" in text
    assert "[20] x" in text
    assert "[21]" not in text


async def test_without_a_root_cause_the_first_node_is_half_believed() -> None:
    model = ScriptedModel('[{"label": "smoke", "type": "symptom", "confidence": 0.9}]')
    made = await make_causal_inference_node(model)({KEY_EVIDENCE: ["e"]})
    assert (made[KEY_CAUSAL_HYPOTHESIS], made[KEY_CAUSAL_CONFIDENCE]) == ("smoke", 0.5)


async def test_without_evidence_no_model_is_asked_about_causes() -> None:
    model = ScriptedModel()
    assert await make_causal_inference_node(model)({KEY_PROMPT: "p", KEY_EVIDENCE: []}) == NOTHING_CAUSAL
    assert model.requests == ()


@pytest.mark.parametrize(
    "answer", ["", "no", "[", "]", "][", "[1, 2", "[[[[", "[]", "[1, null]", '[{"type": "symptom"}]', '["[" ' * 900]
)
async def test_an_answer_without_an_event_gives_no_chain(answer: str) -> None:
    made = await make_causal_inference_node(ScriptedModel(answer))({KEY_EVIDENCE: ["e"]})
    assert made == NOTHING_CAUSAL


async def test_malformed_events_are_left_out_or_mended() -> None:
    items = [
        {"type": "root_cause"},
        "a text",
        {"label": "a", "type": "catastrophe", "confidence": "0.75"},
        {"label": "b", "type": "root_cause", "confidence": 7},
        {"label": "c", "type": "symptom", "confidence": "very", "causes": "b"},
        {"label": "\ud800 d", "confidence": -1, "causes": [None, "a"]},
    ]
    made = await make_causal_inference_node(ScriptedModel(json.dumps(items)))({KEY_EVIDENCE: ["e"]})
    nodes = made[KEY_CAUSAL_CHAIN].nodes
    assert {node.label: (node.node_type.value, node.confidence) for node in nodes.values()} == {
        "a": ("root_cause", 0.75),  # as it causes d
        "b": ("root_cause", 1.0),
        "c": ("symptom", 0.5),
        "\ufffd d": ("symptom", 0.0),
    }


async def test_no_more_events_are_read_than_were_asked_for() -> None:
    model = ScriptedModel(json.dumps([{"label": f"n{i}"} for i in range(9)]))
    made = await make_causal_inference_node(model, 3)({KEY_EVIDENCE: ["e"]})
    assert list(made[KEY_CAUSAL_CHAIN].nodes) == ["n0", "n1", "n2"]
    with pytest.raises(ValueError, match="max_nodes must be an int of 1 or more, got 0"):
        make_causal_inference_node(model, 0)


# -- summarize -----------------------------------------------------------------------------------

EVIDENCE = ["Gallium was discovered in 1875.", "It melts at 29.76 degrees.\n[1] It is a gas.", "[conclusion] In 1875."]


async def test_the_summary_is_made_of_claims_with_their_evidence() -> None:
    claims = [
        {"text": "Gallium was discovered in 1875.", "evidence": [1, 99, "2", True]},
        {"text": "It melts at 29.76 degrees [2]", "evidence": []},
        {"text": "   "},
        3,
    ]
    model = ScriptedModel(json.dumps({"claims": claims}))

    made = await make_summarize_node(model)(
        {KEY_PROMPT: "gallium", KEY_EVIDENCE: EVIDENCE, KEY_CAUSAL_HYPOTHESIS: "spectroscopy"}
    )

    assert made == {
        KEY_SUMMARY: "Gallium was discovered in 1875 [1][2]. It melts at 29.76 degrees [2]",
        KEY_CLAIMS: [
            {"text": "Gallium was discovered in 1875.", "evidence": [1, 2]},
            {"text": "It melts at 29.76 degrees", "evidence": [2]},
        ],
    }
    text = asked(model)
    assert "Research goal: gallium\n\nCausal hypothesis: spectroscopy\n" in text
    assert "[1] Gallium was discovered in 1875." in text
    lines = text.splitlines()
    assert lines.index("[3] [conclusion] In 1875.") < lines.index("[1] Gallium was discovered in 1875.")
    assert "[1] It is a gas." not in lines  # a line inside an item does not count as an item
    assert model.requests[0].output is not None


async def test_without_a_hypothesis_nothing_is_said_of_causes() -> None:
    model = ScriptedModel("Gallium.")
    await make_summarize_node(model)({KEY_EVIDENCE: EVIDENCE, KEY_CAUSAL_HYPOTHESIS: ""})
    assert "Causal" not in asked(model)


async def test_plain_words_are_the_summary_as_they_are() -> None:
    text = "Gallium was discovered in 1875 [1]. It melts at 29.76 degrees. [2]\nIs it a metal? It is very soft [7]."
    made = await make_summarize_node(ScriptedModel(text))({KEY_EVIDENCE: EVIDENCE})
    assert made[KEY_SUMMARY] == text
    assert made[KEY_CLAIMS] == [
        {"text": "Gallium was discovered in 1875.", "evidence": [1]},
        {"text": "It melts at 29.76 degrees.", "evidence": [2]},
        {"text": "It is very soft.", "evidence": []},
    ]


async def test_of_an_answer_that_was_cut_off_the_whole_claims_count() -> None:
    text = '```json\n{"claims": [{"text": "Gallium is a metal.", "evidence": [1]}, {"text": "It me'
    made = await make_summarize_node(ScriptedModel(text))({KEY_EVIDENCE: EVIDENCE})
    assert made[KEY_SUMMARY] == "Gallium is a metal [1]."


FOUND = ["1. Gallium: a soft metal ...\n2. Francium: Discovered in the year 1939", "Gallium was discovered in 1875."]


async def test_a_claim_that_does_not_follow_from_what_it_cites_cites_what_it_follows_from() -> None:
    claims = [
        {"text": "Gallium was discovered in 1875.", "evidence": [1]},
        {"text": "Gallium was discovered in 1875.", "evidence": []},
        {"text": "Gallium was discovered in 1939.", "evidence": [1]},
        {"text": "Gallium was discovered in 1875.", "evidence": [1, 2]},
    ]
    model = ScriptedModel(json.dumps({"claims": claims}))

    made = await make_summarize_node(model)({KEY_EVIDENCE: [*FOUND, "[conclusion] Gallium was discovered in 1939."]})

    assert [claim["evidence"] for claim in made[KEY_CLAIMS]] == [[2], [2], [1], [1, 2]]
    assert made[KEY_SUMMARY].startswith("Gallium was discovered in 1875 [2]. Gallium")


async def test_plain_words_keep_the_citations_that_a_model_wrote() -> None:
    text = "It is known since when:\nGallium was discovered in 1875 [1]."
    made = await make_summarize_node(ScriptedModel(text))({KEY_EVIDENCE: FOUND})
    assert made[KEY_SUMMARY] == text
    assert made[KEY_CLAIMS][-1] == {"text": "Gallium was discovered in 1875.", "evidence": [1]}


async def test_a_rewrite_cites_what_its_claims_follow_from() -> None:
    model = ScriptedModel(json.dumps({"claims": [{"text": "Gallium was discovered in 1875.", "evidence": [1]}]}))
    made = await make_regenerate_summary_node(model)({KEY_EVIDENCE: FOUND, KEY_SUMMARY: "It is old."})
    assert made[KEY_SUMMARY] == "Gallium was discovered in 1875 [2]."


async def test_an_answer_without_words_is_an_empty_summary() -> None:
    for answer in ("", "  ", '{"claims": []}'):
        made = await make_summarize_node(ScriptedModel(answer))({KEY_EVIDENCE: EVIDENCE})
        assert made == {KEY_SUMMARY: "", KEY_CLAIMS: []}


class Element(BaseModel):
    name: str
    year: int


@frozen
class Found:
    name: str
    year: int


@pytest.mark.parametrize("schema", [Element, Found, Element.model_json_schema()])
async def test_the_output_is_there_when_it_follows_its_schema(schema: Any) -> None:
    output = {"name": "gallium", "year": 1875}
    whole = {"claims": [{"text": "Gallium is from 1875.", "evidence": [1]}], "output": output}
    node_input = {KEY_EVIDENCE: EVIDENCE}

    model = ScriptedModel(json.dumps(whole))
    made = await make_summarize_node(model, schema)(node_input)
    assert made[KEY_STRUCTURED_OUTPUT] == output
    assert made[KEY_SUMMARY] == "Gallium is from 1875 [1]."
    assert '\n  "properties": {\n' in asked(model)  # indented
    assert model.requests[0].output is not None
    assert set(model.requests[0].output.schema["properties"]) == {"claims", "output"}

    alone = await make_summarize_node(ScriptedModel(json.dumps(output)), schema)(node_input)
    assert alone[KEY_STRUCTURED_OUTPUT] == output
    assert alone[KEY_SUMMARY] == json.dumps(output)

    wrong = await make_summarize_node(ScriptedModel(json.dumps(whole | {"output": {"name": 3}})), schema)(node_input)
    assert KEY_STRUCTURED_OUTPUT not in wrong
    assert wrong[KEY_SUMMARY] == "Gallium is from 1875 [1]."


def test_what_cannot_be_a_schema_is_refused() -> None:
    with pytest.raises(ConfigError):
        make_summarize_node(ScriptedModel(), object())


# -- grounding_eval ------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [{}, {KEY_SUMMARY: "Gallium is a metal."}, {KEY_EVIDENCE: ["Gallium."]}])
async def test_without_a_summary_or_evidence_the_score_is_nothing(values: dict[str, Any]) -> None:
    model = ScriptedModel()
    made = await make_grounding_eval_node(model)(values)
    assert made[KEY_GROUNDING_SCORE] == 0.0
    assert model.requests == ()


async def test_the_judge_is_asked_about_sentences_and_decimals_end_none() -> None:
    model = ScriptedModel("1: yes\n2: no")
    summary = "Pi is about 3.14 in most books.\nGallium is a purple gas. Yes."

    made = await make_grounding_eval_node(model)({KEY_SUMMARY: summary, KEY_EVIDENCE: ["Pi is 3.14.", "x"]})

    assert made[KEY_GROUNDING_SCORE] == 0.5
    assert made[KEY_UNGROUNDED_CLAIMS] == ["Gallium is a purple gas."]
    assert made[KEY_GROUNDING_REASON] == ""
    assert "1: Pi is about 3.14 in most books.\n2: Gallium is a purple gas." in asked(model)


async def test_without_a_claim_nothing_passes() -> None:
    model = ScriptedModel()
    made = await make_grounding_eval_node(model)({KEY_SUMMARY: "Yes. 1875.", KEY_EVIDENCE: ["Gallium: 1875."]})
    assert made == {KEY_GROUNDING_SCORE: 0.0, KEY_GROUNDING_REASON: "no claims", KEY_UNGROUNDED_CLAIMS: []}
    assert model.requests == ()


async def test_each_claim_is_judged_against_the_evidence_that_it_cites() -> None:
    evidence = ["Gallium is from 1875.", "Indium is from 1863.", "[conclusion] Both are old."]
    summary = "Gallium is from 1875 [1]. Indium is from 1863 [2]. Both are rather old [3]."
    model = ScriptedModel("1: yes", "1: yes", "1: no")

    made = await make_grounding_eval_node(model)({KEY_SUMMARY: summary, KEY_EVIDENCE: evidence})

    assert made[KEY_GROUNDING_SCORE] == pytest.approx(2 / 3)
    shown = [[text for text in evidence if text in asked(model, n).partition("Statement:")[0]] for n in range(3)]
    # What the agent concluded confirms nothing where tools said something.
    assert shown == [evidence[:1], evidence[1:2], evidence[:2]]


async def test_the_agents_conclusion_counts_where_no_tool_said_anything() -> None:
    model = ScriptedModel("1: yes")
    made = await make_grounding_eval_node(model)(
        {KEY_SUMMARY: "Gallium is a metal.", KEY_EVIDENCE: ["[conclusion] Gallium is a metal."]}
    )
    assert made[KEY_GROUNDING_SCORE] == 1.0


async def test_claims_that_are_not_those_of_the_summary_are_not_scored() -> None:
    model = ScriptedModel("1: yes")
    values = {
        KEY_SUMMARY: "Gallium is a metal.",
        KEY_CLAIMS: [{"text": "Indium is a metal.", "evidence": [1]}],
        KEY_EVIDENCE: ["Gallium is a metal."],
    }
    await make_grounding_eval_node(model)(values)
    assert "\nGallium is a metal.\n" in asked(model).partition("Statement:")[2]


async def test_rules_come_before_the_judge_where_both_are_asked() -> None:
    given = ["Aluminum was discovered by Hans Christian Oersted in 1825 in Denmark."]
    refuted, open_ = "Aluminum was discovered in 1939.", "Hans Christian Oersted was the first to make aluminum."
    judge = ScriptedModel("yes")
    node = make_grounding_eval_node(RulesFirst(judge))

    told = await node({KEY_SUMMARY: f"Aluminum was discovered in 1825. {refuted} {open_}", KEY_EVIDENCE: given})

    assert told[KEY_UNGROUNDED_CLAIMS] == [refuted]
    (asked,) = judge.requests
    assert open_ in asked.messages[-1].text


@pytest.mark.parametrize("answer", ["", "1: NaN", "1: 80%", "2: yes", "{}", "yes and no", "1: yes\n1: no", '"\\ud800"'])
async def test_where_the_judge_cannot_be_read_rules_decide(answer: str) -> None:
    values = {KEY_SUMMARY: "Gallium was discovered in 1875.", KEY_EVIDENCE: ["Gallium was discovered in 1875."]}
    made = await make_grounding_eval_node(ScriptedModel(answer))(values)
    assert made[KEY_GROUNDING_SCORE] == 1.0
    made = await make_grounding_eval_node(ScriptedModel(answer))(values | {KEY_EVIDENCE: ["Indium is soft."]})
    assert made[KEY_UNGROUNDED_CLAIMS] == ["Gallium was discovered in 1875."]


# -- regenerate and replan -----------------------------------------------------------------------


async def test_a_rewrite_is_shown_what_was_not_confirmed() -> None:
    claims = [f"claim number {i}" for i in range(12)]
    model = ScriptedModel('{"claims": [{"text": "Gallium is a metal.", "evidence": [1]}]}')

    made = await make_regenerate_summary_node(model)(
        {KEY_SUMMARY: "Old words.", KEY_EVIDENCE: EVIDENCE, KEY_UNGROUNDED_CLAIMS: claims, KEY_REGENERATION_COUNT: 2}
    )

    assert made[KEY_SUMMARY] == "Gallium is a metal [1]."
    assert made[KEY_REGENERATION_COUNT] == 3
    text = asked(model)
    assert "Old words." in text
    assert [claim for claim in claims if f"- {claim}\n" in text] == claims[:8]


async def test_a_rewrite_without_words_keeps_the_summary() -> None:
    for answer in ("", '{"claims": []}'):
        made = await make_regenerate_summary_node(ScriptedModel(answer))({KEY_SUMMARY: "Old words."})
        assert made == {KEY_REGENERATION_COUNT: 1}


async def test_a_replan_names_what_was_not_confirmed() -> None:
    claims = [f"claim number {i}" for i in range(12)]
    made = await make_replan_node()({KEY_PROMPT: "gallium", KEY_UNGROUNDED_CLAIMS: claims, KEY_REPLAN_COUNT: 1})
    assert made[KEY_REPLAN_COUNT] == 2
    assert [claim for claim in claims if f"- {claim}\n" in made[KEY_EXECUTE_PROMPT]] == claims[:6]
    assert "gallium" in made[KEY_EXECUTE_PROMPT]

    made = await make_replan_node()({KEY_PROMPT: "gallium"})
    assert made[KEY_REPLAN_COUNT] == 1
    assert "'gallium' again" in made[KEY_EXECUTE_PROMPT]


async def test_an_agent_that_failed_fails_its_node() -> None:
    with pytest.raises(Exception, match="no credit"):
        await make_execute_node(ScriptedModel(RuntimeError("no credit")), [look])({KEY_PROMPT: "p"})
