"""`Session`: what one workflow has of its runs: their effects under way, answers that wait, and who asks about them."""

from __future__ import annotations

import asyncio
import json
import zlib
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from temporalio import workflow

from locus_plugin_temporal.errors import NotInWorkflow
from locus_plugin_temporal.ref import MODEL, EffectRef

if TYPE_CHECKING:
    from locus import Agent
    from locus.core.journal import Asked
    from locus_kit.remote import RemoteEffect
    from locus_plugin_temporal.agents import Agents
    from locus_plugin_temporal.handover import Carried

__all__ = ["ANSWER", "CANCEL", "EFFECT", "STATE", "Session", "current_session", "enter_session"]

#: The signals and queries of a workflow that runs agents.
ANSWER, CANCEL, STATE, EFFECT = "locus.answer", "locus.cancel", "locus.state", "locus.effect"

#: Characters of one answer to the query for an effect; a query may answer 2 MB.
_PAGE = 1_000_000


class Session:
    """The runs of one workflow.

    Args:
        agents: those that the worker has.
    """

    def __init__(self, agents: Agents) -> None:
        self.agents = agents
        info = workflow.info()
        self._place = info.workflow_id, info.run_id
        #: Answers that have come for a thread, in order; under ``""`` those that came before any question.
        self.answers: dict[str, list[Any]] = {}
        #: The reason of a cancel, or None.
        self.cancelled: str | None = None
        #: How many events of history there may be before a run makes room; None = any number.
        self.history_limit: int | None = None
        self._running: dict[str, Agent[Any, Any]] = {}
        # In order: what is cancelled in another order than before is another history.
        self._asking: dict[str, workflow.ActivityHandle[Any]] = {}
        self._left: dict[str, workflow.ActivityHandle[Any]] = {}
        self._open: dict[str, RemoteEffect] = {}
        self._pages: tuple[str, str] = "", ""
        self._steps = 0
        #: The questions that wait for an answer, by thread.
        self.questions: dict[str, Any] = {}
        workflow.set_signal_handler(ANSWER, self.answer)
        workflow.set_signal_handler(CANCEL, self.cancel)
        workflow.set_query_handler(STATE, self.state)
        workflow.set_query_handler(EFFECT, self.show_effect)

    # -- signals and queries ----------------------------------------------------------------------

    def answer(self, answer: Any, thread_id: str = "") -> None:
        """Take an answer: to the only open question of a thread, or ``{interrupt_id: answer}``.

        Args:
            answer: what a person says.
            thread_id: of the run that asks; ``""`` where one run alone asks, or none does yet.
        """
        if not thread_id and len(self.questions) > 1:
            workflow.logger.warning("an answer names no thread, and %s ask; it is not used", list(self.questions))
            return
        self.answers.setdefault(thread_id or next(iter(self.questions), ""), []).append(answer)

    def cancel(self, reason: str = "") -> None:
        """End the runs at their next safe point; models that are asked now do not finish their answers."""
        if self.cancelled is None:
            self.cancelled = reason
        for agent in self._running.values():
            agent.cancel(reason)
        for handle in tuple(self._asking.values()):
            handle.cancel()

    def state(self) -> list[dict[str, Any]]:
        """The runs that are under way or wait, each with how far it is."""
        shown = []
        for thread_id, agent in self._running.items():
            for run in agent.runtime.active:
                shown.append({"thread_id": thread_id, "agent": agent.name, "status": "running", **_progress(run.state)})
        for thread_id, questions in self.questions.items():
            shown.append({"thread_id": thread_id, "status": "waiting", "questions": questions})
        return shown

    def show_effect(self, key: str, page: int) -> str:
        """A page of an effect under way, for a worker that has not this workflow: compressed JSON; ``""`` at its end.

        Raises:
            KeyError: no effect of that key is under way.
        """
        if self._pages[0] != key:
            text = json.dumps(self._open[key].to_json(), separators=(",", ":"))
            self._pages = key, b64encode(zlib.compress(text.encode("utf-8", "surrogatepass"), 1)).decode()
        return self._pages[1][page * _PAGE : (page + 1) * _PAGE]

    # -- effects ----------------------------------------------------------------------------------

    @contextmanager
    def offer(self, key: str, effect: RemoteEffect) -> Iterator[None]:
        """Have an effect at hand for the activity that makes it happen, in this process or in another."""
        place = (*self._place, key)
        self._open[key] = self.agents.effects[place] = effect
        try:
            yield
        finally:
            self._open.pop(key, None)
            # A replay of the same workflow in this process may have put its own there, which is equal.
            self.agents.effects.pop(place, None)
            self._pages = "", ""

    @contextmanager
    def offer_step(self, step: str, fn: Callable[[], Awaitable[Any]]) -> Iterator[str]:
        """Have a function at hand for a local activity, which runs in this process; gives its key."""
        self._steps += 1
        key = "/".join((*self._place, str(self._steps), step))
        self.agents.steps[key] = fn
        try:
            yield key
        finally:
            self.agents.steps.pop(key, None)

    async def wait_for(self, key: str, handle: workflow.ActivityHandle[Any], *, is_model: bool) -> Any:
        """What an activity returns; a cancel of the run cuts it off, where it asks a model.

        Raises:
            ActivityError: it failed, or was cut off.
        """
        if is_model:
            self._asking[key] = handle
        try:
            return await asyncio.shield(handle)
        except asyncio.CancelledError:
            # Tasks of one group are cancelled in any order, and the activities must be in the same one in each replay.
            if not self._left:
                asyncio.get_running_loop().call_soon(self._cancel_left)
            self._left[key] = handle
            handle.add_done_callback(_forget_error)
            raise
        finally:
            self._asking.pop(key, None)

    def _cancel_left(self) -> None:
        for key in sorted(self._left):
            self._left.pop(key).cancel()

    def limit(self, ref: EffectRef) -> float | None:
        """Seconds that the kernel lets an effect take; None where it does not say."""
        runtime = self.agents.get(ref.agent).runtime
        tool = runtime.tools.get(ref.name)
        if tool is not None:
            return tool.timeout if tool.timeout is not None else runtime.call_limits.tool_seconds
        # A wrapper may ask several times, and wait in between.
        wrapped = runtime.hooks.impls("locus_wrap_model_call")
        return None if wrapped else runtime.call_limits.model_seconds

    def activity_options(
        self, ref: EffectRef, effect: RemoteEffect, defaults: workflow.ActivityConfig
    ) -> workflow.ActivityConfig:
        """The options of an activity: what the user sets, over what follows from the agent."""
        given = self.agents.options.get(ref.name if effect.tool else MODEL, {})
        return {**defaults, **given}

    # -- runs -------------------------------------------------------------------------------------

    @contextmanager
    def running(self, thread_id: str, agent: Agent[Any, Any]) -> Iterator[None]:
        """Let signals and queries find a run."""
        self._running[thread_id] = agent
        try:
            yield
        finally:
            del self._running[thread_id]

    def take(self, carried: Carried) -> None:
        """Take over signals that came for a run before it was carried here."""
        self.answers = {**carried.answers, **self.answers}
        self.cancelled = self.cancelled if carried.cancelled is None else carried.cancelled

    async def wait_for_answers(self, thread_id: str, questions: Sequence[Asked]) -> Any:
        """Wait until all open questions of a run are answered, or the run is cancelled.

        Returns:
            The answers by id; None after a cancel.
        """
        wanted = [q.interrupt_id for q in questions]
        self.questions[thread_id] = {q.interrupt_id: _show(q) for q in questions}
        given: dict[str, Any] = {}
        try:
            while not given.keys() >= set(wanted):
                await workflow.wait_condition(lambda: self.cancelled is not None or self._places(thread_id) != [])
                if self.cancelled is not None:
                    return None
                answer = self.answers[self._places(thread_id)[0]].pop(0)
                named = isinstance(answer, dict) and bool(answer) and answer.keys() <= set(wanted)
                if named:
                    given |= answer
                elif len(wanted) == 1:
                    given[wanted[0]] = answer
                else:
                    workflow.logger.warning("an answer names none of the questions %s; it is not used", wanted)
        finally:
            del self.questions[thread_id]
        return given

    def _places(self, thread_id: str) -> list[str]:
        """Where answers for a thread are."""
        return [place for place in (thread_id, "") if self.answers.get(place)]

    def watch_history(self) -> None:
        """Let the runs make room where the history has grown long: they stay open, to go on in another one."""
        if self.history_limit is None:
            return
        info = workflow.info()
        if info.is_continue_as_new_suggested() or info.get_current_history_length() >= self.history_limit:
            for agent in self._running.values():
                agent.drain()


def _forget_error(handle: asyncio.Task[Any]) -> None:
    """Take note of the error of an activity that was left."""
    if not handle.cancelled():
        handle.exception()


def _show(asked: Asked) -> dict[str, Any]:
    options = [each if isinstance(each, str) else each.label for each in asked.options]
    return {"question": asked.question, "options": options, "tool": asked.tool_name, "call_id": asked.call_id}


def _progress(state: Any) -> dict[str, Any]:
    last = state.last_assistant
    return {
        "run_id": state.run_id,
        "iteration": state.iteration,
        "messages": len(state.messages),
        "tokens": state.total_tokens_used,
        "tools": [each.tool_name for each in state.tool_executions[-20:]],
        "last_text": "" if last is None else last.text[:2000],
    }


def enter_session(session_of: Callable[[], Session]) -> None:
    """Let `current_session` make one when it is asked first, in the workflow that begins here."""
    made: list[Session] = []

    def find() -> Session:
        if not made:
            made.append(session_of())
        return made[0]

    _FIND.set(find)


_FIND: ContextVar[Callable[[], Session] | None] = ContextVar("locus_temporal_session", default=None)


def current_session() -> Session:
    """The session of the workflow in which this is called.

    Raises:
        NotInWorkflow: it is called elsewhere, or the worker has no `LocusPlugin`.
    """
    find = _FIND.get()
    if find is None or not workflow.in_workflow():
        raise NotInWorkflow(
            "agents run in a workflow whose worker has a LocusPlugin: Client.connect(..., plugins=[LocusPlugin(...)])"
        )
    return find()
