"""`output_as_tool`: a typed answer as the arguments of a tool, for models that have tools but no output schemas.

The tool is the last one, so that the beginning of the request does not change and prompt caches work. The model must
call it, so its answer has the shape of the tool's parameters; `OutputAsTool.read` converts that call to the text that
the loop and the output schema expect, as if the model had written it.
"""

from __future__ import annotations

import json

from attrs import evolve, frozen

from locus.core import encode_data
from locus.core.messages import Block, Message, TextBlock, ToolCall
from locus.models import ModelRequest, ModelResponse
from locus.tools import ToolSpec

__all__ = ["OutputAsTool", "output_as_tool"]

_NAME = "final_answer"


@frozen(kw_only=True)
class OutputAsTool:
    """A request whose answer is a call of a tool, and the conversion of that call to an answer.

    Args:
        request: what to send: it has the tool, a ``tool_choice``, and no ``output``.
        tool: the tool. When the answer streams, the pieces of its arguments are the text of the answer.
    """

    request: ModelRequest
    tool: ToolSpec

    def read(self, response: ModelResponse) -> ModelResponse:
        """The response with the call of the tool as text; a response without such a call is returned unchanged.

        When other tools are called in the same turn, those run first: the answer is dropped, and the model gives it
        again when it has their results. Text beside the answer is dropped, thinking stays. Arguments that are not a
        JSON object become text as they are, which the output schema then rejects. The ``extras`` of the message are
        dropped as well, since a provider may describe the call in them.
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


def output_as_tool(request: ModelRequest, *, force: bool = True) -> OutputAsTool:
    """Replace the output schema of a request by a tool that the model must call.

    When the request has tools of its own, the model must call one of those or this one. A ``tool_choice`` that names a
    tool is kept; ``"none"`` means that only the tool of the answer may be called.

    Args:
        request: a request with an ``output``.
        force: False for models that cannot be forced to call a tool; then only the tool's description asks for it.

    Raises:
        ValueError: the request has no ``output``.
    """
    output = request.output
    if output is None:
        raise ValueError("the request must have an output schema, got None; send the request as it is")
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
    return OutputAsTool(
        request=evolve(request, tools=(*request.tools, tool), settings=settings, output=None), tool=tool
    )
