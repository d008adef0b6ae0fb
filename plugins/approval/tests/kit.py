"""What the tests share: tools that write down what they were called with, and an agent that asks before them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from locus import Agent, AgentResult, tool
from locus_testkit import ScriptedModel

__all__ = ["TOOLS", "agent", "contents", "question", "results"]

#: What was written, by path, in order.
written: list[tuple[str, str]] = []


@tool
async def write_file(path: str, contents: str = "", mode: str = "w") -> str:
    """Write a file."""
    written.append((path, contents))
    return f"wrote {path}"


@tool
async def remove_file(path: str) -> str:
    """Remove a file."""
    written.append((path, "removed"))
    return "removed"


@tool(effect="pure")
async def read_file(path: str) -> str:
    """Read a file."""
    return path


@tool
async def reboot() -> str:
    """Start anew."""
    written.append(("reboot", ""))
    return "up"


@tool(idempotent=True)
async def pay(cents: int) -> str:
    """Pay."""
    written.append(("pay", str(cents)))
    return f"paid {cents}"


@tool
async def append(path: str, line: str) -> str:
    """Add a line to a real file."""
    with Path(path).open("a") as file:  # noqa: ASYNC230
        file.write(f"{line}\n")
    return "added"


TOOLS = (write_file, remove_file, read_file, reboot, pay, append)


def agent(*turns: Any, tools: Sequence[Any] = TOOLS, **options: Any) -> Agent[Any, Any]:
    """An agent whose model makes these turns and then says "done"; it asks about every call with an effect."""
    # By the conversation, not by the number of requests: a run may go on with another agent.
    model = ScriptedModel(script=lambda _: [*turns, "done"])
    return Agent[Any, Any](model, tools=[*tools], **{"approval": True, **options})


def contents() -> list[tuple[str, str]]:
    """What was written since the test began."""
    return [*written]


def question(result: AgentResult[Any]) -> str:
    """The only open question."""
    (asked,) = result.interrupts
    return asked.question


def results(result: AgentResult[Any]) -> list[str]:
    """What the model read of its calls, in order."""
    return [str(block.content) for m in result.state.messages for block in m.tool_results]
