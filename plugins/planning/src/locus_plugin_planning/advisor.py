"""`Advisor`: the questions of a plan to models, each asked once more where the answer cannot be used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import anyio

from locus.core.messages import Message, Role
from locus.core.state import AgentState
from locus.models import Model, ModelRequest, ModelSettings, OutputSpec
from locus.plugin import RunContext
from locus.tools import ArgumentError, Tool
from locus_plugin_planning.errors import AnswerUnusable
from locus_plugin_planning.lock import check_locked
from locus_plugin_planning.plan import Plan, Step
from locus_plugin_planning.questions import Clip, decide_question, decide_spec, plan_question, think_question
from locus_plugin_planning.reading import LONGEST, answer_of, plan_spec, read_plan
from locus_plugin_planning.settings import PlanningSettings

__all__ = ["EXECUTOR", "PLANNER", "Advisor"]

T = TypeVar("T")

#: What the calls are for, as their events say.
PLANNER, EXECUTOR = "planning", "planning-step"


class Advisor:
    """Asks for plans and judgements.

    Args:
        settings: whom, and how.
        run: the run, which is charged.
        asked: called with the purpose of each model call.
    """

    def __init__(self, settings: PlanningSettings, run: RunContext, asked: Callable[[str], None]) -> None:
        self._settings, self._run, self._asked = settings, run, asked
        self._clip = Clip(settings.max_chars)

    async def plan(
        self, state: AgentState, done: Mapping[str, Mapping[str, Any]], tried: Iterable[Any], why: str
    ) -> Plan:
        """A plan for what is left.

        Args:
            state: the state.
            done: the steps that are done, by id.
            tried: what failed, to be shown as well.
            why: the reason to replan, or ``""``.

        Raises:
            Unusable: it cannot be used, twice.
            ModelError: the model failed.
            BudgetExceeded: the run may not spend more.
        """
        settings, registry, template = self._settings, self._run.registry, self._settings.answer == "template"
        question = plan_question(
            state,
            registry,
            done=[*done.values(), *tried],
            why=why,
            clip=self._clip,
            window=settings.window,
            template=template,
        )

        def read(text: str) -> Plan:
            plan = read_plan(text, registry, known=done, max_steps=settings.max_steps, template=template)
            if settings.locked:
                check_locked(plan)
            return plan

        return await self._ask(question, read, settings.planner, PLANNER, plan_spec(registry, template=template))

    async def think(self, goal: str, step: Step, results: Mapping[str, str]) -> str:
        """The result of a step of thought.

        Raises:
            Unusable, ModelError, BudgetExceeded: as in `plan`.
        """
        question = think_question(goal, step, results, self._clip)
        return await self._ask(question, _check_thought, self._settings.executor, EXECUTOR, None)

    async def decide(
        self, goal: str, step: Step, tool: Tool[..., Any], settled: Mapping[str, Any], results: Mapping[str, str]
    ) -> dict[str, Any]:
        """All arguments of a step, some of which take judgement. What is settled stays as it is.

        Raises:
            Unusable, ModelError, BudgetExceeded: as in `plan`.
        """

        def read(text: str) -> dict[str, Any]:
            chosen = answer_of(text)
            if set(chosen) != set(step.decide):
                raise AnswerUnusable(f"the answer must have the keys {sorted(step.decide)}, got {sorted(chosen)}")
            bound = tool.bind({**settled, **chosen})
            if isinstance(bound, ArgumentError):
                raise AnswerUnusable(*map(str, bound.problems))
            return {**settled, **chosen}

        question = decide_question(goal, step, tool, settled, results, self._clip)
        return await self._ask(question, read, self._settings.executor, EXECUTOR, decide_spec(step, tool))

    async def _ask(
        self,
        messages: tuple[Message, ...],
        read: Callable[[str], T],
        model: str | Model | None,
        purpose: str,
        output: OutputSpec | None,
    ) -> T:
        try:
            return read(text := await self._answer(messages, model, purpose, output))
        except AnswerUnusable as e:
            told = "\n".join(f"- {problem}" for problem in e.problems)
        again = Message(Role.USER, f"That cannot be used:\n{told}\nAnswer again, in full.")
        refused = Message(Role.ASSISTANT, self._clip.text(text) or "(nothing)")
        return read(await self._answer((*messages, refused, again), model, purpose, output))

    async def _answer(
        self, messages: tuple[Message, ...], model: str | Model | None, purpose: str, output: OutputSpec | None
    ) -> str:
        request = ModelRequest(
            messages=messages,
            settings=ModelSettings(max_tokens=self._settings.max_tokens),
            output=output,
            deadline=self._deadline(),
            purpose=purpose,
        )
        response = await self._run.call_model(request, model=model, purpose=purpose)
        self._asked(purpose)
        # No tool was offered, so a call says nothing; the text beside it may.
        return response.message.text

    def _deadline(self) -> float | None:
        if self._settings.timeout is None:
            return self._run.deadline
        mine = anyio.current_time() + self._settings.timeout
        return mine if self._run.deadline is None else min(mine, self._run.deadline)


def _check_thought(text: str) -> str:
    if not text.strip():
        raise AnswerUnusable("the answer is empty")
    if len(text) > LONGEST:
        raise AnswerUnusable(f"the answer has {len(text)} characters; {LONGEST} are read")
    return text.strip()
