"""The three ways to check a claim: a function, a command, a second model. Each gives an `Outcome`, whatever happens."""

from __future__ import annotations

import inspect
import os
import pkgutil
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
from attrs import frozen

from locus.core.errors import JournalError, LocusError
from locus.core.messages import Message, Role
from locus.core.state import AgentState
from locus.models import ModelRequest, ModelSettings
from locus.tools import call_in_thread
from locus_plugin_verifier.judge import SPEC, BadVerdict, case, instructions, read_verdict, request_of
from locus_plugin_verifier.outcome import NAME, Outcome
from locus_plugin_verifier.process import run_command

if TYPE_CHECKING:
    from locus.plugin import RunContext
    from locus_plugin_verifier.settings import VerifierSettings

__all__ = ["Checks"]

#: Why a claim is refused when a check could not be made: the agent's model does not get the details.
_NOT_MADE = "the check could not be made"


@frozen
class Checks:
    """Every check that the settings give.

    Args:
        settings: which, and how.
    """

    settings: VerifierSettings

    async def outcome(self, claim: str, state: AgentState, run: RunContext, *, where: str) -> Outcome:
        """Check a claim: all checks in order, up to the first that does not pass.

        Args:
            claim: the answer, or the call of a terminal tool, for the judge.
            state: the state that the claim is about.
            run: the run; function and command are steps of it, the judge is asked by it.
            where: names the steps: unique for a claim within the node under way.
        """
        settings = self.settings
        passed = Outcome(verified=True)
        if settings.check is not None:
            passed = await self._step(run, f"{where}/function", lambda: self._function(state))
        if settings.command and passed.verified:
            passed = await self._step(run, f"{where}/command", self._command)
        asks = settings.judge or settings.model is not None or (settings.check is None and not settings.command)
        return await self._judge(claim, state, run) if asks and passed.verified else passed

    async def _step(self, run: RunContext, name: str, check: Callable[[], Awaitable[Outcome]]) -> Outcome:
        async def data() -> dict[str, Any]:
            return (await check()).to_data()

        # A check that died in its middle is made again: it looks, it does not act.
        return Outcome.of(await run.step(f"{NAME}/{name}", data, effect="pure"))

    async def _function(self, state: AgentState) -> Outcome:
        check = self.settings.check
        try:
            with anyio.fail_after(self.settings.timeout):
                function: Any = pkgutil.resolve_name(check) if isinstance(check, str) else check
                if inspect.iscoroutinefunction(function):
                    answer = await function(state)
                else:
                    answer = await call_in_thread(partial(function, state))  # in a thread: it may well run the tests
        except TimeoutError as e:
            return _fail(f"the function took longer than {self.settings.timeout:g} s" if not str(e) else f"{e}")
        except Exception as e:  # noqa: BLE001  # whatever the function raises, the claim is not verified by it
            return _fail(f"the function raised {type(e).__name__}: {e}")
        if isinstance(answer, Outcome):
            return answer
        if answer is True or answer == "":
            return Outcome(verified=True)
        if answer is False:
            return Outcome(verified=False, reason="the check says no")
        if isinstance(answer, str):
            return Outcome(verified=False, reason=answer)
        return _fail(f"the function must return True, False or what is missing, got {type(answer).__name__}")

    async def _command(self) -> Outcome:
        settings = self.settings
        env = {name: os.environ[name] for name in settings.env if name in os.environ}
        try:
            ended = await run_command(
                settings.command, cwd=settings.cwd, env=env, seconds=settings.timeout, tail=settings.tail
            )
        except (OSError, ValueError) as e:
            return _fail(f"the command could not be started: {e}")
        if ended.code is None:
            return _fail(f"the command took longer than {settings.timeout:g} s", ended.output)
        if ended.code:
            return Outcome(verified=False, reason=f"the test command ended with {ended.code}", output=ended.output)
        return Outcome(verified=True)

    async def _judge(self, claim: str, state: AgentState, run: RunContext) -> Outcome:
        settings = self.settings
        last = state.tool_executions[-settings.last_calls :] if settings.last_calls else ()
        deadline = anyio.current_time() + settings.timeout
        question = ModelRequest(
            messages=(
                Message(Role.SYSTEM, instructions(settings.criteria)),
                Message(Role.USER, case(request_of(state), last, claim, run.run_id, settings.max_chars)),
            ),
            settings=ModelSettings(temperature=0.0, max_tokens=settings.max_tokens),
            output=SPEC,
            deadline=deadline if run.deadline is None else min(deadline, run.deadline),
            purpose=NAME,
        )
        try:
            response = await run.call_model(question, model=settings.model, purpose=NAME)
            if response.tool_calls:
                raise BadVerdict("the judge called a tool, expected text")
            return read_verdict(response.message.text)
        except JournalError:
            raise  # no failure of the judge: this worker must not go on
        except LocusError as e:
            return _fail(f"{type(e).__name__}: {e}")


def _fail(why: str, output: str = "") -> Outcome:
    return Outcome(verified=False, reason=_NOT_MADE, output=output, failure=why)
