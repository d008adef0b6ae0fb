"""Research: two researchers look things up side by side, and a report is written of what they found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deepagents import create_deep_agent
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.tools import tool


@tool
def internet_search(query: str) -> str:
    """Run a web search."""
    return "found in 1875" if "discovery" in query else "melts at 29.8 degrees"


@tool
def think_tool(reflection: str) -> str:
    """Reflect on progress before the next step."""
    return reflection


def main(model: Any, folder: Path) -> Any:
    agent = create_deep_agent(
        model=model,
        tools=[internet_search, think_tool],
        system_prompt="Plan, save the request, delegate the research, and write /final_report.md.",
        subagents=[
            {
                "name": "research-agent",
                "description": "Researches one topic at a time.",
                "system_prompt": "You are a researcher. Search, reflect, then answer with citations.",
                "tools": [internet_search, think_tool],
            }
        ],
        middleware=[TodoListMiddleware()],
    )
    result = agent.invoke({"messages": "When was gallium found, and where does it melt?"})
    return {
        "answer": result["messages"][-1].text,
        "todos": result["todos"],
        "files": {path[1:]: file["content"] for path, file in result["files"].items()},
    }
