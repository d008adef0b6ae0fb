"""Review: what comes into a run and what goes out of it. Isolated, unless a guard fails: that cancels the run.

A verdict is a recorded step, so it has a form of plain data: a replay need not ask again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve

from locus.core.directives import Accept, Allow, Cancel, Continue, Interrupt, Reject, Retry, Revise
from locus.core.errors import CheckpointError
from locus.core.messages import Message
from locus.hooks.dispatch import call_hook, is_failure, refuse_result

if TYPE_CHECKING:
    from locus.core.messages import ToolCall
    from locus.core.state import AgentState
    from locus.hooks.context import RunContext
    from locus.hooks.health import HookHealth
    from locus.hooks.table import Impl

__all__ = ["Answer", "Step", "filter_input", "filter_progress", "from_data", "review", "to_data"]

#: Runs an effect that returns JSON data under a name, and records the result.
Step = Callable[[str, Callable[[], Awaitable[dict[str, Any]]]], Awaitable[Any]]

_ACCEPT = Accept()


async def review(
    impls: tuple[Impl, ...],
    answer: Message,
    state: AgentState,
    run: RunContext,
    health: HookHealth,
    step: Step | None = None,
) -> Accept | Revise | Cancel:
    """Does this answer stand? Everybody is asked in order, until somebody cancels.

    Args:
        impls: ``table.impls("locus_review_answer")``.
        answer: the model's answer: text, no tool calls.
        state: the state with the answer in it.
        run: what the hooks see of the run.
        health: the run's failures.
        step: records each verdict, under ``"review/<plugin>/<n>"``; None asks without recording.

    Returns:
        `Revise` with the feedback of all who want a revision, a blank line between them.
    """
    feedback: list[str] = []
    for n, impl in enumerate(impls):
        if impl in health.quarantined:
            continue
        verdict = await _recorded(step, n, impl, answer, state, run, health)
        if isinstance(verdict, Cancel):
            return verdict
        if isinstance(verdict, Revise) and verdict.feedback not in feedback:
            feedback.append(verdict.feedback)
    return Revise("\n\n".join(feedback)) if feedback else _ACCEPT


async def _recorded(
    step: Step | None,
    n: int,
    impl: Impl,
    answer: Message,
    state: AgentState,
    run: RunContext,
    health: HookHealth,
) -> object:
    async def data() -> dict[str, Any]:
        return to_data(await _verdict(impl, answer, state, run, health))

    if step is None:
        return await _verdict(impl, answer, state, run, health)
    return from_data(await step(f"review/{impl.plugin}/{n}", data))


async def _verdict(
    impl: Impl, answer: Message, state: AgentState, run: RunContext, health: HookHealth
) -> Accept | Revise | Cancel:
    try:
        verdict = await call_hook(impl, answer, state, run)
        if verdict is None:
            return _ACCEPT
        if type(verdict) not in (Accept, Revise, Cancel):
            refuse_result(verdict, "Accept(), Revise(feedback), Cancel(reason), or None to accept")
        if type(verdict) is Revise and (not isinstance(verdict.feedback, str) or not verdict.feedback.strip()):
            refuse_result(verdict, "Revise with feedback that tells the model what to change")
    except BaseException as e:
        if not is_failure(e):
            raise
        return await _failed(impl, e, health) or _ACCEPT
    given: Accept | Revise | Cancel = verdict
    return given


async def filter_input(
    impls: tuple[Impl, ...], prompt: Message, run: RunContext, health: HookHealth
) -> Message | Cancel:
    """The user's turn as it is to enter the conversation; each implementation gets what the one before made of it.

    Args:
        impls: ``table.impls("locus_filter_input")``.
        prompt: the user's turn.
        run: what the hooks see of the run.
        health: the run's failures.
    """
    for impl in impls:
        if impl in health.quarantined:
            continue
        try:
            answer = await call_hook(impl, prompt, run)
            if type(answer) is Cancel:
                return answer
            prompt = _turn(answer, prompt)
        except BaseException as e:
            if not is_failure(e):
                raise
            refused = await _failed(impl, e, health)
            if refused is not None:
                return refused
    return prompt


async def filter_progress(
    impls: tuple[Impl, ...], message: str, call: ToolCall, run: RunContext, health: HookHealth
) -> str:
    """What a body says of its progress, as it may be told; each implementation gets what the one before made of it.

    Args:
        impls: ``table.impls("locus_filter_progress")``.
        message: what the body says.
        call: the call whose body it is.
        run: what the hooks see of the run.
        health: the run's failures.
    """
    for impl in impls:
        if impl in health.quarantined:
            continue
        try:
            answer = await call_hook(impl, message, call, run)
            if answer is not None and not isinstance(answer, str):
                refuse_result(answer, "the message as it may be told, or None to leave it")
        except BaseException as e:
            if not is_failure(e):
                raise
            refused = await _failed(impl, e, health)
            if refused is not None:
                run.cancel(refused.reason)
                return ""
            continue
        message = message if answer is None else answer
    return message


def _turn(answer: Any, prompt: Message) -> Message:
    if answer is None:
        return prompt
    if isinstance(answer, str):
        return evolve(prompt, content=answer)
    if not isinstance(answer, Message) or answer.role is not prompt.role:
        refuse_result(answer, f"a Message of role {prompt.role.value!r}, its text, Cancel(reason), or None to leave it")
    return answer


async def _failed(impl: Impl, error: BaseException, health: HookHealth) -> Cancel | None:
    await health.emit([health.record(impl, error, isolated=True)])
    return Cancel(f"guard {impl.plugin} failed") if impl.guard else None


# -- answers as data ---------------------------------------------------------------------------------


Answer = Continue | Cancel | Retry | Reject | Allow | Interrupt | Accept | Revise

_TEXT: dict[str, tuple[type[Any], str]] = {
    "cancel": (Cancel, "reason"),
    "retry": (Retry, "reason"),
    "reject": (Reject, "reason"),
    "revise": (Revise, "feedback"),
}
_BARE: dict[str, Any] = {"continue": Continue(), "allow": Allow(), "accept": Accept()}
_NAMES = {cls: name for name, (cls, _) in _TEXT.items()} | {type(v): name for name, v in _BARE.items()}


def to_data(answer: Answer) -> dict[str, Any]:
    """A JSON-safe dict; `from_data` gives an equal answer back."""
    if isinstance(answer, Interrupt):
        return {"type": "interrupt", "question": answer.question, "options": list(answer.options)}
    name = _NAMES[type(answer)]
    if name in _BARE:
        return {"type": name}
    field = _TEXT[name][1]
    return {"type": name, field: getattr(answer, field)}


def from_data(data: Mapping[str, Any]) -> Answer:
    """The answer that `to_data` was given.

    Raises:
        CheckpointError: it is not the form of an answer.
    """
    name = data.get("type")
    if name == "interrupt":
        return Interrupt(data["question"], tuple(data["options"]))
    if name in _BARE:
        answer: Answer = _BARE[name]
        return answer
    if name in _TEXT:
        cls, field = _TEXT[name]
        made: Answer = cls(data[field])
        return made
    raise CheckpointError("type", f"{name!r} is not an answer of a hook; known: {', '.join(sorted({*_BARE, *_TEXT}))}")
