"""`forced_answer`: a typed answer as the arguments of a tool, for models that have tools and no schemas of answers.

The tool is the last one, so that the prefix of the request stays as it was. The model that is made to call it answers
in the shape of its parameters; `ForcedAnswer.read` makes of that call the text that the loop and the output schema
read, as if the model had written it.
"""

from __future__ import annotations

import json

from attrs import evolve, frozen

from locus.core.data import encode_data
from locus.core.messages import Block, Message, TextBlock, ToolCall
from locus.models.protocol import ModelRequest, ModelResponse
from locus.tools.spec import ToolSpec

__all__ = ["ForcedAnswer", "forced_answer"]

_NAME = "final_answer"


@frozen(kw_only=True)
class ForcedAnswer:
    """A request whose answer is a call, and the way back.

    Args:
        request: what to send: it has the tool, a choice of it, and no ``output``.
        tool: the tool. Pieces of its arguments are the text of the answer as it streams.
    """

    request: ModelRequest
    tool: ToolSpec

    def read(self, response: ModelResponse) -> ModelResponse:
        """The response with the call of the tool as text; one without such a call as it is.

        Where other tools are called in the same turn, they come first: the answer is left out, and asked for again
        when their results are there. Text beside the answer is left out, thinking stays. Arguments that are no JSON
        object become the text that they are, for the output schema to object to. What a provider has noted in the
        ``extras`` of the message is left out too: it may tell of the call.
        """
        answers = [each for each in response.tool_calls if each.name == self.tool.name]
        if not answers:
            return response
        content = [b for b in response.message.content if not (isinstance(b, ToolCall) and b.name == self.tool.name)]
        if len(answers) < len(response.tool_calls):
            return evolve(response, message=_with(response.message, content))
        content = [each for each in content if not isinstance(each, TextBlock)]
        last = answers[-1]
        stop = "stop" if response.stop_reason == "tool_calls" else response.stop_reason
        return evolve(response, message=_with(response.message, [*content, TextBlock(_text(last))]), stop_reason=stop)


def _with(message: Message, content: list[Block]) -> Message:
    return Message(message.role, tuple(content), name=message.name)


def _text(call: ToolCall) -> str:
    if call.malformed is not None:
        return call.malformed
    return json.dumps(encode_data(call.arguments), ensure_ascii=False)


def forced_answer(request: ModelRequest, *, force: bool = True) -> ForcedAnswer:
    """Turn the output schema of a request into a tool that the model is made to call.

    Where the request has tools of its own, some tool must be called: one of those, or this one. A named
    ``tool_choice`` stands, and ``"none"`` means that no other tool may be called.

    Args:
        request: with an ``output``.
        force: False for models that cannot be made to call a tool: they are asked to, in its description.

    Raises:
        ValueError: the request has no ``output``.
    """
    output = request.output
    if output is None:
        raise ValueError("the request has no output schema, so there is no answer to force; send it as it is")
    taken = {each.name for each in request.tools}
    name, number = _NAME, 1
    while name in taken:
        number += 1
        name = f"{_NAME}_{number}"
    tool = ToolSpec(
        name=name,
        description=f"Give the final answer ({output.name}). Call this once, as the last thing, when nothing else is "
        "left to do: its arguments are the answer.",
        parameters=output.schema,
    )
    choice = request.settings.tool_choice
    if force and choice in (None, "auto", "none", "required"):
        choice = name if choice == "none" or not request.tools else "required"
    settings = evolve(request.settings, tool_choice=choice)
    return ForcedAnswer(
        request=evolve(request, tools=(*request.tools, tool), settings=settings, output=None), tool=tool
    )
