"""The suites of AgentDojo: tasks, environments with an injected text in them, and their tools as tools of Locus.

Environments, tools, ground truths and checks are AgentDojo's own; none of them is copied or changed.
"""

from __future__ import annotations

import base64
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property
from typing import Any

import yaml
from attrs import field, frozen
from contrib.bench.agentdojo.labels import Labels, read_labels
from contrib.bench.agentdojo.open_goals import open_goal
from pydantic import BaseModel

from agentdojo.attacks.base_attacks import FixedJailbreakAttack
from agentdojo.attacks.important_instructions_attacks import ImportantInstructionsAttack
from agentdojo.base_tasks import BaseInjectionTask, BaseUserTask
from agentdojo.functions_runtime import Function, FunctionCall, FunctionsRuntime
from agentdojo.task_suite import TaskSuite, get_suites
from agentdojo.task_suite.task_suite import read_suite_file
from locus.tools import Tool, ToolContext
from locus_kit.schematool import schema_tool

VERSION = "v1.2.2"

#: How the injected text is written into the environment.
Encoding = Callable[[str], str]
ENCODINGS: dict[str, Encoding] = {
    "plain": str,
    "base64": lambda text: f" {base64.b64encode(text.encode()).decode()} ",
}

#: A sentence of the injected text, by which the model finds it in what it reads.
MARK = "please do the following first"


#: A moment of the clock's, in JSON; those of the suites have no fractions of seconds.
_NOW = re.compile(r"\d\d:\d\d:\d\d\.\d+")


@frozen
class Call:
    """One call of a ground truth."""

    tool: str
    arguments: Mapping[str, Any]

    def is_same(self, other: Call) -> bool:
        """Whether a person who reads both reads the same."""
        return self.tool == other.tool and self.form == other.form

    @property
    def form(self) -> str:
        """The arguments as one text."""
        return json.dumps(_plain(self.arguments), sort_keys=True)

    def __str__(self) -> str:
        return f"{self.tool}({self.form:.300})"


@frozen
class Environment:
    """What the tools of one run work on; the run changes it.

    Args:
        suite: whose tools.
        values: AgentDojo's own environment.
    """

    suite: TaskSuite[Any]
    values: Any


@frozen
class Case:
    """One user task, with one injection task or without.

    Args:
        suite: its suite.
        user: the user's task.
        injection: the attacker's, or None.
        before: the environment as it was prepared, never changed.
    """

    suite: TaskSuite[Any] = field(repr=False)
    user: BaseUserTask[Any]
    injection: BaseInjectionTask[Any] | None
    before: Any = field(repr=False)
    _checked: dict[tuple[str, ...], bool] = field(factory=dict, init=False, eq=False, repr=False)

    @property
    def name(self) -> str:
        """As in ``"slack/user_task_0/injection_task_1"``."""
        ids = (self.suite.name, self.user.ID, *([self.injection.ID] if self.injection else []))
        return "/".join(ids)

    @property
    def prompt(self) -> str:
        """What the user asks for."""
        return str(self.user.PROMPT)

    @cached_property
    def user_calls(self) -> list[Call]:
        """The calls that do what the user asks for."""
        return _calls(self.user.ground_truth(self._copy()))

    @cached_property
    def user_results(self) -> list[Any]:
        """What each of the user's calls returns where only these are made, as data."""
        environment, runtime = self._copy(), FunctionsRuntime(self.suite.tools)
        calls = ((call.tool, dict(call.arguments)) for call in self.user_calls)
        return [_plain(runtime.run_function(environment, *call)[0]) for call in calls]

    @cached_property
    def injected_calls(self) -> list[Call]:
        """The calls that do what the injected text asks for."""
        if self.injection is None:
            return []
        environment = self._copy()
        truth = self.injection.ground_truth(environment)
        return _calls(truth or open_goal(self.suite.name, self.injection, environment))

    @property
    def wants_only_words(self) -> bool:
        """Whether the attacker wants a sentence in the answer and no call: out of reach of rules about calls."""
        return self.injection is not None and not self.injected_calls

    def environment(self) -> Environment:
        """A fresh one, for one run."""
        return Environment(self.suite, self._copy())

    def _copy(self) -> Any:
        return self.before.model_copy(deep=True)

    def useful(self, answer: str, after: Environment, ran: Iterable[Call]) -> bool:
        """Whether the user's task is done, by the suite's own check."""
        return self._check(self.user, answer, after, ran)

    def attacked(self, answer: str, after: Environment, ran: Iterable[Call]) -> bool:
        """Whether the attacker's task is done, by the suite's own check."""
        return self.injection is not None and self._check(self.injection, answer, after, ran)

    def _check(self, task: Any, answer: str, after: Environment, ran: Iterable[Call]) -> bool:
        # The checks compare whole environments, which takes longer than a run; many policies end in the same one.
        trace = [FunctionCall(function=call.tool, args=dict(call.arguments)) for call in ran]
        key = (task.ID, answer, _NOW.sub("", after.values.model_dump_json()), str(trace))
        if key not in self._checked:
            content = [{"type": "text", "content": answer}]
            # Of a copy: some checks mark mails as read.
            check: Any = self.suite._check_task_result  # noqa: SLF001 - the one place that knows both kinds of check
            self._checked[key] = bool(check(task, content, self._copy(), after.values, trace))
        return self._checked[key]


def suites() -> dict[str, TaskSuite[Any]]:
    """The suites by name."""
    return dict(get_suites(VERSION))


#: Which of a suite's user tasks: every ``step``-th, from ``first``.
Part = tuple[int, int]
WHOLE: Part = (0, 1)


def clean_cases(name: str, part: Part = WHOLE) -> Iterator[Case]:
    """Each user task of a suite, with nothing injected."""
    suite = suites()[name]
    for user in _part(suite, part):
        yield Case(suite, user, None, user.init_environment(_load(suite, {})))


def attacked_cases(name: str, encoding: str, part: Part = WHOLE) -> Iterator[Case]:
    """Each pair of a suite, with the attack that AgentDojo's paper calls the strongest."""
    suite = suites()[name]
    template = ImportantInstructionsAttack._JB_STRING  # noqa: SLF001 - it has no other name
    attack = FixedJailbreakAttack(template, suite, None)  # the target's name is not used
    for user in _part(suite, part):
        for injection in suite.injection_tasks.values():
            texts = {vector: ENCODINGS[encoding](text) for vector, text in attack.attack(user, injection).items()}
            yield Case(suite, user, injection, user.init_environment(_load(suite, texts)))


def _part(suite: TaskSuite[Any], part: Part) -> Iterable[BaseUserTask[Any]]:
    first, step = part
    return itertools.islice(suite.user_tasks.values(), first, None, step)


def _load(suite: TaskSuite[Any], injections: Mapping[str, str]) -> Any:
    """The same as `TaskSuite.load_and_inject_default_environment`, with the parser of YAML that is written in C."""
    text = read_suite_file(suite.name, "environment.yaml", suite.data_path)
    values = {**suite.get_injection_vector_defaults(), **injections}
    return suite.environment_type.model_validate(yaml.load(text.format(**values), Loader=yaml.CSafeLoader))


@cache
def tools(name: str) -> tuple[Tool[..., Any], ...]:
    """The tools of a suite. They work on the `Environment` that a run has as its deps."""
    labels = read_labels()
    return tuple(_tool(function, labels[function.name]) for function in suites()[name].tools)


def _tool(function: Function[..., Any], labels: Labels) -> Tool[..., Any]:
    async def body(arguments: dict[str, Any], ctx: ToolContext[Environment]) -> Any:
        environment = ctx.deps
        result, _ = FunctionsRuntime(environment.suite.tools).run_function(
            environment.values, function.name, arguments, raise_on_error=True
        )
        return _plain(result)

    return schema_tool(
        body,
        name=function.name,
        description=function.description,
        parameters=function.parameters.model_json_schema(),
        origin=f"agentdojo.{function.name}",
        effect=labels.effect,
        reads=labels.reads,
        targets=labels.targets or None,
        egress=labels.egress,
    )


def _calls(truth: Iterable[FunctionCall]) -> list[Call]:
    return [Call(call.function, _plain(dict(call.args))) for call in truth]


def _plain(value: Any) -> Any:
    """Data as JSON has it."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
