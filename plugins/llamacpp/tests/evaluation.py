"""Measures how many of 32 tool tasks an embedded model solves; run by hand, it takes minutes.

    nice python plugins/llamacpp/tests/evaluation.py qwen2.5-coder-1.5b own
    nice python plugins/llamacpp/tests/evaluation.py qwen2.5-coder-0.5b generic --only 'calc|book'

A task is solved when every expected call was made in order with the right arguments, the model gave an
answer, and the answer holds the fact asked for. Decoding is greedy, so a run repeats on one machine.
"""

from __future__ import annotations

import argparse
import ast
import json
import operator
import re
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
from attrs import evolve, frozen

from locus.core.messages import Message, Role, ToolResult, Usage
from locus.models.protocol import ModelRequest, ModelSettings
from locus.tools.definition import ToolExample, ToolSpec
from locus_plugin_llamacpp.model import LlamaCppModel, make

DATA = Path(__file__).with_name("data") / "tool_cases.json"
MAX_TURNS = 8
MAX_TOKENS = 128

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


def arithmetic(text: str) -> float:
    """The value of an expression of numbers; ValueError for anything else."""

    def value(node: ast.AST) -> Any:
        match node:
            case ast.Expression(body):
                return value(body)
            case ast.Constant(int() | float() as number):
                return number
            case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
                a, b = value(left), value(right)
                if isinstance(op, ast.Pow) and abs(b) > 64:
                    raise ValueError("the exponent is too large")
                return _OPERATORS[type(op)](a, b)
            case ast.UnaryOp(op, operand) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](value(operand))
        raise ValueError("not arithmetic")

    try:
        found = value(ast.parse(text.replace(",", "").strip(), mode="eval"))
    except (SyntaxError, ArithmeticError) as error:
        raise ValueError(str(error)) from error
    return int(found) if float(found).is_integer() else round(found, 4)


def as_written(text: str) -> float:
    """The same, with the signs that people write: ``3 x 2^4``."""
    return arithmetic(text.replace("^", "**").replace("x", "*"))


class World:
    """The tools' bodies over the data; nothing in it is random or remembered."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._files, self._weather, self._flights = data["files"], data["weather"], data["flights"]

    def run(self, name: str, arguments: Mapping[str, Any]) -> str:
        """What a tool returns; a wrong argument is a result the model must live with."""
        try:
            return str(getattr(self, f"_{name}")(**arguments))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return f"error: {type(error).__name__} {error}"

    def _calculator(self, expression: str) -> float:
        return as_written(expression)

    def _get_weather(self, city: str) -> str:
        celsius, sky = self._weather[city.split(",")[0].strip().lower()]
        return json.dumps({"city": city, "temperature_c": celsius, "sky": sky})

    def _search_flights(self, origin: str, destination: str) -> str:
        rows = self._flights.get(f"{origin.strip().lower()}-{destination.strip().lower()}", [])
        return json.dumps([dict(zip(("flight_id", "price", "departs"), row, strict=True)) for row in rows])

    def _book_flight(self, flight_id: str, passenger: str) -> str:
        if flight_id not in {row[0] for rows in self._flights.values() for row in rows}:
            return "error: unknown flight_id"
        return f"booked {flight_id} for {passenger}, confirmation OK-{flight_id}"

    def _list_files(self) -> str:
        return ", ".join(self._files)

    def _read_file(self, path: str) -> str:
        name = path.strip().removeprefix("./").lstrip("/")
        return self._files.get(name) or f"error: no file {name}; files: {', '.join(self._files)}"

    def _grep(self, text: str) -> str:
        lines = ((name, line) for name, body in self._files.items() for line in body.splitlines())
        return "\n".join(f"{name}: {line}" for name, line in lines if text.lower() in line.lower()) or "no match"


@frozen
class Outcome:
    """How one task went."""

    id: str
    kind: str
    calls_right: bool
    finished: bool
    answer_right: bool
    turns: tuple[tuple[float, Usage], ...]
    calls: tuple[tuple[str, Mapping[str, Any]], ...]
    answer: str

    @property
    def solved(self) -> bool:
        return self.calls_right and self.finished and self.answer_right


def tools(data: Mapping[str, Any], examples: str) -> tuple[ToolSpec, ...]:
    """The tools of the world, with their own examples or without any (``"generic"``)."""
    made = []
    for entry in data["tools"]:
        properties = {
            name: {"type": "string", "description": about, "maxLength": 200}
            for name, about in entry["parameters"].items()
        }
        schema = {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
        own = tuple(ToolExample(**example) for example in entry.get("examples", ()))
        made.append(ToolSpec(name=entry["name"], description=entry["description"], parameters=schema, examples=own))
    return tuple(made) if examples == "own" else tuple(evolve(tool, examples=()) for tool in made)


def fits(wanted: Mapping[str, Any], name: str, arguments: Mapping[str, Any]) -> bool:
    """Whether a call is the one that was expected."""
    if name != wanted["tool"]:
        return False
    for argument, test in wanted["args"].items():
        found = str(arguments.get(argument, ""))
        plain = found.strip().lower().removeprefix("./")
        if argument == "city":
            plain = plain.split(",")[0].strip()
        if "worth" in test:
            try:
                right = abs(as_written(found) - test["worth"]) < 1e-6
            except ValueError:
                right = False
        elif "holds" in test:
            right = test["holds"].lower() in plain
        else:
            right = plain in [value.lower() for value in test["is"]]
        if not right:
            return False
    return True


def calls_right(case: Mapping[str, Any], calls: list[tuple[str, Mapping[str, Any]]]) -> bool:
    """Whether all expected calls were made; a task without any must have none."""
    if not case["calls"]:
        return not calls
    used: set[int] = set()
    start = 0
    for alternatives in case["calls"]:
        at = next(
            (
                i
                for i in range(0 if case.get("any_order") else start, len(calls))
                if i not in used and any(fits(wanted, *calls[i]) for wanted in alternatives)
            ),
            None,
        )
        if at is None:
            return False
        used.add(at)
        start = at + 1
    return True


async def solve(model: LlamaCppModel, world: World, offered: tuple[ToolSpec, ...], case: Mapping[str, Any]) -> Outcome:
    """Run one task to its answer, or for at most eight turns."""
    messages = [Message(Role.USER, case["prompt"])]
    calls: list[tuple[str, Mapping[str, Any]]] = []
    turns: list[tuple[float, Usage]] = []
    answer: str | None = None
    for _ in range(MAX_TURNS):
        started = time.perf_counter()
        response = await model.complete(
            ModelRequest(messages=tuple(messages), tools=offered, settings=ModelSettings(max_tokens=MAX_TOKENS))
        )
        turns.append((time.perf_counter() - started, response.usage))
        messages.append(response.message)
        if not response.tool_calls:
            answer = response.message.text
            break
        for call in response.tool_calls:
            calls.append((call.name, call.arguments))
            messages.append(
                Message(Role.TOOL, ToolResult(call.id, world.run(call.name, call.arguments), name=call.name))
            )
    said = (answer or "").lower()
    return Outcome(
        case["id"],
        case["kind"],
        calls_right(case, calls),
        answer is not None,
        answer is not None and (not case["answers"] or any(fact.lower() in said for fact in case["answers"])),
        tuple(turns),
        tuple(calls),
        answer or "",
    )


def summary(outcomes: list[Outcome]) -> str:
    """One line of percentages, as the table in the README has them."""

    def percent(test: Callable[[Outcome], bool], kind: str | None = None) -> str:
        chosen = [outcome for outcome in outcomes if kind in (None, outcome.kind)]
        return f"{round(100 * sum(map(test, chosen)) / len(chosen))}" if chosen else "-"

    seconds = sorted(turn[0] for outcome in outcomes for turn in outcome.turns)
    usage = sum((turn[1] for outcome in outcomes for turn in outcome.turns), Usage())
    kinds = " / ".join(percent(lambda o: o.calls_right, kind) for kind in ("one", "several", "none"))
    return (
        f"calls right {percent(lambda o: o.calls_right)} ({kinds}), finished {percent(lambda o: o.finished)}, "
        f"answer {percent(lambda o: o.answer_right)}, SOLVED {percent(lambda o: o.solved)} of {len(outcomes)}; "
        f"s per turn p50 {statistics.median(seconds):.1f} p90 {seconds[int(len(seconds) * 0.9)]:.1f}; "
        f"prompt tokens cached {round(100 * usage.cached_tokens / usage.prompt_tokens)} %"
    )


async def main(arguments: argparse.Namespace) -> None:
    """Run the chosen tasks one after the other."""
    data = json.loads(DATA.read_text("utf-8"))
    model, world, offered = make(arguments.model), World(data), tools(data, arguments.examples)
    await model.prepare()
    outcomes = []
    for case in data["cases"]:
        if arguments.only and not re.match(arguments.only, case["id"]):
            continue
        outcome = await solve(model, world, offered, case)
        outcomes.append(outcome)
        mark = "ok " if outcome.solved else "NO "
        sys.stdout.write(f"{mark} {outcome.id:9} {json.dumps(outcome.calls)} => {outcome.answer[:90]}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{arguments.model} {arguments.examples}: {summary(outcomes)}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="what follows llamacpp:")
    parser.add_argument("examples", choices=["own", "generic"])
    parser.add_argument("--only", help="a pattern that the ids of the tasks start with")
    anyio.run(main, parser.parse_args())
