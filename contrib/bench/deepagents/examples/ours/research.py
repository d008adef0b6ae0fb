"""Research: two researchers look things up side by side, and a report is written of what they found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from locus.deepagent import SubAgentDef, create_deepagent

from locus import tool


@tool(effect="pure")
def internet_search(query: str) -> str:
    """Run a web search."""
    return "found in 1875" if "discovery" in query else "melts at 29.8 degrees"


@tool(effect="pure")
def think_tool(reflection: str) -> str:
    """Reflect on progress before the next step."""
    return reflection


def main(model: Any, folder: Path) -> Any:
    agent = create_deepagent(
        model=model,
        tools=[internet_search, think_tool],
        system_prompt="Plan, save the request, delegate the research, and write /final_report.md.",
        subagents=[
            SubAgentDef(
                name="research-agent",
                description="Researches one topic at a time.",
                system_prompt="You are a researcher. Search, reflect, then answer with citations.",
                tools=[internet_search, think_tool],
            )
        ],
        enable_filesystem=True,
        enable_todos=True,
    )
    result = agent.run_sync("When was gallium found, and where does it melt?")
    return {
        "answer": result.text,
        "todos": result.state.metadata["todos"],
        "files": {key[6:]: file["text"] for key, file in result.state.metadata.items() if key.startswith("files/")},
    }
