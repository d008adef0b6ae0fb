"""A typed answer as the arguments of a tool: what is sent, and what is read of the call."""

from __future__ import annotations

import json

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus import Agent
from locus.core.messages import Message, Role, TextBlock, ThinkingBlock, ToolCall
from locus.models import ModelRequest, ModelResponse, ModelSettings, OnChunk
from locus.models.output import output_schema
from locus.tools.definition import ToolSpec
from locus_testkit import ScriptedModel, call, malformed_call
from locus_wire import output_as_tool


@attrs.frozen
class Report:
    item: str
    pieces: int = 1


SPEC = output_schema(Report).spec
LOOK = ToolSpec(name="look", description="Look.", parameters={"type": "object", "properties": {}})
USER = (Message(Role.USER, "How many?"),)


def request(*tools: ToolSpec, choice: str | None = None) -> ModelRequest:
    return ModelRequest(messages=USER, tools=tools, settings=ModelSettings(tool_choice=choice), output=SPEC)


def respond(*content: TextBlock | ThinkingBlock | ToolCall) -> ModelResponse:
    return ModelResponse(message=Message(Role.ASSISTANT, content), stop_reason="tool_calls")


@pytest.mark.parametrize(
    ("tools", "choice", "sent"),
    [
        ((), None, "final_answer"),
        ((), "auto", "final_answer"),
        ((LOOK,), None, "required"),
        ((LOOK,), "required", "required"),
        ((LOOK,), "none", "final_answer"),
        ((LOOK,), "look", "look"),
    ],
)
def test_the_tool_is_the_last_one_and_the_model_must_call_one(
    tools: tuple[ToolSpec, ...], choice: str | None, sent: str
) -> None:
    asked = request(*tools, choice=choice)
    forced = output_as_tool(asked)
    assert forced.request == attrs.evolve(
        asked, tools=(*tools, forced.tool), settings=ModelSettings(tool_choice=sent), output=None
    )
    assert forced.tool.parameters == SPEC.schema
    assert "Report" in forced.tool.description
    assert output_as_tool(asked, force=False).request.settings == asked.settings
    assert output_as_tool(asked).tool == forced.tool


def test_its_name_is_its_own() -> None:
    taken = [ToolSpec(name=name, description="", parameters={}) for name in ("final_answer", "final_answer_2")]
    assert output_as_tool(request(*taken)).tool.name == "final_answer_3"


def test_a_request_without_a_schema_is_refused() -> None:
    with pytest.raises(ValueError, match="must have an output schema"):
        output_as_tool(ModelRequest(messages=USER))


@settings(deadline=None, derandomize=True)
@given(st.dictionaries(st.text(), st.recursive(st.none() | st.integers() | st.text(), st.lists), max_size=3))
def test_the_call_is_read_as_the_text_of_the_answer(arguments: dict[str, object]) -> None:
    forced = output_as_tool(request(LOOK))
    thought = ThinkingBlock("Hm.", "signature")
    read = forced.read(respond(thought, TextBlock("{so}:"), ToolCall("1", "final_answer", arguments)))
    assert read.message.content[0] == thought
    assert json.loads(read.message.text) == arguments
    assert (read.tool_calls, read.stop_reason) == ((), "stop")


def test_other_calls_stay_as_they_are() -> None:
    forced = output_as_tool(request(LOOK))
    for response in (respond(TextBlock("4")), respond(ToolCall("1", "look"))):
        assert forced.read(response) is response
    cut = attrs.evolve(respond(malformed_call("final_answer", '{"item": "la')), stop_reason="length")
    assert (forced.read(cut).message.text, forced.read(cut).stop_reason) == ('{"item": "la', "length")


def test_other_calls_of_the_turn_come_first_and_the_last_answer_counts() -> None:
    forced = output_as_tool(request(LOOK))
    look, answer = ToolCall("1", "look"), ToolCall("2", "final_answer", {"item": "x"})
    both = forced.read(respond(look, answer))
    assert (both.message.content, both.stop_reason) == ((look,), "tool_calls")
    second = ToolCall("3", "final_answer", {"item": "y"})
    assert json.loads(forced.read(respond(answer, second)).message.text) == {"item": "y"}


class Tooled:
    """A provider whose model has tools and no schemas."""

    name = "tooled:model"

    def __init__(self, *turns: object) -> None:
        self.model = ScriptedModel(*turns)  # type: ignore[arg-type]

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        if request.output is None:
            return await self.model.complete(request, on_chunk)
        forced = output_as_tool(request)
        return forced.read(await self.model.complete(forced.request, on_chunk))


@pytest.mark.anyio
async def test_an_agent_gets_its_typed_answer_and_has_a_wrong_one_repaired() -> None:
    def look() -> str:
        """Look."""
        return "4"

    model = Tooled(
        call("look"), call("final_answer", item="lamp", pieces="many"), call("final_answer", item="lamp", pieces=4)
    )
    result = await Agent(model, tools=[look], output_schema=Report).run("How many?")
    assert result.parsed == Report("lamp", 4)
    assert [m.role for m in result.state.messages] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert "pieces" in model.model.requests[2].messages[-1].text
