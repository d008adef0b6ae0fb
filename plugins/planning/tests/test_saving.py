"""What planning saves on a task of twelve tools, in model calls, to the call; the README has these numbers."""

from __future__ import annotations

from typing import Any

import pytest

from locus_testkit import ScriptedModel, assert_valid_history, assert_valid_request, call

from .kit import ANSWER, CALLS, PLAN, STEPS, WAVES, Journey, of, plan, purposes, ran, run, step

pytestmark = pytest.mark.anyio

REACT: list[Any] = [*CALLS, ANSWER]
AGAIN = plan(
    step("book_other", "book_flight", flight=of("flights", "1.id"), traveller=of("traveller", "id")),
    step("invoice", flight=of("book_other"), hotel=of("book_hotel")),
    step("mail", to=of("traveller", "mail"), text={"$join": ["Booked: ", of("book_other")]}),
)
TEMPLATE = plan(*STEPS, answer=["Ada flies to Lisbon on 8 May: ", of("book_flight"), ", ", of("book_hotel"), "."])
BAD = plan(step("teleport"))

CASES: list[tuple[str, list[Any], dict[str, Any], dict[str, int], int]] = [
    ("plain ReAct, a call a turn", REACT, {}, {"think": 13}, 13),
    ("plain ReAct, calls side by side", [*WAVES, ANSWER], {}, {"think": 5}, 5),
    ("a plan", [PLAN, ANSWER], {"planning": True}, {"planning": 1, "think": 1}, 5),
    ("a plan with its own answer", [TEMPLATE], {"planning": {"answer": "template"}}, {"planning": 1}, 5),
    ("the first plan is refused", [BAD, PLAN, ANSWER], {"planning": True}, {"planning": 2, "think": 1}, 5),
    ("both are refused", [BAD, BAD, *REACT], {"planning": True}, {"planning": 2, "think": 13}, 13),
]


@pytest.mark.parametrize(("script", "options", "calls", "turns"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
async def test_the_same_answer_after_the_same_calls_costs_this_many_questions(
    script: list[Any], options: dict[str, Any], calls: dict[str, int], turns: int
) -> None:
    journey, model = Journey(), ScriptedModel(*script)
    result, _ = await run(model, journey.all(), **options)
    assert {p: purposes(model).count(p) for p in purposes(model)} == calls
    assert (result.text, result.stop_reason, result.iterations) == (ANSWER, "NoToolCalls", turns)
    assert result.usage.total_tokens == 15 * sum(calls.values())
    plain, _ = await run(ScriptedModel(*REACT), Journey().all())
    assert ran(result) == ran(plain)
    assert sorted(journey.ran) == sorted(each.name for each in CALLS)
    assert_valid_history(result.state.messages)
    for request in model.requests:
        assert_valid_request(request.messages)


async def test_a_step_that_fails_costs_one_more_plan() -> None:
    journey, model = Journey(full="TP-571"), ScriptedModel(PLAN, AGAIN, ANSWER)
    result, _ = await run(model, journey.all(), planning=True)
    assert purposes(model) == ["planning", "planning", "think"]
    assert (result.text, result.iterations) == (ANSWER, 6)
    assert [name for name in journey.ran if journey.ran.count(name) > 1] == [], "what was done is not done again"
    assert [(e.tool_name, e.result) for e in result.state.tool_executions][-3:] == [
        ("book_flight", "F-LH-1166"),
        ("invoice", "I(F-LH-1166, B-H-7)"),
        ("mail", "sent to ada@example.org"),
    ]
    assert_valid_history(result.state.messages)
    other: list[Any] = [
        call("book_flight", flight="LH-1166", traveller="C-42"),
        CALLS[9],
        call("invoice", flight="F-LH-1166", hotel="B-H-7"),
        call("mail", to="ada@example.org", text="Booked: F-LH-1166"),
    ]
    plain = ScriptedModel(*REACT[:9], *other, ANSWER)
    without, _ = await run(plain, Journey(full="TP-571").all())
    assert (len(plain.requests), without.iterations) == (14, 14)
    assert ran(without) == ran(result)


async def test_a_choice_costs_one_question_and_may_go_to_another_model() -> None:
    choice = step(
        "book_flight", traveller=of("traveller", "id"), decide={"flight": "the cheapest"}, depends_on=["flights"]
    )
    steps = [choice if each["id"] == "book_flight" else each for each in STEPS]
    journey, model, second = Journey(), ScriptedModel(plan(*steps), ANSWER), ScriptedModel('{"flight": "TP-571"}')
    result, _ = await run(model, journey.all(), planning={"executor": second})
    assert (purposes(model), purposes(second)) == (["planning", "think"], ["planning-step"])
    assert result.text == ANSWER
    plain, _ = await run(ScriptedModel(*REACT), Journey().all())
    assert ran(result) == ran(plain)
