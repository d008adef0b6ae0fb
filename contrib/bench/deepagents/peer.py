"""One case with deepagents: ``python peer.py CASE`` prints microseconds of CPU as JSON."""

from __future__ import annotations

import asyncio
import os
import sys
import warnings
from typing import Any

os.environ["LANGSMITH_TRACING"] = "false"

from cases import Script, measure
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

from deepagents import create_deep_agent

SCRIPT = Script()


class Scripted(BaseChatModel):
    """Calls a tool as often as the script says, then answers."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        key = SCRIPT.next_key()
        made: list[Any] = [] if key is None else [{"id": f"call_{key}", "name": "lookup", "args": {"key": key}}]
        return ChatResult(
            generations=[ChatGeneration(message=AIMessage(content="" if made else "done", tool_calls=made))]
        )

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        return self._generate(messages)


@tool
async def lookup(key: str) -> str:
    """Look an item up by its key."""
    return SCRIPT.look_up(key)


# No bound of tokens: otherwise it summarizes, which this framework does at a number of messages that is never reached.
MODEL = Scripted(profile={"max_input_tokens": 10**9})


LAYERS: dict[str, Any] = {
    "subagents": [
        {"name": f"s{number}", "description": "d", "system_prompt": "p", "tools": [lookup]} for number in range(3)
    ],
}


def build(*, layers: bool = False) -> Any:
    # Files, summaries and a general subagent are always there; todos are asked for.
    return create_deep_agent(
        model=MODEL, tools=[lookup], **({**LAYERS, "middleware": [TodoListMiddleware()]} if layers else {})
    )


def run(n: int) -> Any:
    agent = build(layers=True)

    async def main() -> None:
        SCRIPT.begin(n)
        result = await agent.ainvoke({"messages": "Look every item up."}, {"recursion_limit": 20 * n + 100})
        assert result["messages"][-1].text == "done"
        assert SCRIPT.looked_up == n

    return lambda: asyncio.run(main())


warnings.simplefilter("ignore")
measure(sys.argv[1], build, run)
