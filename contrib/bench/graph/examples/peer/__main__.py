"""The examples with LangGraph: ``python peer`` prints what each comes to, as JSON."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

os.environ["LANGSMITH_TRACING"] = "false"
sys.path.append(str(Path(__file__).resolve().parents[1]))

from cases import EXAMPLES, Call, Data, find_turn
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult


class Scripted(BaseChatModel):
    """Answers as an example says."""

    example: Any

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        turn = find_turn(self.example, messages[-1].text)
        if isinstance(turn, Call | Data):
            call: Any = {"id": f"call_{len(messages)}", "name": turn[0], "args": turn[1]}
            message = AIMessage(content="", tool_calls=[call])
        else:
            message = AIMessage(content=turn)
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _astream(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> Any:
        for word in re.findall(r"\s*\S+", str(find_turn(self.example, messages[-1].text))):
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))


def main() -> None:
    """Run each of them."""
    warnings.simplefilter("ignore")
    came = {}
    for name, example in EXAMPLES.items():
        made = importlib.import_module(name).main(Scripted(example=example))
        came[name] = asyncio.run(made) if inspect.iscoroutine(made) else made
    json.dump(came, sys.stdout)


main()
