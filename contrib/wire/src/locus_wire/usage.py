"""The tokens that a server says it counted, in OpenAI's forms and those made after them: parts within wholes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from locus.core.messages import Usage

__all__ = ["count", "usage"]


def count(said: Any, *path: str) -> int:
    """A count in a server's answer, or 0.

    Args:
        said: an object; any other value holds no counts.
        path: the names of the fields that lead to the count.
    """
    for name in path:
        said = said.get(name) if isinstance(said, Mapping) else None
    return int(said) if isinstance(said, int | float) and said > 0 else 0


def usage(
    prompt: int, completion: int, *, cached: int = 0, written: int = 0, reasoning: int = 0, cost: float | None = None
) -> Usage:
    """The usage in which no part is larger than its whole.

    Args:
        prompt: tokens of the request.
        completion: tokens of the answer.
        cached: those of the prompt that were read from a cache.
        written: those of the prompt that were written to one.
        reasoning: those of the answer that are reasoning; some servers leave them out of it.
        cost: dollars, where the server says them.
    """
    cached = min(cached, prompt)
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=max(completion, reasoning),
        cached_tokens=cached,
        cache_write_tokens=min(written, prompt - cached),
        reasoning_tokens=reasoning,
        cost=cost,
    )
