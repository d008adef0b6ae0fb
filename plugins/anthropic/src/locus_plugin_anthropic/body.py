"""The body of a request to ``/v1/messages``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from locus.core import thaw
from locus.models import ModelRequest, ModelSettings
from locus.schema import join_names
from locus.tools import ToolSpec
from locus_plugin_anthropic.blocks import NAME, Wire
from locus_plugin_anthropic.cache import mark
from locus_plugin_anthropic.conversation import conversation
from locus_plugin_anthropic.output import OutputPlan, output_of
from locus_plugin_anthropic.settings import LEAST_BUDGET, AnthropicSettings
from locus_wire.bodies import hosted_tools_of
from locus_wire.errors import RequestRefused

__all__ = ["body_of"]

#: Keys of a request that are not the user's to replace.
_OURS = frozenset({"messages", "stream", "tools", "output_config"})


def body_of(request: ModelRequest, model: str, own: AnthropicSettings) -> tuple[Wire, OutputPlan]:
    """The body, without ``stream``, and how its answer is read.

    Args:
        request: what to answer.
        model: the model's name, without the scheme.
        own: the plugin's settings.

    Raises:
        RequestRefused: the tool choice names no tool, or cannot be had together with the thinking that is asked for.
        InputError: the conversation holds media that the API does not take, or the server's tools are not a list of
            objects.
    """
    extras = thaw(request.settings.extras)
    body: Wire = {"model": model, "max_tokens": request.settings.max_tokens or own.max_tokens}
    if thinking := extras.get("thinking") or _thinking(own, body["max_tokens"]):
        body["thinking"] = thinking
    asked = output_of(request, model, own, budgeted=_has_thinking_budget(body))
    request, talk = asked.request, conversation(asked.request.messages)
    # Tools that the server runs come behind those of the agent.
    if tools := [*(tool.wire(NAME, _tool) for tool in request.tools), *hosted_tools_of(extras)]:
        body["tools"] = tools
    if talk.system:
        body["system"] = talk.system
    body["messages"] = talk.messages
    if config := _config(extras.get("output_config", {}), own, asked):
        body["output_config"] = config
    _sample(body, request.settings, own)
    if tools and (choice := _choice(request.settings.tool_choice, own, body)):
        body["tool_choice"] = choice
    body |= {key: value for key, value in extras.items() if key not in _OURS}
    if own.cache != "off" and "cache_control" not in extras:
        mark(body, own.cache, growing=request.purpose == "think")
    return body, asked


def _tool(tool: ToolSpec) -> Wire:
    schema = tool.parameters if "type" in tool.parameters else {"type": "object", **tool.parameters}
    described = {"description": tool.description} if tool.description.strip() else {}
    return {"name": tool.name, **described, "input_schema": schema}


def _thinking(own: AnthropicSettings, limit: int) -> Wire | None:
    if not isinstance(own.thinking, int):
        return None if own.thinking is None else {"type": own.thinking}
    # The budget is a part of the answer's tokens; an answer that is meant to be that short is not thought about.
    budget = min(own.thinking, limit - 1)
    return {"type": "enabled", "budget_tokens": budget} if budget >= LEAST_BUDGET else None


def _config(given: Mapping[str, Any], own: AnthropicSettings, asked: OutputPlan) -> Wire:
    effort = {} if own.effort is None else {"effort": own.effort}
    form = {} if asked.schema is None else {"format": {"type": "json_schema", "schema": asked.schema}}
    return {**effort, **given, **form}


def _sample(body: Wire, settings: ModelSettings, own: AnthropicSettings) -> None:
    # Newer versions of the API refuse a temperature, whatever it is; with a budget for thinking all of them do.
    if settings.temperature is not None and own.api_version == "2023-06-01" and not _has_thinking_budget(body):
        body["temperature"] = settings.temperature
    stops = [text for text in settings.stop if text.strip()]  # nothing but white space is refused
    if stops:
        body["stop_sequences"] = stops


def _has_thinking_budget(body: Wire) -> bool:
    thinking = body.get("thinking")
    return isinstance(thinking, Mapping) and thinking.get("type") == "enabled"


def _choice(wanted: str | None, own: AnthropicSettings, body: Wire) -> Wire:
    choice = _named_choice(wanted, [str(tool.get("name")) for tool in body["tools"]])
    if choice["type"] in ("any", "tool") and _has_thinking_budget(body):
        raise _refuse(
            f"tool_choice must not be {wanted!r}: the API cannot force a tool while thinking "
            "with a budget; use tool_choice='auto', or thinking='adaptive' with a model that knows it"
        )
    if choice["type"] != "none" and not own.parallel_tools:
        choice["disable_parallel_tool_use"] = True
    return {} if choice == {"type": "auto"} else choice


def _named_choice(choice: str | None, known: list[str]) -> Wire:
    if choice is None or choice == "auto":
        return {"type": "auto"}
    if choice == "none":
        return {"type": "none"}
    if choice == "required":
        return {"type": "any"}
    if choice not in known:
        raise _refuse(f"tool_choice must be 'auto', 'none', 'required' or one of {join_names(known)}, got {choice!r}")
    return {"type": "tool", "name": choice}


def _refuse(message: str) -> RequestRefused:
    return RequestRefused(f"{message} (nothing was sent)", provider=NAME, retryable=False)
