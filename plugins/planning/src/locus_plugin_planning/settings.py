"""The settings of the plugin: the table ``[plugins.planning]``."""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen
from attrs.validators import in_, instance_of

from locus.models import Model
from locus_kit.validators import integer, model_or_name, optional, seconds

__all__ = ["Answer", "PlanningSettings"]

#: Who writes the final answer: the model, which sees all results, or the plan's own template.
Answer = Literal["model", "template"]


@frozen(kw_only=True)
class PlanningSettings:
    """Who plans, who decides in the course of a plan, and how far it may go.

    Args:
        planner: the model that plans, ``"provider:model"`` or a `Model`; None = the agent's own model.
        executor: the model that is asked where a step needs judgement; None = the agent's own model.
        answer: ``"model"``: the agent's model answers, and sees all results; ``"template"``: the plan says how the
            answer is made of the results, and no model is asked.
        max_steps: of one plan, up to 100.
        max_replans: how often a run may replan, after a failed step or at a decision point. After that, and
            where planning fails, the run continues without a plan.
        max_tokens: of one answer of the planner or the executor; None = the provider's default.
        timeout: seconds after which one of them is no longer waited for; None = as long as the run may take.
        max_chars: how many characters of each text (a result, a request) they are shown; of a longer one the
            beginning and the end.
        window: how many messages before the request the planner is shown.
        locked: only calls that are a next step of the plan run, in child runs too. The plan is made from the user's
            words alone, before anything was read: it leaves nothing open, and is never revised.

    Raises:
        ValueError: a number is out of range.
    """

    planner: str | Model | None = field(default=None, validator=optional(model_or_name))
    executor: str | Model | None = field(default=None, validator=optional(model_or_name))
    answer: Answer = field(default="model", validator=in_(("model", "template")))
    max_steps: int = field(default=30, validator=integer(1, 100))
    max_replans: int = field(default=2, validator=integer(0, 98))
    max_tokens: int | None = field(default=None, validator=optional(integer(1)))
    timeout: float | None = field(default=60.0, validator=optional(seconds))
    max_chars: int = field(default=4_000, validator=integer(100))
    window: int = field(default=6, validator=integer(0))
    locked: bool = field(default=False, validator=instance_of(bool))
