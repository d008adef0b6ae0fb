"""A workflow as data: its steps, what each depends on, and what bounds them. It is recorded with every run.

Durations are seconds, as numbers, also in the JSON form; a `timedelta` is taken too. 0 is unlimited. They may be longer
than a date can say, also those on record: add one to a date with `bound_after` or `due_after`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Literal, TypeAlias, TypeVar

import cattrs
from attrs import Attribute, field, frozen

from locus.core import EMPTY
from locus.core.errors import CheckpointError, ConfigError

__all__ = [
    "AgentLoopConfig",
    "Dispatch",
    "Duration",
    "RetryPolicy",
    "StepDef",
    "StepType",
    "StepTypeAgentLoop",
    "StepTypeNormal",
    "WorkflowDef",
    "bound_after",
    "check_name",
    "due_after",
    "seconds_of",
]

#: The types of steps: one that iterates until its handler or a bound ends it, and one that is executed once.
StepType: TypeAlias = Literal["agent_loop", "normal"]
StepTypeAgentLoop: Final = "agent_loop"
StepTypeNormal: Final = "normal"

#: How often a step is dispatched: once for each iteration, or once for all of them.
Dispatch: TypeAlias = Literal["iteration", "run"]

#: Seconds, or a `timedelta`.
Duration: TypeAlias = float | timedelta

_MOST_NAME = 200

#: Seconds. A store may count time in nanoseconds of 64 bits, which are 292 years; a wait must not be longer.
_A_YEAR, _A_CENTURY = 365 * 86_400.0, 36_500 * 86_400.0


def _seconds(value: Any) -> Any:
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if type(value) is not int:
        return value
    try:
        return float(value)
    except OverflowError:  # it has hundreds of digits
        return math.copysign(math.inf, value > 0 or -1)


def seconds_of(name: str, duration: Any) -> float:
    """A duration in seconds.

    Raises:
        ConfigError: it cannot be one, such as a negative number or a text; the message begins with the name.
    """
    value = _seconds(duration)
    if type(value) is not float or not math.isfinite(value) or value < 0:
        shown = value if type(duration) is int else duration
        raise ConfigError(f"{name}: expected seconds, 0 or more, or a timedelta, got {shown!r}")
    return value


def due_after(moment: datetime, seconds: float) -> datetime:
    """When a wait is over that begins at a moment; one of more than a century is as good as one of a century."""
    return moment + timedelta(seconds=min(seconds, _A_CENTURY))


def bound_after(moment: datetime, seconds: float) -> datetime | None:
    """When a time is up that counts from a moment; None where no date can say it: then it is never up."""
    try:
        return moment + timedelta(seconds=seconds)
    except OverflowError:
        return None


def check_name(name: str, value: Any) -> None:
    """Insist on what can be the name of a workflow, a step or a handler.

    Args:
        name: what the message begins with.
        value: the name.

    Raises:
        ConfigError: it is not a text of 1 to 200 characters without ``/``.
    """
    is_name = isinstance(value, str) and 0 < len(value) <= _MOST_NAME and value.isprintable() and value == value.strip()
    if not is_name or "/" in value:
        raise ConfigError(f"{name}: expected a name of 1 to {_MOST_NAME} characters without '/', got {value!r:.80}")


def _is_duration(_: Any, attribute: Attribute[Any], value: Any) -> None:
    seconds_of(attribute.name, value)


def _is_count(_: Any, attribute: Attribute[Any], value: Any) -> None:
    if type(value) is not int or value < 1:
        raise ConfigError(f"{attribute.name}: expected an integer greater than 0, got {value!r}")


def _is_name(_: Any, attribute: Attribute[Any], value: Any) -> None:
    check_name(attribute.name, value)


def _duration() -> Any:
    return field(default=0.0, converter=_seconds, validator=_is_duration)


@frozen
class AgentLoopConfig:
    """The bounds of an agent loop; whichever is reached first ends it.

    Args:
        max_iterations: how many cycles at most; greater than 0.
        max_duration: seconds from the start of the first iteration; 0 = unlimited.
        loop_delay: seconds between the end of an iteration and the next dispatch.

    Raises:
        ConfigError: one of them is something else.
    """

    max_iterations: int = field(validator=_is_count)
    max_duration: float = _duration()
    loop_delay: float = _duration()


@frozen
class RetryPolicy:
    """What follows a failed attempt at an iteration: another attempt at it, with its checkpoint.

    Exceptions, ``fail`` and time-outs are failed attempts. `FailPermanent` and the bounds of a loop end the step.

    Args:
        max_attempts: how often an iteration is tried in all.
        initial: seconds before the second attempt.
        factor: by which the wait grows with each further one.
        cap: the longest wait, in seconds; 0 = unlimited.
        jitter: by which part of itself a wait is made longer at most, at random; 0 to 1.

    Raises:
        ConfigError: one of them is something else.
    """

    max_attempts: int = field(default=1, validator=_is_count)
    initial: float = field(default=1.0, converter=_seconds, validator=_is_duration)
    factor: float = field(default=2.0, converter=_seconds, validator=_is_duration)
    cap: float = field(default=60.0, converter=_seconds, validator=_is_duration)
    jitter: float = _duration()

    def __attrs_post_init__(self) -> None:
        if self.jitter > 1:
            raise ConfigError(f"jitter: expected a number from 0 to 1, got {self.jitter!r}")

    def delay(self, failed: int, luck: float = 0.0) -> float:
        """Seconds to wait after so many failed attempts.

        Args:
            failed: how many, from 1.
            luck: from 0 to 1; how much of the jitter is added.
        """
        try:
            wait = self.initial * self.factor ** (failed - 1)
        except OverflowError:
            wait = math.inf
        wait = min(wait, self.cap or math.inf, _A_YEAR)
        return wait * (1 + self.jitter * luck)


@frozen(kw_only=True)
class StepDef:
    """One step of a workflow.

    Args:
        name: unique in the workflow.
        type: `StepTypeAgentLoop` or `StepTypeNormal`.
        handler: the name by which workers know what runs it.
        depends_on: the steps that are completed before it begins.
        config: the bounds of an agent loop; None for another step.
        timeout: seconds that one iteration may take, not the loop; 0 = unlimited.
        retry: what follows a failed attempt.
        dispatch: whether each iteration of the loop is a dispatch of its own.

    Raises:
        ConfigError: one of them is something else.
    """

    name: str = field(validator=_is_name)
    type: StepType = StepTypeNormal
    handler: str = field(validator=_is_name)
    depends_on: tuple[str, ...] = field(default=(), converter=tuple[str, ...])
    config: AgentLoopConfig | None = None
    timeout: float = _duration()
    retry: RetryPolicy = field(factory=RetryPolicy)
    dispatch: Dispatch = "iteration"

    def to_json(self) -> dict[str, Any]:
        """The JSON form that is recorded."""
        form: dict[str, Any] = _CONVERTER.unstructure(self)
        return form

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> StepDef:
        """The step of which this is the JSON form.

        Raises:
            CheckpointError: it is not one, or was recorded by a newer version.
        """
        return _structure(cls, form)

    Name = property(lambda self: self.name)
    Type = property(lambda self: self.type)
    Config = property(lambda self: self.config)
    Timeout = property(lambda self: self.timeout)


@frozen(kw_only=True)
class WorkflowDef:
    """A workflow that was built: what `start` takes, and what each run of it records.

    Args:
        name: of the workflow.
        steps: in an order in which each comes behind what it depends on.
        version: of the definition, any text.
        local: handlers and agents that were given as such, by the name of the handler. They are not recorded: a worker
            is given the definition to know them.
    """

    name: str = field(validator=_is_name)
    steps: tuple[StepDef, ...] = field(converter=tuple[StepDef, ...])
    version: str = ""
    local: Mapping[str, Any] = field(default=EMPTY, eq=False, repr=False)

    def step(self, name: str) -> StepDef:
        """The step of that name.

        Raises:
            KeyError: the workflow has no such step.
        """
        return next((step for step in self.steps if step.name == name), None) or _no_step(self.name, name)

    @property
    def roots(self) -> tuple[StepDef, ...]:
        """The steps that depend on no other one."""
        return tuple(step for step in self.steps if not step.depends_on)

    def downstream(self, name: str) -> tuple[StepDef, ...]:
        """The steps that depend on a step."""
        return tuple(step for step in self.steps if name in step.depends_on)

    @property
    def sinks(self) -> tuple[StepDef, ...]:
        """The steps on which no other one depends: their outputs are that of the run."""
        needed = {name for step in self.steps for name in step.depends_on}
        return tuple(step for step in self.steps if step.name not in needed)

    def to_json(self) -> dict[str, Any]:
        """The JSON form that is recorded."""
        form: dict[str, Any] = _CONVERTER.unstructure(self)
        return form

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> WorkflowDef:
        """The definition of which this is the JSON form.

        Raises:
            CheckpointError: it is not one, or was recorded by a newer version.
        """
        return _structure(cls, form)


def _no_step(workflow: str, name: str) -> Any:
    raise KeyError(f"workflow {workflow!r} has no step {name!r}")


_Recorded = TypeVar("_Recorded", StepDef, WorkflowDef)


def _structure(cls: type[_Recorded], form: Mapping[str, Any]) -> _Recorded:
    try:
        return _CONVERTER.structure(form, cls)
    except Exception as e:
        text = "; ".join(cattrs.transform_error(e)) if isinstance(e, cattrs.BaseValidationError) else str(e)
        raise CheckpointError("workflow", f"the recorded definition cannot be read: {text}") from e


_CONVERTER = cattrs.Converter(forbid_extra_keys=True)
_CONVERTER.register_structure_hook(
    WorkflowDef,
    cattrs.gen.make_dict_structure_fn(
        WorkflowDef, _CONVERTER, _cattrs_forbid_extra_keys=True, local=cattrs.gen.override(omit=True)
    ),
)
_CONVERTER.register_unstructure_hook(
    WorkflowDef,
    cattrs.gen.make_dict_unstructure_fn(WorkflowDef, _CONVERTER, local=cattrs.gen.override(omit=True)),
)
