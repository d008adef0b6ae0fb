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
    from locus.tools.schematool import SchemaTool, schema_tool
    from locus.tools.spec import Effect, ToolExample, ToolSpec

__all__ = [
    "ArgumentError",
    "Bound",
    "Effect",
    "Idempotent",
    "Problem",
    "SchemaTool",
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
    "schema_tool",
    "tool",
    "tools_of",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "ArgumentError": "locus.tools.definition",
        "Bound": "locus.tools.definition",
        "Effect": "locus.tools.spec",
        "Idempotent": "locus.tools.definition",
        "Problem": "locus.schema.checking",
        "SchemaTool": "locus.tools.schematool",
        "Tool": "locus.tools.definition",
        "ToolContext": "locus.tools.context",
        "ToolExample": "locus.tools.spec",
        "ToolOptions": "locus.tools.decorator",
        "ToolRegistry": "locus.tools.registry",
        "ToolSpec": "locus.tools.spec",
        "as_tool": "locus.tools.decorator",
        "call_key": "locus.schema.canonical",
        "error_text": "locus.tools.result",
        "result_content": "locus.tools.result",
        "result_text": "locus.tools.result",
        "schema_tool": "locus.tools.schematool",
        "tool": "locus.tools.decorator",
        "tools_of": "locus.tools.registry",
    },
)
