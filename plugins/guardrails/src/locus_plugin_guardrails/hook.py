"""`GuardrailsHook`: the rules at the four gates of a run.

A user's turn passes before anything of it is saved. An answer passes inside the recorded model call, a tool's result
inside the recorded tool call: what a journal, an event or a log gets is what has passed, and a replay has nothing to
filter. A call is looked at once more before its body runs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio.to_thread
from attrs import evolve

from locus.core.errors import ModelError
from locus.core.messages import Block, Message, TextBlock, ToolCall
from locus.core.state import AgentState
from locus.models import ModelRequest, ModelResponse
from locus.plugin import Accept, Allow, Cancel, Hook, Interrupt, Option, Reject, Revise, RunContext, StashKey, hookimpl
from locus.tools import ToolRegistry
from locus_kit.tool_names import check_tool_names
from locus_plugin_guardrails.events import GuardrailEvent
from locus_plugin_guardrails.inspection import Inspection, characters
from locus_plugin_guardrails.report import Tally
from locus_plugin_guardrails.rule import Place
from locus_plugin_guardrails.scanner import Scanner, is_mentioned, words_finder
from locus_plugin_guardrails.settings import GuardrailsSettings

__all__ = ["GuardrailsHook"]

_TALLY: StashKey[Tally] = StashKey("guardrails")
_NONE = "Error: None"

T = TypeVar("T")
R = TypeVar("R")


#: Characters that are scanned on the event loop; longer texts are scanned in a worker thread.
_MOST_ON_LOOP = 20_000


async def _scan(inspect: Callable[[T], R], value: T) -> R:
    """The result of inspecting a value, without blocking the event loop."""
    if characters(value) <= _MOST_ON_LOOP:
        return inspect(value)
    return await anyio.to_thread.run_sync(inspect, value)


class GuardrailsHook(Hook):
    """Filters what enters and leaves a run.

    Args:
        settings: the rules; None = `GuardrailsSettings()`, every default rule.
    """

    guard = True
    buffers = True
    name = "guardrails"

    def __init__(self, settings: GuardrailsSettings | None = None) -> None:
        self.settings = GuardrailsSettings() if settings is None else settings
        self._scanner = Scanner(self.settings.in_force)
        allowed = [word for words in self.settings.topics.allow.values() for word in words]
        self._allowed = words_finder(allowed) if allowed else None

    @hookimpl
    def locus_check_tools(self, tools: ToolRegistry) -> None:
        """Refuse names of tools that do not exist."""
        for rule in self.settings.in_force:
            check_tool_names(rule.tools, tools, f"the rule {rule.name!r} of guardrails")

    # -- the user's turn ------------------------------------------------------------------------------

    @hookimpl
    async def locus_filter_input(self, prompt: Message, run: RunContext) -> Message | Cancel | None:
        """Redact a turn of the user's, or refuse it."""
        passage = self._passage("prompt")
        passed = await _scan(passage.message, prompt)
        allowed = self._allowed
        if allowed is not None and not passage.blocked:
            mentioned = await _scan(lambda text: is_mentioned(text, allowed), prompt.text)
            passage.did.update({} if mentioned else {("topics", "prompt", "block"): 1})
        await self._note(passage, run)
        if passage.blocked:
            return Cancel(f"guardrails refuse the prompt: {', '.join(passage.blocked)}")
        return passed

    # -- the model's answer ---------------------------------------------------------------------------

    @hookimpl
    async def locus_wrap_model_call(
        self,
        call_next: Callable[[ModelRequest], Awaitable[ModelResponse]],
        request: ModelRequest,
        run: RunContext,
    ) -> ModelResponse:
        """Redact an answer and its tool calls, or withhold its text, before they are recorded or shown."""
        try:
            response = await call_next(request)
        except Exception as e:
            self._clean(e)
            raise
        message = response.message
        passage = self._passage("answer")
        passed = await _scan(passage.message, message)
        if passage.blocked:
            withheld = TextBlock(" ".join(f"[withheld: {name}]" for name in passage.blocked))
            passed = evolve(passed, content=(withheld, *passed.tool_calls), extras={})
        await self._note(passage, run)
        calls = [await self._call(call, run) for call in message.tool_calls]
        if any(new is not old for new, old in zip(calls, message.tool_calls, strict=True)):
            following = iter(calls)
            content = tuple(next(following) if isinstance(b, ToolCall) else b for b in passed.content)
            passed = evolve(passed, content=content)
        return response if passed is message else evolve(response, message=passed)

    async def _call(self, call: ToolCall, run: RunContext) -> ToolCall:
        passage = self._passage("arguments", call.name)
        passed = await _scan(passage.call, call)
        await self._note(passage, run, passed)
        return passed

    def _clean(self, error: Exception) -> None:
        """Take out of a provider's error what may not be recorded. It stays the same error: that of the provider."""
        said = str(error)
        quiet = self._clean_chunk(said)
        if quiet != said:
            error.args = (quiet,)
            error.__cause__ = error.__context__ = None
            if str(error) != quiet:
                raise ModelError(quiet, retryable=getattr(error, "retryable", False)) from None

    def _clean_chunk(self, text: str) -> str:
        passage = self._passage("answer")
        quiet = passage.text(text[:10_000])
        return "[withheld]" if passage.blocked else quiet

    @hookimpl
    async def locus_review_answer(self, answer: Message, state: AgentState, run: RunContext) -> Accept | Revise:
        """Ask for another answer in place of one that was withheld, where that is wanted."""
        if self.settings.revise_withheld and answer.text.startswith("[withheld: "):
            return Revise(f"Your answer was withheld: {answer.text}. Answer without what that rule forbids.")
        return Accept()

    # -- tool calls -----------------------------------------------------------------------------------

    @hookimpl
    async def locus_decide_tool_call(self, call: ToolCall, run: RunContext) -> Allow | Reject:
        """Reject a call of which something is blocked, or that did not come through the filter."""
        passage = self._passage("arguments", call.name)
        # A default is the program's, not the model's: only what the model wrote is looked at.
        asked = [each.arguments for each in run.state.unanswered if each.id == call.id]
        written = {name: v for name, v in call.arguments.items() if not asked or any(name in each for each in asked)}
        await _scan(passage.data, written)
        if not passage.unclean and not self._scanner.has_mark(written):
            return Allow()
        why = ", ".join(passage.unclean) or "blocked arguments"
        return Reject(f"guardrails refuse these arguments: {why}. Do not send this; do without, or ask the user.")

    @hookimpl
    async def locus_wrap_tool_call(
        self, call_next: Callable[[ToolCall], Awaitable[Any]], call: ToolCall, run: RunContext
    ) -> Any:
        """Redact a result or an error of a tool, or withhold it, before it is recorded."""
        try:
            outcome = await call_next(call)
        except Interrupt as asking:
            # The same exception goes on, so that it stays the tool's question.
            asking.question = self._ask_person(asking.question, call)
            asking.options = tuple(self._ask_option(option, call) for option in asking.options)
            asking.args = (asking.question,)
            raise
        passage = self._passage("result", call.name)
        content = outcome.content
        passed: str | tuple[Block, ...]
        if isinstance(content, str):
            passed = await _scan(passage.text, content)
        else:
            passed = await _scan(passage.blocks, content)
        await self._note(passage, run, call)
        execution = outcome.execution
        if passage.blocked:
            error = f"Withheld: guardrails refuse this result: {', '.join(passage.blocked)}"
            return evolve(
                outcome, content=f"Error: {error}", execution=evolve(execution, result=None, error=error, media_at=None)
            )
        if not passage.did and execution.result in (None, content) and f"Error: {execution.error}" in (_NONE, content):
            return outcome
        again = self._passage("result", call.name)
        if execution.result is not None:
            same = execution.result == content
            execution = evolve(execution, result=passed if same else await _scan(again.text, execution.result))
        if execution.error is not None:
            execution = evolve(execution, error=await _scan(again.text, execution.error))
        return evolve(outcome, content=passed, execution=execution)

    @hookimpl
    async def locus_filter_progress(self, message: str, call: ToolCall, run: RunContext) -> str:
        """Redact what a tool says of its progress, or withhold it."""
        passage = self._passage("result", call.name)
        passed = await _scan(passage.text, message)
        await self._note(passage, run, call)
        return f"[withheld: {passage.blocked[0]}]" if passage.blocked else passed

    def _ask_option(self, option: str | Option, call: ToolCall) -> str | Option:
        label = self._ask_person(str(option), call)
        return evolve(option, label=label) if isinstance(option, Option) else label

    def _ask_person(self, text: str, call: ToolCall) -> str:
        passage = self._passage("result", call.name)
        asked = passage.text(text)
        return f"[withheld: {passage.blocked[0]}]" if passage.blocked else asked

    # -- what was done --------------------------------------------------------------------------------

    def _passage(self, place: Place, tool: str = "") -> Inspection:
        return Inspection(self._scanner, place, self.settings.limit(place), tool)

    async def _note(self, passage: Inspection, run: RunContext, call: ToolCall | None = None) -> None:
        tally = run.stash.setdefault(_TALLY, Tally())
        if not passage.did:
            return
        tally.add(passage.did)
        run.report("guardrails", tally.report)
        tool_name, call_id = ("", "") if call is None else (call.name, call.id)
        for (rule, where, action), times in passage.did.items():
            await run.emit(
                GuardrailEvent(rule=rule, where=where, action=action, times=times, tool_name=tool_name, call_id=call_id)
            )
