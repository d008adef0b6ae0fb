"""Content with subagents: a researcher finds the facts, and a post is written of them by the rules of the house."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from langchain_core.tools import tool


@tool
def web_search(query: str) -> str:
    """Search the web for current information."""
    return "found in 1875"


def main(model: Any, folder: Path) -> Any:
    agent = create_deep_agent(
        model=model,
        system_prompt="You write content.",
        memory=["/AGENTS.md"],
        skills=["/skills/"],
        subagents=[
            {
                "name": "researcher",
                "description": "Researches a topic before it is written about.",
                "system_prompt": "You are a research assistant. Search, and answer with notes.",
                "tools": [web_search],
            }
        ],
        backend=FilesystemBackend(root_dir=folder, virtual_mode=True),
    )
    task = "Write about gallium: notes to /research/gallium.md, then a post to /blogs/gallium/post.md."
    return {"answer": agent.invoke({"messages": task})["messages"][-1].text, "todos": []}
