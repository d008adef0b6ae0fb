"""Coding with files: a bug is found, repaired and tested in a folder on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from locus.deepagent import create_deepagent


def main(model: Any, folder: Path) -> Any:
    agent = create_deepagent(
        model=model,
        tools=[],
        system_prompt="You are a coding assistant. Plan, change as little as needed, and test it.",
        filesystem={"root": str(folder)},
        todos=True,
    )
    result = agent.run_sync("Fix total in /cart.py, it ignores quantities; test it in /test_cart.py.")
    return {"answer": result.text, "todos": result.state.metadata["todos"]}
