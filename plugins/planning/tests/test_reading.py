"""What a planner's answer must be, to the last key; everything wrong with it is told at once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus import tool
from locus.tools.registry import ToolRegistry
from locus_plugin_planning import AnswerUnusable, Plan, Step, read_plan
from locus_plugin_planning.reading import plan_spec
from locus_plugin_planning.references import Unresolved, fill_references, is_open, references

from .kit import of, plan, step


@tool
def look(at: str, times: int = 1) -> str:
    """Look."""
    return at


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


TOOLS = ToolRegistry(look, add)


def problems(text: str, **options: Any) -> str:
    with pytest.raises(AnswerUnusable) as caught:
        read_plan(text, TOOLS, **options)
    return "\n".join(caught.value.problems)


def test_a_plan_is_read_and_what_arguments_refer_to_is_depended_on() -> None:
    text = plan(step("a", "look", at="x"), step("b", "look", at=of("a"), depends_on=["a"], decision_point=True))
    read = read_plan(f"```json\n{text}\n```", TOOLS)
    assert read == Plan(
        goal="A weekend in Lisbon.",
        steps=(
            Step(id="a", description="a", tool="look", arguments={"at": "x"}),
            Step(
                id="b",
                description="b",
                tool="look",
                arguments={"at": {"$result": "a"}},
                depends_on=("a",),
                decision_point=True,
            ),
        ),
    )
    assert Plan.from_data(json.loads(json.dumps(read.to_data()))) == read
    assert read_plan(plan(step("c", "look", at=of("a"))), TOOLS, known={"a"}).steps[0].depends_on == ("a",)


A = step("a", "look", at="x")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "not one JSON object"),
        ("{} {}", "not one JSON object"),
        ('{"goal": "g", "goal": "h", "steps": []}', "a key is repeated"),
        ('{"goal": "g", "steps": [NaN]}', "NaN is not JSON"),
        ('{"goal": "g", "steps": ' + "[" * 50_000 + "]" * 50_000 + "}", "JSON"),
        (" " * 200_001, "at most 200000 are allowed"),
        ("{}", "the plan has no 'goal'\nthe plan has no 'steps'"),
        (plan(A, mood="good"), "an unknown key 'mood'"),
        (plan(A, answer=["x"]), "an unknown key 'answer'"),
        (json.dumps({"goal": 3, "steps": []}), "goal must be a text"),
        (plan("a"), "step 1 is not an object"),  # type: ignore[arg-type]
        (plan({**A, "id": "a b"}), "the id of step 1 must be 1 to 40 letters, digits, _ or -, got 'a b'"),
        (plan({**A, "id": "a" * 41}), "1 to 40"),
        (plan({"tool": "look", "arguments": {}}), "the id of step 1 must be 1 to 40 letters, digits, _ or -, got None"),
        (plan({**A, "speed": 3}), "unknown key 'speed'"),
        (plan({**A, "arguments": []}), "arguments is not an object"),
        (plan({**A, "depends_on": [1]}), "depends_on must hold texts only"),
        (plan({**A, "decide": {"at": 1}}), "decide must hold texts only"),
        (plan({**A, "decision_point": "yes"}), "decision_point is not true or false"),
        (plan(A, A), "two steps are named 'a'"),
        (plan(step("a", "lok", at="x")), "did you mean 'look'"),
        (plan(step("a", "look")), "$.at: missing"),
        (plan(step("a", "look", at="x", times="many")), "$.times: expected integer"),
        (plan(step("a", "look", at="x", speed=1)), "$.speed: unknown parameter"),
        (plan(A, step("b", "look", at=of("a"), speed=of("a"))), "no parameter 'speed'"),
        (plan(step("b", "add", a=1, decide={"b": "?", "c": "?"})), "no parameter 'c'"),
        (plan(step("b", "add", a=1, b=2, decide={"b": "?"})), "'b' is both given and left to decide"),
        (plan(step("b", "add", a="one", decide={"b": "?"})), "$.a: expected integer"),
        (plan(step("b", None, at="x")), "calls no tool"),
        (plan(step("b", "look", at=of("z"))), "needs 'z'"),
        (plan(step("b", "look", at="x", depends_on=["z"])), "needs 'z'"),
        (plan(step("b", "look", at=of("b"))), "wait for one another: b"),
        (plan(step("b", "look", at=of("c")), step("c", "look", at=of("b")), A), "wait for one another: b, c"),
        (plan(step("b", "look", at={"$result": 3})), "is not a reference"),
        (plan(step("b", "look", at={"$result": "a", "of": 3})), "is not a reference"),
        (plan(A, step("b", "look", at={"$result": "a", "path": 3})), "no usable path"),
        (plan(step("b", "look", at={"$join": "a"})), "joins nothing"),
        (plan(step("b", "look", at={"$join": [3]})), "something other than texts and results"),
    ],
)
def test_what_is_wrong_with_a_plan_is_said(text: str, said: str) -> None:
    assert said in problems(text)


def test_all_that_is_wrong_is_reported_at_once() -> None:
    found = problems(plan(step("a", "lok"), step("b", "add", a="x", b=of("z")), {"id": 3}))
    assert all(part in found for part in ("lok", "$.a", "'z'", "step 3"))


def test_a_step_that_is_done_cannot_be_planned_again_under_its_name() -> None:
    assert "is done already" in problems(plan(A), known={"a"})


def test_a_plan_has_so_many_steps_and_no_more() -> None:
    two = plan(A, step("b", "look", at="y"))
    assert "must have at most 1 steps, got 2" in problems(two, max_steps=1)
    assert len(read_plan(two, TOOLS, max_steps=2).steps) == 2


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([], "answer is empty"),
        (["It is ", of("z")], "answer needs 'z'"),
        ([3], "answer must hold texts and references, got 3"),
        ([{"$result": 3}], "answer: "),
        ("It is.", "answer a list"),
    ],
)
def test_a_template_says_how_the_answer_is_made(answer: Any, said: str) -> None:
    assert said in problems(plan(A, answer=answer), template=True)
    assert read_plan(plan(A, answer=["It is ", of("a")]), TOOLS, template=True).answer == ("It is ", {"$result": "a"})


def test_the_schema_names_the_tools_and_asks_for_an_answer_where_there_is_to_be_one() -> None:
    spec = plan_spec(TOOLS, template=False)
    tools = spec.schema["properties"]["steps"]["items"]["properties"]["tool"]
    assert tools["anyOf"][0]["enum"] == ("look", "add")
    assert spec.schema["required"] == ("goal", "steps")
    assert plan_spec(TOOLS, template=True).schema["required"] == ("goal", "steps", "answer")


# -- laws ---------------------------------------------------------------------------------------------

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
_KEYS = st.sampled_from(["id", "description", "tool", "arguments", "decide", "depends_on", "decision_point", "x"])
_STEPS = st.lists(
    st.dictionaries(_KEYS, _JSON | st.sampled_from(["look", "a", "b", {"at": of("a")}]), max_size=7), max_size=4
)


@given(st.text(max_size=60) | st.builds(lambda s: json.dumps({"goal": "g", "steps": s}), _STEPS | _JSON))
def test_whatever_a_planner_answers_is_a_plan_or_unusable(text: str) -> None:
    try:
        read = read_plan(text, TOOLS)
    except AnswerUnusable:
        return
    assert Plan.from_data(json.loads(json.dumps(read.to_data()))) == read


@given(st.data(), st.integers(2, 8))
def test_a_plan_is_read_exactly_when_its_steps_can_be_put_in_order(data: st.DataObject, count: int) -> None:
    names = [f"s{n}" for n in range(count)]
    needs = {name: data.draw(st.sets(st.sampled_from(names), max_size=2)) for name in names}
    text = plan(*(step(name, "look", at="x", depends_on=sorted(needs[name])) for name in names))
    reach = {name: set(found) for name, found in needs.items()}
    for _ in names:
        reach = {name: found.union(*(reach[each] for each in found)) for name, found in reach.items()}
    if any(name in reach[name] for name in names):
        assert "wait for one another" in problems(text)
    else:
        assert [s.id for s in read_plan(text, TOOLS).steps] == names


@given(_JSON)
def test_what_holds_no_reference_stays_as_it_is(value: Any) -> None:
    assert not is_open(value)
    assert references(value) == ()
    assert fill_references(value, {}) == value


@given(st.text(max_size=30))
def test_a_result_is_never_read_as_a_reference(text: str) -> None:
    hostile = json.dumps({"$result": text})
    assert fill_references({"x": [of("a")]}, {"a": hostile}) == {"x": [hostile]}
    assert fill_references({"$join": ["-", of("a")]}, {"a": hostile}) == f"-{hostile}"


@pytest.mark.parametrize(
    ("path", "value"),
    [("a", [{"b": 1}]), ("a.0", {"b": 1}), ("a.0.b", 1), (["a", 0, "b"], 1), ("", '{"a": [{"b": 1}]}')],
)
def test_a_path_leads_into_a_result_that_is_json(path: Any, value: Any) -> None:
    assert fill_references({"$result": "r", "path": path}, {"r": '{"a": [{"b": 1}]}'}) == value


def test_a_result_that_is_not_there_is_missed() -> None:
    with pytest.raises(Unresolved, match="'z' has no result"):
        fill_references({"x": of("z")}, {"a": "1"})


@pytest.mark.parametrize("path", ["b", "a.1", "a.-1", "a.x", "a.0.b.c", "a.²"])
def test_a_path_that_leads_nowhere_says_so(path: str) -> None:
    with pytest.raises(Unresolved, match="nothing at"):
        fill_references({"$result": "r", "path": path}, {"r": '{"a": [{"b": 1}]}'})
