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
        "locus.agent": ("Agent",),
        "locus.core.directives": (
            "Accept",
            "Allow",
            "Cancel",
            "Continue",
            "Decision",
            "Directive",
            "Interrupt",
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
            "ToolCalled",
        ),
        "locus.hooks.hook": ("Hook",),
        "locus.journal.memory": ("MemoryStore",),
        "locus.loop.budget": ("Budget", "NoHaltWarning"),
        "locus.models.protocol": ("Model", "ModelRequest", "ModelResponse", "ModelSettings"),
        "locus.plugins.secret": ("Secret",),
        "locus.result": ("AgentResult",),
        "locus.run": ("Run",),
        "locus.tools.context": ("ToolContext",),
        "locus.tools.decorator": ("tool",),
    },
)

# A module that the kernel does not have may be offered by an installed plugin.
find_missing(__name__, "locus.plugins.compat_paths")
