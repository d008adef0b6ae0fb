"""Locus: a plugin-based framework for LLM agents.

One loop, Think -> Execute -> Reflect -> Terminate, over an immutable state, with a pure router and a termination
algebra. Everything with an effect is a plugin.
"""

from typing import TYPE_CHECKING

from locus.core.lazy import exports, find_missing

if TYPE_CHECKING:
    from locus.agent import Agent
    from locus.core.directives import (
        Accept,
        Allow,
        Cancel,
        Continue,
        Decision,
        Directive,
        Interrupt,
        Reject,
        Retry,
        Revise,
        Verdict,
    )
    from locus.core.errors import (
        ConfigError,
        LocusError,
        ModelError,
        RetryableToolError,
        ToolError,
    )
    from locus.core.events import (
        CheckpointEvent,
        Event,
        HookFailedEvent,
        InterruptEvent,
        IterationEvent,
        ModelChunkEvent,
        ModelCompleteEvent,
        ModelErrorEvent,
        ModelRestartEvent,
        ReflectEvent,
        RunStartEvent,
        TerminateEvent,
        ThinkEvent,
        ToolCacheHitEvent,
        ToolCompleteEvent,
        ToolProgressEvent,
        ToolStartEvent,
    )
    from locus.core.messages import Message, Role, ToolCall, Usage
    from locus.core.state import AgentState
    from locus.core.termination import (
        ConfidenceMet,
        CostLimit,
        CustomCondition,
        Deadline,
        MaxIterations,
        NoProgress,
        NoToolCalls,
        TextMention,
        TimeLimit,
        TokenLimit,
        ToolCalled,
    )
    from locus.hooks.hook import Hook
    from locus.journal.memory import MemoryStore
    from locus.loop.budget import Budget, NoHaltWarning
    from locus.models.protocol import Model, ModelRequest, ModelResponse, ModelSettings
    from locus.plugins.secret import Secret
    from locus.result import AgentResult
    from locus.run import Run
    from locus.tools.context import ToolContext
    from locus.tools.decorator import tool

__version__ = "0.1.0"

__all__ = [
    "Accept",
    "Agent",
    "AgentResult",
    "AgentState",
    "Allow",
    "Budget",
    "Cancel",
    "CheckpointEvent",
    "ConfidenceMet",
    "ConfigError",
    "Continue",
    "CostLimit",
    "CustomCondition",
    "Deadline",
    "Decision",
    "Directive",
    "Event",
    "Hook",
    "HookFailedEvent",
    "Interrupt",
    "InterruptEvent",
    "IterationEvent",
    "LocusError",
    "MaxIterations",
    "MemoryStore",
    "Message",
    "Model",
    "ModelChunkEvent",
    "ModelCompleteEvent",
    "ModelError",
    "ModelErrorEvent",
    "ModelRequest",
    "ModelResponse",
    "ModelRestartEvent",
    "ModelSettings",
    "NoHaltWarning",
    "NoProgress",
    "NoToolCalls",
    "ReflectEvent",
    "Reject",
    "Retry",
    "RetryableToolError",
    "Revise",
    "Role",
    "Run",
    "RunStartEvent",
    "Secret",
    "TerminateEvent",
    "TextMention",
    "ThinkEvent",
    "TimeLimit",
    "TokenLimit",
    "ToolCacheHitEvent",
    "ToolCall",
    "ToolCalled",
    "ToolCompleteEvent",
    "ToolContext",
    "ToolError",
    "ToolProgressEvent",
    "ToolStartEvent",
    "Usage",
    "Verdict",
    "tool",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "Accept": "locus.core.directives",
        "Agent": "locus.agent",
        "AgentResult": "locus.result",
        "AgentState": "locus.core.state",
        "Allow": "locus.core.directives",
        "Budget": "locus.loop.budget",
        "Cancel": "locus.core.directives",
        "CheckpointEvent": "locus.core.events",
        "ConfidenceMet": "locus.core.termination",
        "ConfigError": "locus.core.errors",
        "Continue": "locus.core.directives",
        "CostLimit": "locus.core.termination",
        "CustomCondition": "locus.core.termination",
        "Deadline": "locus.core.termination",
        "Decision": "locus.core.directives",
        "Directive": "locus.core.directives",
        "Event": "locus.core.events",
        "Hook": "locus.hooks.hook",
        "HookFailedEvent": "locus.core.events",
        "Interrupt": "locus.core.directives",
        "InterruptEvent": "locus.core.events",
        "IterationEvent": "locus.core.events",
        "LocusError": "locus.core.errors",
        "MaxIterations": "locus.core.termination",
        "MemoryStore": "locus.journal.memory",
        "Message": "locus.core.messages",
        "Model": "locus.models.protocol",
        "ModelChunkEvent": "locus.core.events",
        "ModelCompleteEvent": "locus.core.events",
        "ModelError": "locus.core.errors",
        "ModelErrorEvent": "locus.core.events",
        "ModelRequest": "locus.models.protocol",
        "ModelResponse": "locus.models.protocol",
        "ModelRestartEvent": "locus.core.events",
        "ModelSettings": "locus.models.protocol",
        "NoHaltWarning": "locus.loop.budget",
        "NoProgress": "locus.core.termination",
        "NoToolCalls": "locus.core.termination",
        "ReflectEvent": "locus.core.events",
        "Reject": "locus.core.directives",
        "Retry": "locus.core.directives",
        "RetryableToolError": "locus.core.errors",
        "Revise": "locus.core.directives",
        "Role": "locus.core.messages",
        "Run": "locus.run",
        "RunStartEvent": "locus.core.events",
        "Secret": "locus.plugins.secret",
        "TerminateEvent": "locus.core.events",
        "TextMention": "locus.core.termination",
        "ThinkEvent": "locus.core.events",
        "TimeLimit": "locus.core.termination",
        "TokenLimit": "locus.core.termination",
        "ToolCacheHitEvent": "locus.core.events",
        "ToolCall": "locus.core.messages",
        "ToolCalled": "locus.core.termination",
        "ToolCompleteEvent": "locus.core.events",
        "ToolContext": "locus.tools.context",
        "ToolError": "locus.core.errors",
        "ToolProgressEvent": "locus.core.events",
        "ToolStartEvent": "locus.core.events",
        "Usage": "locus.core.messages",
        "Verdict": "locus.core.directives",
        "tool": "locus.tools.decorator",
    },
)

# A module that the kernel does not have may be offered by an installed plugin.
find_missing(__name__, "locus.plugins.compat_paths")
