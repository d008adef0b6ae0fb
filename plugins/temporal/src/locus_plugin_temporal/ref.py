"""`EffectRef`: what the argument of an activity says; the conversation is not in it.

An argument stays in the history of the workflow for ever, and a conversation in each of them would make that grow with
the square of the run. So an activity gets names, and finds the rest in the memory of its worker, where the workflow
mostly is, or asks the workflow for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["LOCAL", "MODEL", "TOOL", "EffectRef"]

#: The names of the activities: a call of a model, the body of a tool, and a pure step of a plugin.
MODEL, TOOL, LOCAL = "locus.model", "locus.tool", "locus.step"


@dataclass(frozen=True, kw_only=True)
class EffectRef:
    """Which effect of which run.

    Args:
        agent: the name of the agent.
        key: the effect among those of the workflow.
        step: the id of the step.
        policy: how often it may happen.
        digest: of what is asked.
        name: of the tool, or of the model.
        arguments: of the tool's call, in JSON, for people who read the history.
        deadline: when the run must end, as a POSIX time, or None.
    """

    agent: str
    key: str
    step: str
    policy: str
    digest: str
    name: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    deadline: float | None = None
