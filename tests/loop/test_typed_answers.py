"""`result.parsed` is an instance of the user's type: at once, after a repair, or not at all, and then it is told."""

from __future__ import annotations

import dataclasses
from typing import Any, TypedDict

import attrs
import msgspec
import pydantic
import pytest

from locus import Agent
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


@attrs.frozen
class AttrsReport:
    item: str
    pieces: int = 1


@dataclasses.dataclass
class DataReport:
    item: str
    pieces: int = 1


class DictReport(TypedDict):
    item: str
    pieces: int


class StructReport(msgspec.Struct):
    item: str
    pieces: int = 1


class ModelReport(pydantic.BaseModel):
    item: str
    pieces: int = 1


KINDS = [AttrsReport, DataReport, DictReport, StructReport, ModelReport]
RIGHT, WRONG = '{"item": "lamp", "pieces": 4}', '{"item": "lamp", "pieces": "many"}'

kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def look() -> str:
    """Look."""
    return "4"


@kinds
async def test_a_right_answer_is_a_value_of_the_type(kind: Any) -> None:
    model = ScriptedModel(call("look"), f"Here it is:\n```json\n{RIGHT}\n```")
    result = await Agent(model, tools=[look], output_schema=kind).run("How many?")
    assert result.parsed == kind(item="lamp", pieces=4)
    assert type(result.parsed) is (dict if kind is DictReport else kind)
    assert "review" not in result.reports
    assert all(request.output == model.requests[0].output for request in model.requests)
    assert model.requests[0].output is not None
    assert model.requests[0].output.name == kind.__name__


@kinds
async def test_a_wrong_answer_is_repaired(kind: Any) -> None:
    model = ScriptedModel(WRONG, "I do not know.", RIGHT)
    result = await Agent(model, output_schema=kind).run("How many?")
    assert result.parsed == kind(item="lamp", pieces=4)
    assert "$.pieces: expected integer, got string 'many'" in model.requests[1].messages[-1].text
    assert "expected JSON" in model.requests[2].messages[-1].text
    assert result.usage.total_tokens == 45


@kinds
async def test_an_answer_that_is_never_right_is_not_parsed_and_the_report_says_why(kind: Any) -> None:
    model = ScriptedModel(WRONG, after="repeat")
    result = await Agent(model, output_schema=kind, max_revisions=2).run("How many?")
    assert (result.parsed, result.text, result.stop_reason) == (None, WRONG, "OutputInvalid")
    assert len(model.requests) == 3
    assert "$.pieces: expected integer" in result.reports["review"]


@kinds
async def test_lists_and_unions_of_a_type_come_in_an_object(kind: Any) -> None:
    one = kind(item="lamp", pieces=4)
    listed = await Agent(ScriptedModel(f'{{"value": [{RIGHT}]}}')).run("?", output_schema=list[kind])
    assert listed.parsed == [one]
    either = await Agent(ScriptedModel(f'{{"value": {RIGHT}}}')).run("?", output_schema=kind | None)
    assert either.parsed == one
