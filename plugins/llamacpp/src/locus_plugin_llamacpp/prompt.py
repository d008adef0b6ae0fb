"""The system prompt of the turn protocol: the same text for the same tools, so that its prefix stays cached."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from locus.core import thaw
from locus.tools import ToolSpec

__all__ = ["final_name", "system_prompt", "tool_line"]

_FINAL_NAMES = ("submit_answer", "final_answer", "give_final_answer")

_RULES = (
    "You solve the task of the user with the tools below. In each turn you write one JSON object, "
    '{"tool": NAME, "args": {...}}, which calls one tool, and you are shown its result. Use a result in the '
    "calls that follow. Copy names, ids and numbers exactly as they are given. Never repeat a call, and change nothing "
    "that the user did not ask to change. As soon as you know the answer, or when the task needs no tool, call %s."
)


def final_name(tools: Sequence[ToolSpec]) -> str:
    """The name under which the model gives its answer: one that none of the tools has."""
    taken = {tool.name for tool in tools}
    return next(name for name in (*_FINAL_NAMES, f"answer_{len(taken)}") if name not in taken)


def system_prompt(own: str, tools: Sequence[ToolSpec], final: str, output: Mapping[str, Any] | None) -> str:
    """The user's own system prompt, the rules of the protocol, and one line a tool.

    Args:
        own: the system prompt of the agent, or ``""``.
        tools: all tools of the request, also those that are not on offer in this turn.
        final: from `final_name`.
        output: the JSON Schema of the answer, or None for text.
    """
    answer = "the answer" if output is None else f"JSON that follows {json.dumps(thaw(output), ensure_ascii=False)}"
    lines = [tool_line(tool) for tool in tools]
    lines.append(f"- {final}(answer: {answer}): Give the user the final answer and stop.")
    rules = f"{_RULES % final}\nTools:\n" + "\n".join(lines)
    return f"{own}\n\n{rules}" if own else rules


def tool_line(tool: ToolSpec) -> str:
    """``- name(parameter: what it is, ...): what the tool does``; a parameter that may be left out has a ``?``."""
    required = frozenset(tool.parameters.get("required", ()))
    parameters = ", ".join(
        f"{name}{'' if name in required else '?'}: {_about(schema)}" for name, schema in tool.properties.items()
    )
    return f"- {tool.name}({parameters}): {' '.join(tool.description.split())}"


def _about(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    if "enum" in schema:
        kind = "one of " + "|".join(map(str, schema["enum"]))
    else:
        kind = str(schema.get("type", ""))
    described = " ".join(str(schema.get("description", "")).split())
    if kind in ("", "string"):
        return described or "text"
    return f"{kind}, {described}" if described else kind
