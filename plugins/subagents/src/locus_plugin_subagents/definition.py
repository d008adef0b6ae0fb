"""`SubAgentDef`: what a subagent is."""

from __future__ import annotations

import re
from typing import Any

from attrs import Attribute, field, frozen

from locus.models import Model
from locus.tools import ToolRegistry
from locus_kit.validators import integer, model_or_name, optional

__all__ = ["GENERAL_PURPOSE", "MAX_DESCRIPTION", "SubAgentDef", "general_purpose"]

#: The name of the subagent that has no task of its own.
GENERAL_PURPOSE = "general-purpose"

#: How long a description may be, in bytes: that of a subagent, and that of a piece of work.
MAX_DESCRIPTION = 20_000

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def _name(_: object, attribute: Attribute[Any], value: Any) -> None:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ValueError(f"{attribute.name} must have 1 to 64 letters, digits, '_' or '-', got {value!r:.80}")


def _text(_: object, attribute: Attribute[Any], value: Any) -> None:
    if not isinstance(value, str):
        raise ValueError(f"{attribute.name} must be a str, got {value!r:.80}")


def _description(_: object, attribute: Attribute[Any], value: Any) -> None:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{attribute.name} must say what the subagent is for, got {value!r:.80}")
    size = len(value.encode("utf-8", "surrogatepass"))
    if size > MAX_DESCRIPTION:
        raise ValueError(f"{attribute.name} must have at most {MAX_DESCRIPTION:,} bytes, got {size:,}")


def _tools(value: Any) -> tuple[Any, ...]:
    if isinstance(value, str):
        raise ValueError(f"tools must be a list of tools, got {value!r:.80}")
    return tuple(ToolRegistry.of(value))


@frozen(kw_only=True)
class SubAgentDef:
    """A subagent: an agent for pieces of another one's work.

    Args:
        name: what the model calls it by, in letters, digits, ``_`` and ``-``.
        description: what it is for; the model chooses by it.
        system_prompt: its instructions.
        tools: what it can use: tools, functions, or objects that hold tools.
        model: ``"provider:model"`` or a `Model`; None = that of the agent that it works for.
        max_iterations: how often it may ask its model.

    Raises:
        ValueError: a value is of another kind, or out of range.
        ToolDefinitionError: two tools have one name, or something is not a tool.
    """

    name: str = field(validator=_name)
    description: str = field(validator=_description)
    system_prompt: str = field(validator=_text)
    tools: tuple[Any, ...] = field(default=(), converter=_tools)
    model: str | Model | None = field(default=None, validator=optional(model_or_name))
    max_iterations: int = field(default=10, validator=integer(1))

    @property
    def catalogue_line(self) -> str:
        """The line that the model reads of it."""
        return f"- {self.name}: {' '.join(self.description.split())}"


_PROMPT = """\
You are a subagent: you do one piece of work for another agent. You see nothing of its conversation, and it sees only \
your last message. Do all of the work that is described, with the tools that you have, without asking back. End with \
one message that has the whole result: what you found or did, with names, numbers and places, and what remains open."""


def general_purpose(tools: Any = (), *, model: str | Model | None = None, max_iterations: int = 20) -> SubAgentDef:
    """A subagent for any piece of work that would fill the context of the agent with what is not needed later.

    Args:
        tools: what it can use.
        model: see `SubAgentDef`.
        max_iterations: see `SubAgentDef`.
    """
    return SubAgentDef(
        name=GENERAL_PURPOSE,
        description=(
            "does any piece of work of several steps, such as a search whose many results only matter for its answer"
        ),
        system_prompt=_PROMPT,
        tools=tools,
        model=model,
        max_iterations=max_iterations,
    )
