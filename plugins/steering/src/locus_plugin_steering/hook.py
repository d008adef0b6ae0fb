"""`SteeringHook`: asks the judge about each call, and does what the vote says."""

from __future__ import annotations

from fnmatch import fnmatchcase

import anyio
from attrs import evolve

from locus.core.errors import BudgetExceeded, ModelError
from locus.core.messages import Message, Role, ToolCall
from locus.models import Model, ModelRequest, ModelSettings
from locus.plugin import Allow, Cancel, Decision, Hook, Interrupt, Reject, RunContext, StashKey, hookimpl
from locus.tools import ToolRegistry
from locus_kit.tool_names import check_tool_names
from locus_plugin_steering.case import arguments_text, case, instructions, user_request
from locus_plugin_steering.events import SteeringEvent
from locus_plugin_steering.report import SteeringReport
from locus_plugin_steering.settings import SteeringSettings
from locus_plugin_steering.vote import SPEC, BadVote, Vote, read_vote

__all__ = ["SteeringHook"]

_REQUEST: StashKey[str] = StashKey("steering request")
_REPORT: StashKey[SteeringReport] = StashKey("steering report")


class SteeringHook(Hook):
    """A second model votes on each tool call before its body runs.

    Args:
        settings: all of them; None = `SteeringSettings()`.
        judge: in place of the settings' own: the model that votes.
        policy: in place of the settings' own: what it is to uphold.
    """

    guard = True
    name = "steering"

    def __init__(
        self,
        settings: SteeringSettings | None = None,
        *,
        judge: str | Model | None = None,
        policy: str | None = None,
    ) -> None:
        given = SteeringSettings() if settings is None else settings
        given = given if judge is None else evolve(given, judge=judge)
        self.settings = given if policy is None else evolve(given, policy=policy)
        self._instructions = Message(Role.SYSTEM, instructions(self.settings.policy))

    @hookimpl
    def locus_check_tools(self, tools: ToolRegistry) -> None:
        """Refuse names of tools that do not exist."""
        check_tool_names(self.settings.always, tools, "steering.always")
        check_tool_names(self.settings.never, tools, "steering.never")

    @hookimpl
    async def locus_decide_tool_call(self, call: ToolCall, run: RunContext) -> Decision:
        """Ask the judge, unless the tool needs no vote."""
        if not self._votes(call.name):
            self._count(run, "passed")
            return Allow()
        failure = None
        try:
            vote = await self._ask_judge(call, run)
            self._count(run, vote.decision)
        except (ModelError, BudgetExceeded, BadVote) as e:
            failure = _why(e)
            # The model that asked for the call does not get to know why.
            vote = Vote(
                "proceed" if self.settings.allow_when_judge_fails else "reject", "no vote was given on this call"
            )
            self._count(run, "failed")
        await run.emit(
            SteeringEvent(
                tool_name=call.name, call_id=call.id, decision=vote.decision, reason=vote.reason, failure=failure
            )
        )
        return _decision(vote, call)

    def _votes(self, name: str) -> bool:
        if any(fnmatchcase(name, glob) for glob in self.settings.always):
            return True
        return not any(fnmatchcase(name, glob) for glob in self.settings.never)

    async def _ask_judge(self, call: ToolCall, run: RunContext) -> Vote:
        settings = self.settings
        size = len(arguments_text(call))
        if size > settings.max_chars:
            return Vote("reject", f"the arguments have {size} characters; no more than {settings.max_chars} are judged")
        state = run.state
        request = run.stash.get(_REQUEST, None)
        if request is None:
            request = run.stash[_REQUEST] = user_request(state)
        last = state.tool_executions[-settings.last_calls :] if settings.last_calls else ()
        deadline = anyio.current_time() + settings.timeout
        question = ModelRequest(
            messages=(
                self._instructions,
                Message(Role.USER, case(request, last, call, run.run_id, settings.max_chars)),
            ),
            settings=ModelSettings(temperature=0.0, max_tokens=settings.max_tokens),
            output=SPEC,
            deadline=deadline if run.deadline is None else min(deadline, run.deadline),
            purpose="steering",
        )
        response = await run.call_model(question, model=settings.judge, purpose="steering")
        if response.tool_calls:
            raise BadVote("the judge called a tool, expected text")
        return read_vote(response.message.text)

    @staticmethod
    def _count(run: RunContext, what: str) -> None:
        report = run.stash.get(_REPORT, SteeringReport()).count(what)
        run.stash[_REPORT] = report
        run.report("steering", report)


def _why(error: ModelError | BudgetExceeded | BadVote) -> str:
    if isinstance(error, BudgetExceeded):
        return f"the budget is spent ({error})"
    return str(error) if isinstance(error, BadVote) else f"the judge failed ({error})"


def _decision(vote: Vote, call: ToolCall) -> Decision:
    if vote.decision == "proceed":
        return Allow()
    if vote.decision == "cancel":
        return Cancel(f"steering: {vote.reason}")
    if vote.decision == "ask":
        question = f"May {call.name} be called with {arguments_text(call)}? The judge says: {vote.reason}"
        return Interrupt(question)
    return Reject(f"steering: {vote.reason}")
