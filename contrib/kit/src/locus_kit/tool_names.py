"""Names of tools in settings: a misspelled one is an error, not a guard that guards nothing.

A setting may name tools of child runs as well. Those are known where a tool says which tools its children have; for
others, and for tools that are only sometimes there, a pattern is written, which may fit nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from locus.core.errors import UnknownName

if TYPE_CHECKING:
    from locus.tools import Tool, ToolRegistry

__all__ = ["add_child_tools", "check_tool_names", "find_child_tools", "make_optional"]

_CHILD_TOOLS: Final = "_child_tools"
#: What makes a name a pattern of `fnmatch`.
_WILD: Final = frozenset("*?[")


def add_child_tools(tool: Tool[..., Any], names: Iterable[str]) -> None:
    """Say which tools the child runs have that a tool starts."""
    object.__setattr__(tool, _CHILD_TOOLS, frozenset(names))


def find_child_tools(tools: Iterable[Tool[..., Any]]) -> frozenset[str]:
    """The names of the tools that the child runs of some tools have, as far as the tools say."""
    return frozenset().union(*(getattr(tool, _CHILD_TOOLS, ()) for tool in tools))


def make_optional(name: str) -> str:
    """A pattern that fits the tool of a name and no other, and that may fit none."""
    return f"{name[:-1]}[{name[-1]}]" if name and _WILD.isdisjoint(name) else name


def check_tool_names(names: Iterable[str] | None, tools: ToolRegistry, setting: str, *, patterns: bool = True) -> None:
    """Insist that each name is that of a tool, of an agent or of its child runs; a pattern may fit none.

    Args:
        names: of tools, or patterns of them; None = none.
        tools: the tools of the agent.
        setting: where the names are written, such as ``"approval.tools"``.
        patterns: whether the setting takes patterns.

    Raises:
        UnknownName: one is missing; the message has the nearest name.
    """
    missing = [name for name in names or () if name not in tools and not (patterns and _WILD & set(name))]
    if not missing:
        return
    known = {*tools.names, *find_child_tools(tools)}
    for name in missing:
        if name not in known:
            hint = f"(a pattern such as {name + '*'!r} may fit no tool)" if patterns else ""
            raise UnknownName(f"tool in {setting}", name, known, hint)
