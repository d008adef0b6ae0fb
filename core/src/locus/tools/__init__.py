"""Tools: functions that a model may call, and what becomes of their results."""

from locus.tools.context import ToolContext
from locus.tools.decorator import ToolOptions, as_tool, tool
from locus.tools.loading import load_tools
from locus.tools.problems import Problem
from locus.tools.registry import ToolRegistry
from locus.tools.result import error_text, result_content, result_text
from locus.tools.spec import Effect, ToolExample, ToolSpec
from locus.tools.tool import ArgumentError, Bound, Idempotent, Tool, call_key

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
    "load_tools",
    "result_content",
    "result_text",
    "tool",
]
