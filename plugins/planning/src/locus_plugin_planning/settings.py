"""The settings of the plugin: the table ``[plugins.planning]``."""

from __future__ import annotations

from typing import Any, Literal

from attrs import Attribute, field, frozen
from attrs.validators import in_, optional

from locus.models import Model

__all__ = ["Answer", "PlanningSettings"]

#: Who writes the final answer: the model, which sees all results, or the plan's own template.
Answer = Literal["model", "template"]


def _whole(least: int, most: int | None = None) -> Any:
    told = f"{least} or more" if most is None else f"from {least} to {most}"

    def check(_: object, attribute: Attribute[Any], value: Any) -> None:
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or value < least or (most is not None and value > most):
            raise ValueError(f"{attribute.name} is {value!r}; it is an integer, {told}")

    return check


def _positive(_: object, attribute: Attribute[Any], value: Any) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value > 0):
        raise ValueError(f"{attribute.name} is {value!r}; it is a number of seconds, more than 0")


def _model(_: object, attribute: Attribute[Any], value: object) -> None:
    if value is not None and not isinstance(value, str | Model):
        raise ValueError(f"{attribute.name} is {value!r:.80}; it is 'provider:model', or an object that is a Model")


@frozen(kw_only=True)
class PlanningSettings:
    """Who plans, who decides in the course of a plan, and how far it may go.

    Args:
        planner: the model that plans, ``"provider:model"`` or a `Model`; None = the agent's own model.
        executor: the model that is asked where a step needs judgement; None = the agent's own model.
        answer: ``"model"``: the agent's model answers, and sees all results; ``"template"``: the plan says how the
            answer is made of the results, and no model is asked.
        max_steps: of one plan, up to 100.
        max_replans: how often a run may plan anew, after a failed step or at a decision point. After that, and
            where planning fails, the run goes on without a plan.
        max_tokens: of one answer of the planner or the executor; None = the provider's default.
        timeout: seconds after which one of them is no longer waited for; None = as long as the run may take.
        max_chars: how many characters of each text (a result, a request) they are shown; of a longer one the
            beginning and the end.
        window: how many messages before the request the planner is shown.

    Raises:
        ValueError: a number is out of range.
    """

    planner: str | Model | None = field(default=None, validator=_model)
    executor: str | Model | None = field(default=None, validator=_model)
    answer: Answer = field(default="model", validator=in_(("model", "template")))
    max_steps: int = field(default=30, validator=_whole(1, 100))
    max_replans: int = field(default=2, validator=_whole(0, 98))
    max_tokens: int | None = field(default=None, validator=optional(_whole(1)))
    timeout: float | None = field(default=60.0, validator=_positive)
    max_chars: int = field(default=4_000, validator=_whole(100))
    window: int = field(default=6, validator=_whole(0))
