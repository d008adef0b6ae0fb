"""What a line shows of an event: the fields that are not payload are listed here, everything else is payload."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from attrs import fields

from locus import (
    ToolCacheHitEvent,
    ToolCompleteEvent,
    Usage,
)
from locus.core.events import event_to_json
from locus.plugin import Event
from locus.plugins import scrub

__all__ = ["event_fields"]

_ENVELOPE = frozenset(field.name for field in fields(Event))

#: Fields of the kernel's events that no user, model or tool has written, and messages of errors.
_SHOWN: dict[str, tuple[str, ...]] = {
    "run_start": ("model", "resumed"),
    "iteration": ("token_total", "cost"),
    "think": (),
    "model_chunk": ("kind", "attempt", "purpose"),
    "model_complete": ("model", "purpose", "stop_reason", "duration_ms", "attempts"),
    "model_error": ("model", "purpose", "error_type", "error", "retryable", "attempt"),
    "model_restart": ("attempt", "purpose"),
    "tool_start": ("tool_name", "call_id"),
    "tool_progress": ("tool_name", "call_id", "progress", "total"),
    "tool_complete": ("tool_name", "call_id", "duration_ms"),
    "tool_cache_hit": ("tool_name", "call_id"),
    "reflect": ("confidence", "assessment"),
    "interrupt": ("interrupt_id", "tool_name", "call_id"),
    "checkpoint": ("node", "next_node", "head"),
    "hook_failed": ("plugin", "hook", "error", "quarantined"),
    "terminate": ("satisfied", "iterations_used", "total_tool_calls", "final_confidence", "error"),
}
#: Of an event of a plugin, numbers and fields of these names; what it calls otherwise may be anything.
_NAMES = frozenset({"tool_name", "call_id", "model", "purpose", "rule", "where", "action", "decision", "assessment"})

_TYPE = re.compile(r"[A-Za-z_][\w.]*")


def _error_type(error: str | None) -> str | None:
    """The class of an error that is given as ``"<Type>: <message>"``."""
    if error is None:
        return None
    name = error.partition(":")[0]
    return name if _TYPE.fullmatch(name) else "Error"


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt_tokens,
        "output_tokens": usage.completion_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost": usage.cost,
    }


def _tool(event: ToolCompleteEvent | ToolCacheHitEvent) -> dict[str, Any]:
    return {"success": event.error is None, "error_type": _error_type(event.error)}


#: Fields derived from others that are payloads.
_DERIVED: dict[str, Callable[[Any], dict[str, Any]]] = {
    "think": lambda e: {"tools": [call.name for call in e.tool_calls]},
    "model_complete": lambda e: _usage(e.usage),
    "tool_complete": _tool,
    "tool_cache_hit": _tool,
    # The text after the colon comes from a hook, or from a model that it asked.
    "checkpoint": lambda e: {"why": e.why.partition(":")[0]},
    "terminate": lambda e: {"reason": e.reason.partition(":")[0], **_usage(e.usage)},
}


def event_fields(event: Event, *, payloads: bool, max_chars: int) -> dict[str, Any]:
    """The fields of a line, those of the envelope left out.

    Args:
        event: any event.
        payloads: with prompts, arguments, results, answers, and whatever else it holds.
        max_chars: how much of a text is shown.
    """
    kind = event.type
    own = [field.name for field in fields(type(event)) if field.name not in _ENVELOPE]
    if kind in _SHOWN:
        found = {name: getattr(event, name) for name in _SHOWN[kind]}
    else:
        found = {name: value for name in own if _harmless(name, value := getattr(event, name))}
    derive = _DERIVED.get(kind)
    if derive is not None:
        found.update(derive(event))
    if payloads:
        form = event_to_json(event)
        found.update((name, form[name]) for name in own if name != "usage" and name in form)
    return {name: _cut(value, max_chars) for name, value in found.items()}


def _harmless(name: str, value: object) -> bool:
    return isinstance(value, bool | int | float) or (name in _NAMES and isinstance(value, str))


def _cut(value: Any, most: int) -> Any:
    if isinstance(value, str):
        if len(value) > most:
            value = f"{value[:most]}... ({len(value)} characters)"
        return scrub(value)
    if isinstance(value, dict):
        return {str(key): _cut(item, most) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_cut(item, most) for item in value]
    return value
