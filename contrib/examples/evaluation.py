"""An evaluation of an agent over a data set: k tries a case, a table with intervals, and an exit status for CI.

    python contrib/examples/evaluation.py cases.jsonl --tries 3 --at-least 0.9

It needs the plugin of the model. A line of the data set is {"id": ..., "prompt": ..., "answer": ..., "tool": ...}: the
text that the answer must have as a whole word, and the tool that must have been called, if any.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import re
import sys
from pathlib import Path
from typing import Any

import anyio
from attrs import frozen

from locus import Agent, AgentResult, TimeLimit, TokenLimit, tool


@frozen
class Case:
    """One line of the data set."""

    id: str
    prompt: str
    answer: str
    tool: str = ""

    def find_fault(self, result: AgentResult[Any]) -> str:
        """What is wrong with a run, or ``""``."""
        if result.stop_reason != "NoToolCalls":
            return f"ended as {result.stop_reason}"
        if self.tool and self.tool not in {done.tool_name for done in result.state.tool_executions if not done.error}:
            return f"{self.tool} was not called"
        if not re.search(rf"(?<![\w.]){re.escape(self.answer)}(?!\w)", result.text, re.IGNORECASE):
            return f"expected {self.answer!r}, got {result.text!r:.60}"
        return ""


@tool(effect="pure")
def multiply(a: int, b: int) -> int:
    """Multiply two whole numbers."""
    return a * b


def build(model: Any) -> Agent[Any, Any]:
    """Make the agent that is judged; put your own here.

    Args:
        model: ``"provider:name"``, or a model.
    """
    limits = TokenLimit(10_000) | TimeLimit(120)
    return Agent(model, name="judged", tools=[multiply], termination=limits, max_iterations=5)


def read_cases(path: Path) -> list[Case]:
    """The cases of a file; a line that is not one is an error that names it."""
    cases = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            cases.append(Case(**json.loads(line)))
        except (TypeError, ValueError) as error:
            raise SystemExit(f"{path}:{number} is not a case: {error}") from error
    return cases


def estimate(passed: int, of: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a rate: unlike the usual one, it is right for few tries and rates near 0 and 1."""
    z, rate = 1.96, passed / of
    middle, spread = rate + z * z / (2 * of), z * math.sqrt(rate * (1 - rate) / of + z * z / (4 * of * of))
    return max(0.0, (middle - spread) / (1 + z * z / of)), min(1.0, (middle + spread) / (1 + z * z / of))


async def evaluate(agent: Agent[Any, Any], cases: list[Case], tries: int, at_once: int) -> dict[str, list[str]]:
    """The faults of each try of each case, by its id; a try without a fault is ``""``."""
    faults = {case.id: [""] * tries for case in cases}
    limiter = anyio.CapacityLimiter(at_once)

    async def judge(case: Case, number: int) -> None:
        async with limiter:
            faults[case.id][number] = case.find_fault(await agent.run(case.prompt))

    async with anyio.create_task_group() as group:
        for case in cases:
            for number in range(tries):
                group.start_soon(judge, case, number)
    return faults


def report(faults: dict[str, list[str]]) -> float:
    """Print the table, and return the rate of all tries."""
    for name, each in faults.items():
        print(f"{name:20} {each.count('')}/{len(each)}  {next(filter(None, each), '')}")
    tries = [fault for each in faults.values() for fault in each]
    low, high = estimate(tries.count(""), len(tries))
    print(f"{'all':20} {tries.count('')}/{len(tries)}  {tries.count('') / len(tries):.0%} ({low:.0%} to {high:.0%})")
    return tries.count("") / len(tries)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Evaluate an agent over a data set of JSON lines.")
    parser.add_argument("cases", type=Path)
    parser.add_argument("--tries", type=int, default=1, help="how often each case is tried")
    parser.add_argument("--at-once", type=int, default=4, help="how many runs there are at a time")
    parser.add_argument("--at-least", type=float, default=1.0, help="the rate below which the exit status is 1")
    parser.add_argument("--model", default=os.environ.get("LOCUS_MODEL", "llamacpp:qwen2.5-coder-1.5b"))
    args = parser.parse_args()
    outcome = asyncio.run(evaluate(build(args.model), read_cases(args.cases), args.tries, args.at_once))
    sys.exit(0 if report(outcome) >= args.at_least else 1)
