"""From a planner's answer to a `Plan`, strictly: everything wrong is found before anything is done, and reported."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from attrs import evolve

from locus.core import thaw
from locus.models import OutputSpec
from locus.tools import ArgumentError, ToolRegistry
from locus_kit.parsing import NotOneObject, parse_json_object
from locus_plugin_planning.errors import AnswerUnusable
from locus_plugin_planning.plan import Plan, Step
from locus_plugin_planning.references import Unresolved, is_open, references

__all__ = ["answer_of", "plan_spec", "read_plan"]

#: Characters of an answer; a longer one is not read.
LONGEST = 200_000

_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_KEYS: Mapping[str, type] = {
    "id": str,
    "description": str,
    "tool": str,
    "arguments": dict,
    "decide": dict,
    "depends_on": list,
    "decision_point": bool,
}
_WORDS = {str: "a text", dict: "an object", list: "a list", bool: "true or false"}


def plan_spec(registry: ToolRegistry, *, template: bool) -> OutputSpec:
    """The schema of a planner's answer."""
    text, anything = {"type": "string"}, {"type": "object", "additionalProperties": True}
    step = {
        "type": "object",
        "properties": {
            "id": text,
            "description": text,
            "tool": {"anyOf": [{"type": "string", "enum": list(registry.names)}, {"type": "null"}]},
            "arguments": anything,
            "decide": {"type": "object", "additionalProperties": text},
            "depends_on": {"type": "array", "items": text},
            "decision_point": {"type": "boolean"},
        },
        "required": ["id", "description", "tool", "arguments"],
        "additionalProperties": False,
    }
    properties: dict[str, Any] = {"goal": text, "steps": {"type": "array", "items": step}}
    if template:
        properties["answer"] = {"type": "array", "items": {"anyOf": [text, anything]}}
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    # Arguments have the schema of their tool, references beside it: more than the strict dialect can say.
    return OutputSpec(name="plan", schema=schema, strict=False)


def answer_of(text: str) -> dict[str, Any]:
    """The JSON object that an answer is.

    Raises:
        Unusable: it is invalid.
    """
    try:
        return parse_json_object(text, longest=LONGEST)
    except NotOneObject as e:
        raise AnswerUnusable(str(e)) from None


def read_plan(
    text: str,
    registry: ToolRegistry,
    *,
    known: Collection[str] = (),
    max_steps: int = 30,
    template: bool = False,
) -> Plan:
    """The plan that a text is.

    Args:
        text: the planner's answer.
        registry: the tools that steps may call.
        known: steps of earlier plans that are done: their results may be referred to, their ids are taken.
        max_steps: of one plan.
        template: whether it must say how the answer is made.

    Raises:
        Unusable: it is invalid; the error lists everything that is wrong.
    """
    try:
        return _Reader(registry, known, template=template).plan(answer_of(text), max_steps)
    except RecursionError:
        raise AnswerUnusable("the answer is nested too deeply") from None


class _Reader:
    def __init__(self, registry: ToolRegistry, known: Collection[str], *, template: bool) -> None:
        self.registry, self.known, self.template = registry, known, template
        self.problems: list[str] = []

    def plan(self, form: dict[str, Any], max_steps: int) -> Plan:
        keys = {"goal", "steps"} | ({"answer"} if self.template else set())
        self.problems += [f"the plan has no {key!r}" for key in sorted(keys - set(form))]
        self.problems += [f"the plan has an unknown key {key!r:.80}" for key in sorted(set(form) - keys)]
        goal, given, answer = form.get("goal", ""), form.get("steps", []), form.get("answer", [])
        if not isinstance(goal, str) or not isinstance(given, list) or not isinstance(answer, list):
            raise AnswerUnusable(*self.problems, "goal must be a text, steps a list and answer a list")
        if len(given) > max_steps:
            raise AnswerUnusable(*self.problems, f"the plan must have at most {max_steps} steps, got {len(given)}")
        steps = [step for n, each in enumerate(given, 1) if (step := self.step(n, each)) is not None]
        ids = [step.id for step in steps]
        self.problems += [f"two steps are named {i!r}" for i in sorted({i for i in ids if ids.count(i) > 1})]
        self.problems += [f"a step named {i!r} is done already; take another name" for i in ids if i in self.known]
        self.refer(steps, ids)
        if not self.problems:
            self.circles(steps)
        self.answer(answer, ids)
        if self.problems:
            raise AnswerUnusable(*self.problems)
        return Plan(goal=" ".join(goal.split()), steps=steps, answer=answer)

    def step(self, number: int, form: Any) -> Step | None:
        """One step, or None where it is too wrong to be looked at more closely."""
        if not isinstance(form, dict):
            self.problems.append(f"step {number} is not an object")
            return None
        name = form.get("id")
        if not isinstance(name, str) or not _ID.fullmatch(name):
            self.problems.append(f"the id of step {number} must be 1 to 40 letters, digits, _ or -, got {name!r:.80}")
            return None
        found = [f"unknown key {key!r:.80}" for key in form if key not in _KEYS]
        found += [
            f"{key} is not {_WORDS[kind]}"
            for key, kind in _KEYS.items()
            if key in form and not isinstance(form[key], kind) and not (key == "tool" and form[key] is None)
        ]
        if not found:
            lists = [("decide", form.get("decide", {}).values()), ("depends_on", form.get("depends_on", []))]
            found = [f"{key} must hold texts only" for key, v in lists if not all(map(_is_text, v))]
        if found:
            self.problems += [f"step {name!r}: {problem}" for problem in found]
            return None
        return self.check_step(Step(**{**form, "description": " ".join(form.get("description", "").split())}))

    def check_step(self, step: Step) -> Step:
        """The step with what its arguments refer to among what it depends on."""
        try:
            referred = references(step.arguments)
        except Unresolved as e:
            self.problems.append(f"step {step.id!r}: {e}")
            referred = ()
        if step.tool is None:
            if step.arguments or step.decide:
                self.problems.append(f"step {step.id!r} calls no tool, so it must not have arguments or decide")
        else:
            self.problems += [f"step {step.id!r}: {problem}" for problem in self.misfits(step, step.tool)]
        needs = tuple(dict.fromkeys((*step.depends_on, *referred)))
        return evolve(step, depends_on=needs)

    def misfits(self, step: Step, name: str) -> list[str]:
        """What the tool would refuse whatever the results are."""
        tool = self.registry.get(name)
        if tool is None:
            return [self.registry.unknown(name)]
        both = sorted(set(step.arguments) & set(step.decide))
        found = [f"the argument {each!r} is both given and left to decide" for each in both]
        later = {each for each, value in step.arguments.items() if is_open(value)} | set(step.decide)
        known = tool.spec.properties
        found += [f"{name} has no parameter {each!r}; it has {', '.join(known)}" for each in later if each not in known]
        bound = tool.bind({each: thaw(value) for each, value in step.arguments.items() if each not in later})
        if isinstance(bound, ArgumentError):
            found += [f"{name}: {p}" for p in bound.problems if re.split(r"[.\[]", f"{p.path}.")[1] not in later]
        return found

    def refer(self, steps: list[Step], ids: list[str]) -> None:
        for step in steps:
            for needed in step.depends_on:
                if needed not in ids and needed not in self.known:
                    self.problems.append(f"step {step.id!r} needs {needed!r:.80}, which is not a step")

    def circles(self, steps: list[Step]) -> None:
        left, done = list(steps), set(self.known)
        while left:
            ready = {step.id for step in left if done.issuperset(step.depends_on)}
            if not ready:
                self.problems.append(f"these steps wait for one another: {', '.join(step.id for step in left)}")
                return
            done |= ready
            left = [step for step in left if step.id not in ready]

    def answer(self, parts: list[Any], ids: list[str]) -> None:
        if self.template and not parts and (ids or self.known):
            self.problems.append("answer is empty; say how the answer is made of the results")
        try:
            for part in parts:
                if not isinstance(part, str) and not is_open(part):
                    self.problems.append(f"answer must hold texts and references, got {part!r:.80}")
            missing = [each for each in references(parts) if each not in ids and each not in self.known]
        except Unresolved as e:
            self.problems.append(f"answer: {e}")
            return
        self.problems += [f"answer needs {each!r:.80}, which is not a step" for each in missing]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
