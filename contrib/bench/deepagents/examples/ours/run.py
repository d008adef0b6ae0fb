"""Runs the examples with this framework."""

from __future__ import annotations

import importlib
import json
import tempfile
from pathlib import Path
from typing import Any

from contrib.bench.deepagents.examples.cases import EXAMPLES, Call, Example, find_turn, put_files, read_files

from locus.core.messages import Message
from locus.models import ModelRequest
from locus_testkit import ScriptedModel, Turn, call

__all__ = ["run_example"]


def lines_of(message: Message) -> list[tuple[str, str]]:
    if message.tool_results:
        return [("tool", str(result.content)) for result in message.tool_results]
    return [(message.role.value, message.text)]


def call_of(turn: Call) -> Any:
    """A call, its todos as text."""
    given = {f"{key}_json": json.dumps(value) for key, value in turn.arguments.items() if key == "todos"}
    return call(turn.tool, **(given or turn.arguments))


def model_of(example: Example) -> ScriptedModel:
    """A model that answers as an example says."""

    def answer(request: ModelRequest) -> Turn:
        turn = find_turn(example, [line for message in request.messages for line in lines_of(message)])
        return turn if isinstance(turn, str) else [*map(call_of, turn)]

    return ScriptedModel(answer, after="repeat")


def run_example(name: str) -> Any:
    """What an example comes to: the answer, the todos, and the files of the run and of the folder."""
    example = EXAMPLES[name]
    main = importlib.import_module(f"{__package__}.{name}").main
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        put_files(folder, example.files)
        came = main(model_of(example), folder)
        return {**came, "files": {**came.get("files", {}), **read_files(folder)}}
