"""Tools: functions that a model may call, and what becomes of their results."""

from typing import TYPE_CHECKING

from locus.core.lazy import exports

if TYPE_CHECKING:
    from locus.schema.canonical import call_key
    from locus.schema.checking import Problem
    from locus.tools.context import ToolContext
    from locus.tools.decorator import ToolOptions, as_tool, tool
    from locus.tools.definition import ArgumentError, Bound, Idempotent, Tool
    from locus.tools.registry import ToolRegistry, tools_of
    from locus.tools.result import error_text, result_content, result_text
    from locus.tools.spec import Effect, ToolExample, ToolSpec

__all__ = [
    "ArgumentError",
    "Bound",
    "Effect",
    "Idempotent",
    "Problem",
    "Tool",
    "ToolContext",
    "ToolExample",
    "ToolOptions",
    "ToolRegistry",
    "ToolSpec",
    "as_tool",
    "call_key",
    "error_text",
    "result_content",
    "result_text",
    "tool",
    "tools_of",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "locus.schema.canonical": ("call_key",),
        "locus.schema.checking": ("Problem",),
        "locus.tools.context": ("ToolContext",),
        "locus.tools.decorator": ("ToolOptions", "as_tool", "tool"),
        "locus.tools.definition": ("ArgumentError", "Bound", "Idempotent", "Tool"),
        "locus.tools.registry": ("ToolRegistry", "tools_of"),
        "locus.tools.result": ("error_text", "result_content", "result_text"),
        "locus.tools.spec": ("Effect", "ToolExample", "ToolSpec"),
    },
)
