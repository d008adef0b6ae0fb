"""Review: what comes into a run and what goes out of it. Isolated, unless a guard fails: that cancels the run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import evolve

from locus.core.directives import Accept, Cancel, Revise
from locus.core.messages import Message
from locus.hooks.dispatch import ask_isolated, refuse_result

if TYPE_CHECKING:
    from locus.core.messages import ToolCall
    from locus.core.state import AgentState
    from locus.hooks.context import ConversationManager, RunContext
    from locus.hooks.table import HookHealth, Impl

__all__ = ["Step", "filter_input", "filter_progress", "review", "view"]

#: Runs an effect under a name and records what it returns: a `Revise`, a `Cancel` or None.
Step = Callable[[str, Callable[[], Awaitable[Revise | Cancel | None]]], Awaitable[Revise | Cancel | None]]


async def review(
    impls: tuple[Impl, ...], answer: Message, state: AgentState, run: RunContext, health: HookHealth, step: Step
) -> Revise | Cancel | None:
    """Is this answer accepted? All are asked in order, until one cancels.

    Args:
        impls: ``table.impls("locus_review_answer")``.
        answer: the model's answer: text, no tool calls.
        state: the state with the answer in it.
        run: what the hooks see of the run.
        health: the run's failures.
        step: records each verdict, under ``"review/<plugin>/<n>"``: a replay need not ask again.

    Returns:
        `Revise` with the feedback of all who want a revision, a blank line between them; None to accept.
    """
    feedback: list[str] = []
    for n, impl in enumerate(impls):
        if impl in health.quarantined:
            continue
        asked = partial(ask_isolated, impl, health, _verdict, answer, state, run)
        verdict = await step(f"review/{impl.plugin}/{n}", asked)
        if isinstance(verdict, Cancel):
            return verdict
        if verdict is not None and verdict.feedback not in feedback:
            feedback.append(verdict.feedback)
    return Revise("\n\n".join(feedback)) if feedback else None


def _verdict(answer: Any) -> Revise | Cancel | None:
    if answer is None or type(answer) is Accept:
        return None
    if type(answer) is Revise:
        if not isinstance(answer.feedback, str) or not answer.feedback.strip():
            refuse_result(answer, "Revise with feedback that tells the model what to change")
    elif type(answer) is not Cancel:
        refuse_result(answer, "Accept(), Revise(feedback), Cancel(reason), or None to accept")
    verdict: Revise | Cancel = answer
    return verdict


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
        filtered = await ask_isolated(impl, health, partial(_turn, prompt), prompt, run)
        if isinstance(filtered, Cancel):
            return filtered
        prompt = prompt if filtered is None else filtered
    return prompt


def _turn(prompt: Message, answer: Any) -> Message | Cancel | None:
    if answer is None or type(answer) is Cancel:
        return answer
    if isinstance(answer, str):
        return evolve(prompt, content=answer)
    if not isinstance(answer, Message) or answer.role is not prompt.role:
        refuse_result(answer, f"a Message of role {prompt.role.value!r}, its text, Cancel(reason), or None to leave it")
    return answer


async def filter_progress(
    impls: tuple[Impl, ...], message: str, call: ToolCall, run: RunContext, health: HookHealth
) -> str:
    """What a body reports of its progress, as it may be emitted; each implementation gets the result of the one before.

    Args:
        impls: ``table.impls("locus_filter_progress")``.
        message: what the body says.
        call: the call whose body it is.
        run: what the hooks see of the run.
        health: the run's failures.
    """
    for impl in impls:
        filtered = await ask_isolated(impl, health, _progress, message, call, run)
        if isinstance(filtered, Cancel):
            run.cancel(filtered.reason)
            return ""
        message = message if filtered is None else filtered
    return message


def _progress(answer: Any) -> str | None:
    if answer is not None and not isinstance(answer, str):
        refuse_result(answer, "the message as it may be emitted, or None to leave it")
    return answer


async def view(
    manager: ConversationManager, state: AgentState, run: RunContext
) -> tuple[AgentState, tuple[Message, ...]]:
    """What the model is shown of a conversation, and the state with what the manager remembers about it."""
    made = await manager.view(state, run)
    for key, value in made.metadata.items():
        state = state.with_metadata(key, value)
    return state, made.messages
