"""How a structured answer is asked for.

Newer models hold their text to a schema. For the others, and for schemas that the API cannot hold anything to, the
answer is the arguments of a tool (`locus_wire.output_as_tool`).
"""

from __future__ import annotations

import re
from typing import Any

from attrs import evolve, frozen

from locus.models import ModelRequest, ModelResponse
from locus_plugin_anthropic.settings import AnthropicSettings
from locus_wire import NotStrict, OutputAsTool, StrictRules, output_as_tool, strict_schema

__all__ = ["OutputPlan", "output_of"]

#: Models from before structured output.
_OLDER = re.compile(r"claude-(?:\d|instant|(?:opus|sonnet)-4(?:-[01])?(?:-2\d{7})?$)")

#: What the API takes (its guide to structured outputs): no recursion, no bounds, these formats.
_RULES = StrictRules(
    formats=frozenset({"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}),
    recursive=False,
    optional=True,
)


@frozen(kw_only=True)
class OutputPlan:
    """A request as it is sent, and the way back.

    Args:
        request: without its ``output``.
        schema: what the text of the answer is held to, or None.
        forced: the answer as a call, or None.
    """

    request: ModelRequest
    schema: dict[str, Any] | None = None
    forced: OutputAsTool | None = None

    @property
    def tool(self) -> str | None:
        """The name of the tool whose arguments are the answer, or None."""
        return None if self.forced is None else self.forced.tool.name

    def read(self, response: ModelResponse) -> ModelResponse:
        """The response that the kernel gets."""
        if self.forced is None:
            return response
        read = self.forced.read(response)
        # What is left of the turn is the API's own still: without its mark the next request would drop the thinking.
        return evolve(read, message=evolve(read.message, extras=response.message.extras))


def output_of(request: ModelRequest, model: str, own: AnthropicSettings, *, budgeted: bool) -> OutputPlan:
    """Decide how a request's answer is held to its schema.

    Args:
        request: the request.
        model: the model's name, without the scheme.
        own: the plugin's settings.
        budgeted: whether the model thinks with a budget, so that no tool can be forced.
    """
    if request.output is None:
        return OutputPlan(request=request)
    # What other servers do with a schema is not known.
    able = own.at_anthropic and not _OLDER.match(model)
    if own.structured == "native" or (own.structured == "auto" and able):
        try:
            schema = strict_schema(request.output.schema, _RULES)
        except NotStrict:
            pass
        else:
            return OutputPlan(request=evolve(request, output=None), schema=schema)
    if not request.tools:
        # A plugin's own question takes over the run's settings: what they choose among is not there.
        request = evolve(request, settings=evolve(request.settings, tool_choice=None))
    forced = output_as_tool(request, force=not budgeted)
    return OutputPlan(request=forced.request, forced=forced)
