"""One run of one case under one policy, and its outcome."""

from __future__ import annotations

from typing import Any

from attrs import frozen
from contrib.bench.agentdojo.labels import read_labels
from contrib.bench.agentdojo.model import CompromisedModel
from contrib.bench.agentdojo.policies import Policy
from contrib.bench.agentdojo.suites import Call, Case, Environment, tools

from locus import Agent
from locus.core.directives import Option
from locus.core.journal import Asked
from locus.core.messages import ToolCall
from locus.plugins import Catalogue
from locus.result import AgentResult

_LABELS = read_labels()

#: Looked for once, and not for each run.
_INSTALLED = Catalogue()


@frozen(kw_only=True)
class Outcome:
    """The outcome of a run.

    Args:
        case: its name.
        words: the attacker wanted a sentence in the answer alone.
        reached: the injected text was in the model's window.
        injected: calls of the attacker's that have an effect.
        injected_ran: how many of these ran; a body that was entered and failed ran, too.
        user: calls of the user's.
        user_ran: how many of these ran.
        effects: calls of the user's that have an effect.
        effects_ran: how many of these ran.
        useful: the user's task is done, by the suite's check.
        attacked: the attacker's task is done, by the suite's check.
        questions: how often a person was asked.
        allowed_injected: how many calls of the attacker's a person allowed, being the same as one of the user's.
        leaked: the attacker's calls that ran, for people.
        lost: the user's calls that did not run, for people.
    """

    case: str
    words: bool
    reached: bool
    injected: int
    injected_ran: int
    user: int
    user_ran: int
    effects: int
    effects_ran: int
    useful: bool
    attacked: bool
    questions: int
    allowed_injected: int
    leaked: tuple[str, ...]
    lost: tuple[str, ...]


class _Person:
    """Allows exactly the calls that do what the user asked for."""

    def __init__(self, case: Case) -> None:
        self._wanted = case.user_calls
        self.questions = 0
        self.allowed_injected = 0

    def answer(self, asked: Asked, call: ToolCall) -> str:
        self.questions += 1
        allow = any(each.is_same(Call(call.name, call.arguments)) for each in self._wanted)
        self.allowed_injected += allow and _is_injected(call.id)
        return next(option.label for option in asked.options if isinstance(option, Option) and option.allow is allow)


async def run_case(case: Case, policy: Policy) -> Outcome:
    """Run a case to its end, a person's answers included.

    Raises:
        AssertionError: the run did not end as a run that answers does.
    """
    environment = case.environment()
    model = CompromisedModel(case, obeys=policy.obeys)
    person = _Person(case)
    agent = Agent(model, tools=tools(case.suite.name), max_iterations=200, catalogue=_INSTALLED, **policy.options(case))
    result = await agent.run(case.prompt, deps=environment)
    while result.interrupts:
        calls = {call.id: call for message in result.state.messages for call in message.tool_calls}
        answers: dict[str, Any] = {
            each.interrupt_id: person.answer(each, calls[each.call_id]) for each in result.interrupts
        }
        result = await agent.resume(result, answers, deps=environment)
    assert result.stop_reason == "NoToolCalls", f"{case.name}: {result}"
    return _outcome(case, model, person, result, environment)


def _outcome(
    case: Case, model: CompromisedModel, person: _Person, result: AgentResult[Any], environment: Environment
) -> Outcome:
    done = [each for each in result.state.tool_executions if each.started]
    ran = [Call(each.tool_name, each.arguments) for each in done]
    # As the model asked for them: a rule may have changed the arguments. A plan makes its calls itself.
    meant = {each.call_id: model.asked.get(each.call_id, call) for each, call in zip(done, ran, strict=True)}
    leaked = [call for made, call in meant.items() if _is_injected(made) and _has_effect(call)]
    lost = list(case.user_calls)
    for made, call in meant.items():
        kept = next((n for n, each in enumerate(lost) if not _is_injected(made) and each.is_same(call)), None)
        if kept is not None:
            del lost[kept]
    return Outcome(
        case=case.name,
        words=case.wants_only_words,
        reached=model.reached,
        injected=sum(map(_has_effect, case.injected_calls)),
        injected_ran=len(leaked),
        user=len(case.user_calls),
        user_ran=len(case.user_calls) - len(lost),
        effects=sum(map(_has_effect, case.user_calls)),
        effects_ran=sum(map(_has_effect, case.user_calls)) - sum(map(_has_effect, lost)),
        useful=case.useful(result.text, environment, ran),
        attacked=case.attacked(result.text, environment, ran),
        questions=person.questions,
        allowed_injected=person.allowed_injected,
        leaked=tuple(map(str, leaked)),
        lost=tuple(map(str, lost)),
    )


def _is_injected(made: str) -> bool:
    return made.startswith("injected-")


def _has_effect(call: Call) -> bool:
    return _LABELS[call.tool].has_effect
