"""Runs the examples with this framework."""

from __future__ import annotations

import importlib
import inspect
import json
from typing import Any

import anyio
from contrib.bench.graph.examples.cases import EXAMPLES, Call, Data, Example, find_turn

from locus.core.messages import Message
from locus.models import ModelRequest
from locus_testkit import ScriptedModel, Turn, call

__all__ = ["run_example"]


def text_of(message: Message) -> str:
    return message.text or "".join(str(result.content) for result in message.tool_results)


def model_of(example: Example) -> ScriptedModel:
    """A model that answers as an example says, word by word."""

    def answer(request: ModelRequest) -> Turn:
        turn = find_turn(example, text_of(request.messages[-1]))
        if isinstance(turn, Call):
            return call(turn.tool, **turn.arguments)
        return json.dumps(turn.fields) if isinstance(turn, Data) else turn

    return ScriptedModel(answer, chunks=True, after="repeat")


def run_example(name: str) -> Any:
    """What an example comes to."""
    main = importlib.import_module(f"{__package__}.{name}").main
    if inspect.iscoroutinefunction(main):
        return anyio.run(main, model_of(EXAMPLES[name]))
    return main(model_of(EXAMPLES[name]))
