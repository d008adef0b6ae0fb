"""Worked examples: what decides whether a small model solves anything at all.

With examples of one's own tools the measured models solve a third to a half more tasks than with
generic ones, and without any they call the right tool for ever. The generic ones use tools that the
user does not have, and the shapes that tasks have: calls that depend on each other, with and without an effect at the
end, one call, none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from locus.tools import ToolExample, ToolSpec

__all__ = ["GENERIC", "Step", "WorkedExample", "examples_for"]


@frozen
class Step:
    """One call of an example and what it returned."""

    tool: str
    arguments: Mapping[str, Any]
    result: str


@frozen
class WorkedExample:
    """A whole example: the request, the calls, the answer."""

    user: str
    steps: tuple[Step, ...]
    answer: str


_GREETING = WorkedExample("Hi!", (), "Hello! What can I do for you?")

GENERIC: tuple[WorkedExample, ...] = (
    WorkedExample(
        "Water the fern in the office of Ruth Kim.",
        (
            Step("find_person", {"name": "Ruth Kim"}, '{"person_id": "U4", "office": "B12"}'),
            Step(
                "list_plants",
                {"office": "B12"},
                '[{"plant_id": "PL3", "kind": "cactus"}, {"plant_id": "PL7", "kind": "fern"}]',
            ),
            Step("water", {"plant_id": "PL7"}, "watered"),
        ),
        "I watered the fern PL7 in office B12 of Ruth Kim.",
    ),
    WorkedExample(
        "What do 3 tickets to Quito cost?",
        (
            Step("get_fare", {"city": "Quito"}, "410"),
            Step("multiply", {"a": "3", "b": "410"}, "1230"),
        ),
        "3 tickets to Quito cost 1230.",
    ),
    WorkedExample(
        "Which plants does Jon Bell have?",
        (
            Step("find_person", {"name": "Jon Bell"}, '{"person_id": "U9", "office": "A3"}'),
            Step("list_plants", {"office": "A3"}, '[{"plant_id": "PL1", "kind": "ivy"}]'),
        ),
        "Jon Bell has one plant, the ivy PL1.",
    ),
    WorkedExample(
        "What time is it in Lima?",
        (Step("get_time", {"city": "Lima"}, "14:05"),),
        "It is 14:05 in Lima.",
    ),
    WorkedExample(
        "Order the lightest tent for Rosa Diaz.",
        (
            Step(
                "find_products",
                {"kind": "tent"},
                '[{"product_id": "TN310", "kilograms": 3.1}, {"product_id": "TN184", "kilograms": 1.8}]',
            ),
            Step("order", {"product_id": "TN184", "customer": "Rosa Diaz"}, "ordered, number 5520"),
        ),
        "I ordered tent TN184 for Rosa Diaz, number 5520.",
    ),
    _GREETING,
)


def examples_for(tools: Sequence[ToolSpec]) -> tuple[WorkedExample, ...]:
    """The examples to show for these tools: their own where any carries some, else the generic ones.

    Examples of different tools with the same ``user`` text are one conversation: first the calls whose
    example has no ``answer``, in the order of the tools, last the one that has it.
    """
    flows: dict[str, list[tuple[ToolSpec, ToolExample]]] = {}
    for tool in tools:
        for example in tool.examples:
            flows.setdefault(example.user, []).append((tool, example))
    if not flows:
        return GENERIC
    # The last one is imitated most, so the longest conversations come first and the shortest last.
    made = sorted((_flow(user, calls) for user, calls in flows.items()), key=lambda example: -len(example.steps))
    return (*made, _GREETING)


def _flow(user: str, calls: list[tuple[ToolSpec, ToolExample]]) -> WorkedExample:
    ordered = sorted(calls, key=lambda call: bool(call[1].answer))
    steps = tuple(Step(tool.name, example.arguments, example.result) for tool, example in ordered)
    last = ordered[-1][1]
    return WorkedExample(user, steps, last.answer or last.result)
