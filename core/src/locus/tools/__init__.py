"""Tools: functions that a model may call, and what becomes of their results."""

from typing import TYPE_CHECKING

from locus.core.lazy import exports

if TYPE_CHECKING:
    from locus.schema.canonical import call_key as call_key
    from locus.schema.checking import Problem as Problem
    from locus.tools.call_run import StepRun as StepRun
    from locus.tools.context import ToolContext as ToolContext
    from locus.tools.decorator import ToolOptions as ToolOptions
    from locus.tools.decorator import as_tool as as_tool
    from locus.tools.decorator import tool as tool
    from locus.tools.definition import ArgumentError as ArgumentError
    from locus.tools.definition import Bound as Bound
    from locus.tools.definition import Effect as Effect
    from locus.tools.definition import Idempotent as Idempotent
    from locus.tools.definition import Tool as Tool
    from locus.tools.definition import ToolExample as ToolExample
    from locus.tools.definition import ToolSpec as ToolSpec
    from locus.tools.dispatch import body_of as body_of
    from locus.tools.dispatch import prepare_body as prepare_body
    from locus.tools.registry import ToolRegistry as ToolRegistry
    from locus.tools.registry import tools_of as tools_of
    from locus.tools.result import error_text as error_text
    from locus.tools.result import result_content as result_content
    from locus.tools.result import result_text as result_text
    from locus.tools.step import StepContext as StepContext
    from locus.tools.step import StepEntry as StepEntry
    from locus.tools.step import ask_person as ask_person
    from locus.tools.step import call_in_thread as call_in_thread
    from locus.tools.step import enter_body as enter_body
    from locus.tools.step import enter_step as enter_step
    from locus.tools.step import find_failure as find_failure
    from locus.tools.step import find_question as find_question
    from locus.tools.step import run_together as run_together
    from locus.tools.step import time_limit as time_limit

_MODULES = {
    "locus.schema.canonical": ("call_key",),
    "locus.schema.checking": ("Problem",),
    "locus.tools.call_run": ("StepRun",),
    "locus.tools.context": ("ToolContext",),
    "locus.tools.decorator": ("ToolOptions", "as_tool", "tool"),
    "locus.tools.definition": ("ArgumentError", "Bound", "Effect", "Idempotent", "Tool", "ToolExample", "ToolSpec"),
    "locus.tools.dispatch": ("body_of", "prepare_body"),
    "locus.tools.registry": ("ToolRegistry", "tools_of"),
    "locus.tools.result": ("error_text", "result_content", "result_text"),
    "locus.tools.step": (
        "StepContext",
        "StepEntry",
        "ask_person",
        "call_in_thread",
        "enter_body",
        "enter_step",
        "find_failure",
        "find_question",
        "run_together",
        "time_limit",
    ),
}

__all__ = [name for names in _MODULES.values() for name in names]
__getattr__, __dir__ = exports(__name__, _MODULES)
