"""Three tools for a first run: exact arithmetic, which a language model alone gets wrong.

    locus run "What is 1234 * 5678? Use the tool." --tools contrib/examples/arithmetic.py

Each carries a worked example: a small model calls a tool right far more often when it has seen one call.
"""

from __future__ import annotations

from locus import tool


def _plain(number: float) -> int | float:
    """A whole number without ".0": the model repeats what it reads."""
    return int(number) if number == int(number) else number


@tool(
    effect="pure",
    examples=[
        {
            "user": "What is 417 plus 86?",
            "arguments": {"a": 417, "b": 86},
            "result": "503",
            "answer": "417 plus 86 is 503.",
        }
    ],
)
def add(a: float, b: float) -> int | float:
    """Add two numbers.

    Args:
        a: the first number.
        b: the second number.
    """
    return _plain(a + b)


@tool(
    effect="pure",
    examples=[
        {
            "user": "What is 31 * 907? Use the tool.",
            "arguments": {"a": 31, "b": 907},
            "result": "28117",
            "answer": "31 * 907 is 28117.",
        }
    ],
)
def multiply(a: float, b: float) -> int | float:
    """Multiply two numbers.

    Args:
        a: the first factor.
        b: the second factor.
    """
    return _plain(a * b)


@tool(
    effect="pure",
    examples=[
        {
            "user": "Divide 918 by 27.",
            "arguments": {"a": 918, "b": 27},
            "result": "34",
            "answer": "918 divided by 27 is 34.",
        }
    ],
)
def divide(a: float, b: float) -> int | float:
    """Divide one number by another.

    Args:
        a: what is divided.
        b: what it is divided by; not 0.
    """
    return _plain(a / b)
