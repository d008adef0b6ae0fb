"""Review: what comes into a run and what goes out of it. Isolated, unless a guard fails: that cancels the run.

What labels the results of calls is not isolated: where it fails, a result is untrusted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from attrs import evolve

from locus.core.directives import Accept, Cancel, Revise
from locus.core.labels import CLEAN, LEVELS, Label, Reads, taint
from locus.core.messages import Message, text_of
from locus.hooks.dispatch import ask_isolated, call_hook, refuse_result
from locus.schema.text import clean_text, truncate
from locus.tools.cancellation import is_failure

if TYPE_CHECKING:
    from locus.core.events import HookFailedEvent
    from locus.core.messages import ToolCall
    from locus.core.state import AgentState
    from locus.hooks.context import ConversationManager, RunContext
    from locus.hooks.table import HookHealth, Impl
    from locus.tools.outcome import CallOutcome

#: Runs an effect under a name and records what it returns: a `Revise`, a `Cancel` or None.
Step = Callable[[str, Callable[[], Awaitable[Revise | Cancel | None]]], Awaitable[Revise | Cancel | None]]


async def review(
    impls: tuple[Impl, ...], answer: Message, state: AgentState, run: RunContext, health: HookHealth, step: Step
) -> Revise | Cancel | None:
    """Is this answer accepted? All are asked in order, until one cancels.

    The answer is text, without tool calls, and in the state already. ``step`` records each verdict, under
    ``"review/<plugin>/<n>"``: a replay need not ask again.

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
    """The user's turn as it is to enter the conversation; each implementation gets what the one before made of it."""
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
    """What a call's body says of its progress, as it may be emitted; each implementation gets the previous result."""
    for impl in impls:
        filtered = await ask_isolated(impl, health, _text, message, call, run)
        if isinstance(filtered, Cancel):
            run.cancel(filtered.reason)
            return ""
        message = message if filtered is None else filtered
    return message


async def shorten_result(
    impls: tuple[Impl, ...], text: str, call: ToolCall, limit: int, run: RunContext, health: HookHealth
) -> str:
    """What is kept of a result: what the first implementation says that has an answer, within the limit."""
    for impl in impls:
        answer = await ask_isolated(impl, health, _text, text, call, limit, run)
        if isinstance(answer, Cancel):
            run.cancel(answer.reason)
        elif answer is not None:
            return truncate(clean_text(answer), limit)
    return truncate(text, limit)


def _text(answer: Any) -> str | None:
    if answer is not None and not isinstance(answer, str):
        refuse_result(answer, "the text in its place, or None")
    return answer


async def label_result(
    impls: tuple[Impl, ...], call: ToolCall, outcome: CallOutcome, own: Label, run: RunContext, health: HookHealth
) -> CallOutcome:
    """The outcome of a call with a label that says whose words may be in it, and the levels of its parts.

    Where no hook has another opinion, ``own`` is the label; one that fails makes the result untrusted.
    """
    result = text_of(outcome.content)
    whole: Label | None = None
    parts: dict[str, Reads] = {}
    failed: list[HookFailedEvent] | None = None
    for impl in impls:
        try:
            answer = _label(await call_hook(impl, call, result, run), call.name)
        except BaseException as e:
            if not is_failure(e):
                raise
            failed = failed or []
            failed.append(health.record(impl, e, isolated=False))
            answer = taint(call.name)
        if isinstance(answer, Label):
            whole = answer if whole is None else whole | answer
        for pattern, level in answer.items() if isinstance(answer, Mapping) else ():
            parts[pattern] = max(level, parts.get(pattern, level), key=LEVELS.__getitem__)
    await health.emit(failed)
    label = own if whole is None else whole
    if parts:
        if whole is not None:
            parts = {pattern: max(level, whole.reads, key=LEVELS.__getitem__) for pattern, level in parts.items()}
        parts.setdefault("", label.reads)
        label = whole or CLEAN
        for level in parts.values():
            label |= _level(level, call.name)
    execution = outcome.execution
    if label == execution.label and not parts and not execution.fields:
        return outcome
    return evolve(outcome, execution=evolve(execution, label=label, fields=parts))


def _level(reads: Reads, tool: str) -> Label:
    return taint(tool) if reads == "untrusted" else Label(reads)


def _label(answer: Any, tool: str) -> Label | Mapping[str, Reads] | None:
    if isinstance(answer, str) and answer in LEVELS:
        return _level(cast("Reads", answer), tool)
    levels = [*answer, *answer.values()] if isinstance(answer, Mapping) else [answer]
    is_mapping = isinstance(answer, Mapping) and all(isinstance(each, str) for each in levels)
    if is_mapping and all(level in LEVELS for level in answer.values()):
        levels_by_path: Mapping[str, Reads] = answer
        return levels_by_path
    if answer is not None and type(answer) is not Label:
        refuse_result(answer, "a Label, one of 'user', 'own' and 'untrusted', a mapping from paths to these, or None")
    label: Label | None = answer
    return label


async def view(
    manager: ConversationManager, state: AgentState, run: RunContext
) -> tuple[AgentState, tuple[Message, ...]]:
    """What the model is shown of a conversation, and the state with what the manager remembers about it."""
    made = await manager.view(state, run)
    for key, value in made.metadata.items():
        state = state.with_metadata(key, value)
    return state, made.messages
