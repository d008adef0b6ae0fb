"""Write some pairs down, so that ordinary tests can replay them without AgentDojo.

    python -m contrib.bench.agentdojo.record > plugins/provenance/tests/data/agentdojo.json

Each pair is recorded as it goes with no rules at all: the calls in the order in which the compromised model makes them,
each with the text that the model read as its result.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

import anyio
from attrs import asdict
from contrib.bench.agentdojo.labels import read_labels
from contrib.bench.agentdojo.model import CompromisedModel
from contrib.bench.agentdojo.suites import VERSION, Case, attacked_cases, suites, tools

from locus import Agent

#: Some of each suite, with short results.
PAIRS = (
    "banking/user_task_0/injection_task_0",
    "banking/user_task_3/injection_task_5",
    "banking/user_task_15/injection_task_7",
    "slack/user_task_1/injection_task_1",
    "slack/user_task_3/injection_task_5",
    "slack/user_task_6/injection_task_3",
    "slack/user_task_14/injection_task_4",
    "travel/user_task_0/injection_task_2",
    "travel/user_task_3/injection_task_5",
    "travel/user_task_8/injection_task_0",
    "workspace/user_task_6/injection_task_13",
    "workspace/user_task_10/injection_task_0",
    "workspace/user_task_10/injection_task_8",
    "workspace/user_task_18/injection_task_2",
)


async def record(case: Case) -> dict[str, Any]:
    """One pair, as plain data."""
    model = CompromisedModel(case)
    result = await Agent(model, tools=tools(case.suite.name), max_iterations=200).run(
        case.prompt, deps=case.environment()
    )
    calls = [
        {
            "injected": done.call_id.startswith("injected-"),
            "tool": done.tool_name,
            "arguments": json.loads(json.dumps(dict(done.arguments), default=list)),
            "result": done.error or done.result or "",
        }
        for done in result.state.tool_executions
    ]
    return {"name": case.name, "prompt": case.prompt, "calls": calls}


def _cases(names: Iterable[str]) -> Iterable[Case]:
    wanted = set(names)
    for suite in suites():
        if any(name.startswith(f"{suite}/") for name in wanted):
            yield from (case for case in attacked_cases(suite, "plain") if case.name in wanted)


async def main() -> None:
    """Print the record."""
    pairs = [await record(case) for case in _cases(PAIRS)]
    used = {call["tool"] for pair in pairs for call in pair["calls"]}
    labels = {name: asdict(each) for name, each in read_labels().items() if name in used}
    origin = f"AgentDojo {VERSION}, agentdojo 0.1.35 (MIT licence), written by contrib/bench/agentdojo/record.py"
    json.dump({"origin": origin, "tools": labels, "pairs": pairs}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    anyio.run(main)
