"""The examples with deepagents: ``python peer`` prints what each comes to, as JSON."""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

os.environ["LANGSMITH_TRACING"] = "false"
sys.path.append(str(Path(__file__).resolve().parents[1]))

from cases import EXAMPLES, Call, find_turn, put_files, read_files
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

ROLES = {"system": "system", "human": "user", "ai": "assistant", "tool": "tool"}
NAMES = {"path": "file_path", "contents": "content", "old_str": "old_string", "new_str": "new_string"}


def named(call: Call) -> tuple[str, dict[str, Any]]:
    """A call with the names that deepagents has: it reads skills with its tool for files."""
    if call.tool == "read_skill":
        return "read_file", {"file_path": f"/skills/{call.arguments['name']}/SKILL.md"}
    return call.tool, {NAMES.get(key, key): value for key, value in call.arguments.items()}


class Scripted(BaseChatModel):
    """Answers as an example says."""

    example: Any

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
        turn = find_turn(self.example, [(ROLES[message.type], message.text) for message in messages])
        message = AIMessage(content=turn if isinstance(turn, str) else "")
        if not isinstance(turn, str):
            made: list[Any] = [
                {"id": f"call_{len(messages)}_{number}", "name": name, "args": arguments}
                for number, (name, arguments) in enumerate(map(named, turn))
            ]
            message = AIMessage(content="", tool_calls=made)
        return ChatResult(generations=[ChatGeneration(message=message)])


def main() -> None:
    """Run each of them."""
    warnings.simplefilter("ignore")
    came = {}
    for name, example in EXAMPLES.items():
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            put_files(folder, example.files)
            result = importlib.import_module(name).main(Scripted(example=example), folder)
            came[name] = {**result, "files": {**result.get("files", {}), **read_files(folder)}}
    json.dump(came, sys.stdout)


main()
