"""The events that signals become, one class a signal: its fields are the signal's payload.

A payload is checked when the event is made. All of its fields are needed, and no others are known, so a name that is
misspelled where a signal is sent shows as a `SignalRefusedEvent`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from attrs import Attribute, field, frozen

from locus.plugin import Event, register_event
from locus_kit.validators import integer, number

__all__ = [
    "DeepagentFsReadEvent",
    "DeepagentFsWriteEvent",
    "DeepagentSubagentCompletedEvent",
    "DeepagentSubagentSpawnedEvent",
    "DeepagentTodoAddedEvent",
    "DeepagentTodoCompletedEvent",
    "ResearchCausalBuiltEvent",
    "ResearchExecuteCompletedEvent",
    "ResearchExecuteStartedEvent",
    "ResearchGroundingEvaluatedEvent",
    "ResearchRegenerateCompletedEvent",
    "ResearchRegenerateStartedEvent",
    "ResearchReplanEvent",
    "ResearchSummarizeCompletedEvent",
    "SignalRefusedEvent",
]

#: How many characters of a prompt, a hypothesis and a subagent's task an event shows.
PROMPT_CHARS, HYPOTHESIS_CHARS, DESCRIPTION_CHARS = 120, 120, 200


def _is_text(_: object, attribute: Attribute[Any], value: object) -> None:
    if not isinstance(value, str):
        raise ValueError(f"{attribute.name} must be a str, got {value!r:.80}")


def _is_bool(_: object, attribute: Attribute[Any], value: object) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{attribute.name} must be a bool, got {value!r:.80}")


def _beginning(length: int) -> Callable[[Any], Any]:
    return lambda value: value[:length] if isinstance(value, str) else value


def _count_bytes(value: Any) -> Any:
    if isinstance(value, str):
        return len(value.encode("utf-8", "surrogatepass"))
    return len(value) if isinstance(value, bytes | bytearray) else value


def _text() -> Any:
    return field(validator=_is_text)


def _preview(length: int) -> Any:
    return field(converter=_beginning(length), validator=_is_text)


def _count() -> Any:
    return field(validator=integer(0))


def _flag() -> Any:
    return field(validator=_is_bool)


# -- research ----------------------------------------------------------------------------------------


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class ResearchExecuteStartedEvent(Event):
    """The research agent begins.

    Args:
        prompt_preview: the first 120 characters of what it is asked.
        replan: how often the work was planned anew before.
    """

    prompt_preview: str = _preview(PROMPT_CHARS)
    replan: int = _count()


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class ResearchExecuteCompletedEvent(Event):
    """The research agent has ended.

    Args:
        fact_count: how many facts there are now.
    """

    fact_count: int = _count()


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class ResearchCausalBuiltEvent(Event):
    """A causal chain was made of the evidence.

    Args:
        node_count: how many nodes it has.
        hypothesis_preview: the first 120 characters of the hypothesis.
        confidence: in the hypothesis.
    """

    node_count: int = _count()
    hypothesis_preview: str = _preview(HYPOTHESIS_CHARS)
    confidence: float = field(validator=number())


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class ResearchSummarizeCompletedEvent(Event):
    """The evidence was summarized.

    Args:
        summary_length: characters of the summary.
        has_structured_output: whether there is an answer of the output schema's type as well.
    """

    summary_length: int = _count()
    has_structured_output: bool = _flag()


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class ResearchGroundingEvaluatedEvent(Event):
    """The claims of the summary were held against the evidence.

    Args:
        score: of all claims together.
        claims_evaluated: how many claims there are.
        ungrounded_count: how many of them the evidence does not support.
        requires_replan: whether the evaluation asks for more evidence.
    """

    score: float = field(validator=number())
    claims_evaluated: int = _count()
    ungrounded_count: int = _count()
    requires_replan: bool = _flag()


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class ResearchRegenerateStartedEvent(Event):
    """The summary is about to be written again.

    Args:
        ungrounded_count: how many claims the evidence does not support.
    """

    ungrounded_count: int = _count()


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class ResearchRegenerateCompletedEvent(Event):
    """The summary was written again.

    Args:
        regeneration: how often that was done by now.
    """

    regeneration: int = _count()


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class ResearchReplanEvent(Event):
    """The work is planned anew.

    Args:
        replan: how often that was done by now, this time included.
        ungrounded_count: how many claims the evidence does not support.
        prompt_preview: the first 120 characters of the new prompt.
    """

    replan: int = _count()
    ungrounded_count: int = _count()
    prompt_preview: str = _preview(PROMPT_CHARS)


# -- deep agents -------------------------------------------------------------------------------------


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class DeepagentSubagentSpawnedEvent(Event):
    """A subagent is about to run.

    Args:
        subagent_type: its name.
        description_preview: the first 200 characters of its task.
        max_iterations: how often it may ask its model.
    """

    shown: ClassVar[str] = ""

    subagent_type: str = _text()
    description_preview: str = _preview(DESCRIPTION_CHARS)
    max_iterations: int = _count()


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class DeepagentSubagentCompletedEvent(Event):
    """A subagent has ended.

    Args:
        subagent_type: its name.
        output_length: characters of its answer.
        duration_ms: how long it took, in milliseconds.
        success: whether there is an answer.
    """

    shown: ClassVar[str] = ""

    subagent_type: str = _text()
    output_length: int = _count()
    duration_ms: float = field(validator=number(0))
    success: bool = _flag()


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class DeepagentTodoAddedEvent(Event):
    """A todo is on the list that was not there before.

    Args:
        content: what is to be done.
        status: how far it is.
    """

    shown: ClassVar[str] = ""

    content: str = _text()
    status: str = _text()


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class DeepagentTodoCompletedEvent(Event):
    """A todo is done.

    Args:
        content: what was to be done.
        status: ``"completed"``.
    """

    shown: ClassVar[str] = ""

    content: str = _text()
    status: str = _text()


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class DeepagentFsWriteEvent(Event):
    """A file was written.

    Args:
        path: of the file.
        byte_count: of what was written, in bytes. A text, or bytes, that is given in its place is counted, in UTF-8.
    """

    shown: ClassVar[str] = ""

    path: str = _text()
    byte_count: int = field(converter=_count_bytes, validator=integer(0))


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class DeepagentFsReadEvent(Event):
    """A file was read.

    Args:
        path: of the file.
        byte_count: of what was read, see `DeepagentFsWriteEvent`.
    """

    shown: ClassVar[str] = ""

    path: str = _text()
    byte_count: int = field(converter=_count_bytes, validator=integer(0))


# -- what cannot be sent -----------------------------------------------------------------------------


@register_event
@frozen(kw_only=True, eq=False, repr=False)
class SignalRefusedEvent(Event):
    """A signal was not sent, because it has another payload, or does not exist.

    Args:
        signal: its name.
        problem: what is wrong with it.
    """

    signal: str = ""
    problem: str = ""
