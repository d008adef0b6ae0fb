"""Locus: a plugin-based framework for LLM agents.

One loop, Think -> Execute -> Reflect -> Terminate, over an immutable state, with a pure router and a termination
algebra. Everything with an effect is a plugin.
"""

from typing import TYPE_CHECKING

from locus.core.lazy import exports, find_missing

if TYPE_CHECKING:
    from locus.agent import Agent as Agent
    from locus.core.directives import Accept as Accept
    from locus.core.directives import Allow as Allow
    from locus.core.directives import Cancel as Cancel
    from locus.core.directives import Continue as Continue
    from locus.core.directives import Decision as Decision
    from locus.core.directives import Directive as Directive
    from locus.core.directives import Interrupt as Interrupt
    from locus.core.directives import Option as Option
    from locus.core.directives import Reject as Reject
    from locus.core.directives import Retry as Retry
    from locus.core.directives import Revise as Revise
    from locus.core.directives import Verdict as Verdict
    from locus.core.errors import ConfigError as ConfigError
    from locus.core.errors import LocusError as LocusError
    from locus.core.errors import ModelError as ModelError
    from locus.core.errors import RetryableToolError as RetryableToolError
    from locus.core.errors import ToolError as ToolError
    from locus.core.events import CheckpointEvent as CheckpointEvent
    from locus.core.events import Event as Event
    from locus.core.events import HookFailedEvent as HookFailedEvent
    from locus.core.events import InterruptEvent as InterruptEvent
    from locus.core.events import IterationEvent as IterationEvent
    from locus.core.events import ModelChunkEvent as ModelChunkEvent
    from locus.core.events import ModelCompleteEvent as ModelCompleteEvent
    from locus.core.events import ModelErrorEvent as ModelErrorEvent
    from locus.core.events import ModelRestartEvent as ModelRestartEvent
    from locus.core.events import ReflectEvent as ReflectEvent
    from locus.core.events import RunStartEvent as RunStartEvent
    from locus.core.events import TerminateEvent as TerminateEvent
    from locus.core.events import ThinkEvent as ThinkEvent
    from locus.core.events import ToolCacheHitEvent as ToolCacheHitEvent
    from locus.core.events import ToolCompleteEvent as ToolCompleteEvent
    from locus.core.events import ToolProgressEvent as ToolProgressEvent
    from locus.core.events import ToolStartEvent as ToolStartEvent
    from locus.core.messages import Message as Message
    from locus.core.messages import Role as Role
    from locus.core.messages import ToolCall as ToolCall
    from locus.core.messages import Usage as Usage
    from locus.core.state import AgentState as AgentState
    from locus.core.termination import ConfidenceMet as ConfidenceMet
    from locus.core.termination import CostLimit as CostLimit
    from locus.core.termination import CustomCondition as CustomCondition
    from locus.core.termination import Deadline as Deadline
    from locus.core.termination import MaxIterations as MaxIterations
    from locus.core.termination import NoProgress as NoProgress
    from locus.core.termination import NoToolCalls as NoToolCalls
    from locus.core.termination import TextMention as TextMention
    from locus.core.termination import TimeLimit as TimeLimit
    from locus.core.termination import TokenLimit as TokenLimit
    from locus.core.termination import ToolCalled as ToolCalled
    from locus.core.termination import ToolCallLimit as ToolCallLimit
    from locus.hooks.hook import Hook as Hook
    from locus.journal.memory import MemoryStore as MemoryStore
    from locus.loop.budget import NoHaltWarning as NoHaltWarning
    from locus.models.protocol import Model as Model
    from locus.models.protocol import ModelRequest as ModelRequest
    from locus.models.protocol import ModelResponse as ModelResponse
    from locus.models.protocol import ModelSettings as ModelSettings
    from locus.plugins.secret import Secret as Secret
    from locus.result import AgentResult as AgentResult
    from locus.run import Run as Run
    from locus.tools.account import Budget as Budget
    from locus.tools.context import ToolContext as ToolContext
    from locus.tools.decorator import tool as tool

__version__ = "0.1.0"

_MODULES = {
    "locus.agent": ("Agent",),
    "locus.core.directives": (
        "Accept",
        "Allow",
        "Cancel",
        "Continue",
        "Decision",
        "Directive",
        "Interrupt",
        "Option",
        "Reject",
        "Retry",
        "Revise",
        "Verdict",
    ),
    "locus.core.errors": ("ConfigError", "LocusError", "ModelError", "RetryableToolError", "ToolError"),
    "locus.core.events": (
        "CheckpointEvent",
        "Event",
        "HookFailedEvent",
        "InterruptEvent",
        "IterationEvent",
        "ModelChunkEvent",
        "ModelCompleteEvent",
        "ModelErrorEvent",
        "ModelRestartEvent",
        "ReflectEvent",
        "RunStartEvent",
        "TerminateEvent",
        "ThinkEvent",
        "ToolCacheHitEvent",
        "ToolCompleteEvent",
        "ToolProgressEvent",
        "ToolStartEvent",
    ),
    "locus.core.messages": ("Message", "Role", "ToolCall", "Usage"),
    "locus.core.state": ("AgentState",),
    "locus.core.termination": (
        "ConfidenceMet",
        "CostLimit",
        "CustomCondition",
        "Deadline",
        "MaxIterations",
        "NoProgress",
        "NoToolCalls",
        "TextMention",
        "TimeLimit",
        "TokenLimit",
        "ToolCallLimit",
        "ToolCalled",
    ),
    "locus.hooks.hook": ("Hook",),
    "locus.journal.memory": ("MemoryStore",),
    "locus.loop.budget": ("NoHaltWarning",),
    "locus.models.protocol": ("Model", "ModelRequest", "ModelResponse", "ModelSettings"),
    "locus.plugins.secret": ("Secret",),
    "locus.result": ("AgentResult",),
    "locus.run": ("Run",),
    "locus.tools.account": ("Budget",),
    "locus.tools.context": ("ToolContext",),
    "locus.tools.decorator": ("tool",),
}

__all__ = [name for names in _MODULES.values() for name in names]
__getattr__, __dir__ = exports(__name__, _MODULES)

# A module that the kernel does not have may be offered by an installed plugin.
find_missing(__name__, "locus.plugins.compat_paths")
