"""Coding with files: a bug is found, repaired and tested in a folder on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from langchain.agents.middleware import TodoListMiddleware


def main(model: Any, folder: Path) -> Any:
    agent = create_deep_agent(
        model=model,
        system_prompt="You are a coding assistant. Plan, change as little as needed, and test it.",
        backend=FilesystemBackend(root_dir=folder, virtual_mode=True),
        middleware=[TodoListMiddleware()],
    )
    result = agent.invoke({"messages": "Fix total in /cart.py, it ignores quantities; test it in /test_cart.py."})
    return {"answer": result["messages"][-1].text, "todos": result["todos"]}
