"""Tools for the scripted models of `toy_provider`; loaded with ``--tools``."""

from __future__ import annotations

import time
from pathlib import Path

from locus import ToolContext, tool


@tool
def multiply(a: int, b: int) -> int:
    """Multiply two integers."""
    return a * b


@tool
def ask(ctx: ToolContext[None], question: str) -> str:
    """Ask a person."""
    return f"the person said {ctx.interrupt(question, options=['yes', 'no'])}"


@tool
def nap(seconds: float) -> str:
    """Sleep."""
    time.sleep(seconds)
    return "slept"


@tool
def gate() -> str:
    """Wait until the test opens the gate: a file in the working directory."""
    while not Path("gate").exists():
        time.sleep(0.01)
    return "the gate is open"
