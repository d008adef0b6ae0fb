"""One case with this framework: ``python ours.py CASE`` prints microseconds of CPU as JSON."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from cases import Script, measure
from locus.deepagent import SubAgentDef, create_deepagent

from locus import tool
from locus.models import ModelRequest
from locus_testkit import ScriptedModel, call

SCRIPT = Script()


def answer(request: ModelRequest) -> Any:
    if request.purpose != "think":
        return '{"judgment": "", "verdict": "on_track", "confidence": 0.5, "guidance": ""}'
    key = SCRIPT.next_key()
    return "done" if key is None else call("lookup", key=key)


@tool(effect="pure")
async def lookup(key: str) -> str:
    """Look an item up by its key."""
    return SCRIPT.look_up(key)


# Reflexion, grounding and provenance are on, as by default, unless the case is about what the peer has as well.
ONLY_COMMON: dict[str, Any] = {"reflexion": False, "grounding": False, "provenance": False}
LAYERS: dict[str, Any] = {
    "enable_filesystem": True,
    "enable_todos": True,
    "summarize_after_messages": 10**9,
    "max_iterations": 10**6,
    "max_tokens": 10**12,
    "subagents": [
        SubAgentDef(name=f"s{number}", description="d", system_prompt="p", tools=[lookup]) for number in range(3)
    ],
}


def build(*, layers: bool = False) -> Any:
    model = ScriptedModel(answer, after="repeat")
    chosen = {**LAYERS, **(ONLY_COMMON if "layers of both" in sys.argv[1] else {})} if layers else {}
    return create_deepagent(model=model, tools=[lookup], system_prompt="p", **chosen)


def run(n: int) -> Any:
    agent = build(layers=True)

    async def main() -> None:
        SCRIPT.begin(n)
        result = await agent.run("Look every item up.")
        assert result.text == "done"
        assert SCRIPT.looked_up == n

    return lambda: asyncio.run(main())


measure(sys.argv[1], build, run)
