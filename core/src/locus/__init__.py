"""Locus: a plugin-based framework for LLM agents.

One loop, Think -> Execute -> Reflect -> Terminate, over an immutable state, with a pure router and a termination
algebra. Everything with an effect is a plugin.
"""

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
from locus.core.messages import Message, Role, Usage
from locus.core.state import AgentState
from locus.hooks.hook import Hook
from locus.limits import Budget
from locus.models.protocol import Model, ModelRequest, ModelResponse, ModelSettings
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
    "ConfigError",
    "Continue",
    "Decision",
    "Directive",
    "Event",
    "Hook",
    "HookFailedEvent",
    "Interrupt",
    "InterruptEvent",
    "IterationEvent",
    "LocusError",
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
    "ReflectEvent",
    "Reject",
    "Retry",
    "RetryableToolError",
    "Revise",
    "Role",
    "Run",
    "RunStartEvent",
    "TerminateEvent",
    "ThinkEvent",
    "ToolCacheHitEvent",
    "ToolCompleteEvent",
    "ToolContext",
    "ToolError",
    "ToolProgressEvent",
    "ToolStartEvent",
    "Usage",
    "Verdict",
    "tool",
]
