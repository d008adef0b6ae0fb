"""Content with subagents: a researcher finds the facts, and a post is written of them by the rules of the house."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from locus.deepagent import SubAgentDef, create_deepagent

from locus import tool


@tool(effect="pure")
def web_search(query: str) -> str:
    """Search the web for current information."""
    return "found in 1875"


def main(model: Any, folder: Path) -> Any:
    agent = create_deepagent(
        model=model,
        tools=[],
        system_prompt="You write content.",
        memory_files=[folder / "AGENTS.md"],
        skills={"folders": [str(folder / "skills")], "trusted": True},
        subagents=[
            SubAgentDef(
                name="researcher",
                description="Researches a topic before it is written about.",
                system_prompt="You are a research assistant. Search, and answer with notes.",
                tools=[web_search],
            )
        ],
        filesystem={"root": str(folder)},
    )
    task = "Write about gallium: notes to /research/gallium.md, then a post to /blogs/gallium/post.md."
    return {"answer": agent.run_sync(task).text, "todos": []}
