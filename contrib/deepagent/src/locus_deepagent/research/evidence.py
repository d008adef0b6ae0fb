"""Evidence: what an execution leaves behind, and how it is shown to a model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from locus.schema import clean_text
from locus_kit.judging import quote

if TYPE_CHECKING:
    from locus import AgentResult
    from locus.core.state import ToolExecution

__all__ = ["CONCLUSION", "Fact", "confirming", "extend", "facts_of", "show"]

#: Characters of one fact.
CUT: Final = 2_000
#: What a run gathers at most. What came first is kept: claims cite it by its place.
MOST_FACTS: Final = 40
MOST_CHARS: Final = 60_000

#: What the agent's own words begin with, and where they come from.
CONCLUSION: Final = "[conclusion] "
AGENT: Final = "agent_conclusion"

#: What the model reads where a tool returned None.
_DONE: Final = "(done, no result)"
#: What the tools for files answer in place of a failure: it is about the path, and says nothing about the topic.
_FILE_TOOLS: Final = frozenset({"write_file", "read_file", "ls", "edit_file", "glob", "grep"})
_CODES: Final = frozenset(
    {
        "conflict",
        "file_not_found",
        "invalid_path",
        "invalid_pattern",
        "is_directory",
        "not_text",
        "permission_denied",
        "timeout",
        "too_large",
    }
)
_FACT_ID = re.compile(r"fact_(\d{1,9})")


@frozen
class Fact:
    """One piece of evidence.

    Args:
        text: what was said.
        source: the tool that said it.
    """

    text: str
    source: str


def facts_of(result: AgentResult[Any]) -> tuple[list[Fact], Fact | None]:
    """What the tools of a run said, and what the agent concluded from it, if anything."""
    executions = result.state.tool_executions
    facts = [Fact(text[:CUT], each.tool_name) for each in executions if (text := _read(each)) is not None]
    said = clean_text(result.text).strip()
    return facts, Fact(CONCLUSION + said[:CUT], AGENT) if said else None


def _read(execution: ToolExecution) -> str | None:
    """The result of a call; None where it failed, or returned what a program would call false."""
    text = execution.result
    if not execution.succeeded or text is None or text == _DONE or not text.strip():
        return None
    if execution.tool_name in _FILE_TOOLS and text.partition(":")[0] in _CODES:
        return None
    if len(text) > len("-0.000"):  # every JSON value that is false is shorter
        return text
    try:
        return text if json.loads(text) else None
    except ValueError:
        return text


def extend(
    evidence: Sequence[str], facts: Sequence[Any], found: Sequence[Fact], conclusion: Fact | None
) -> tuple[list[str], list[Any]]:
    """Evidence and facts with what an execution has found, as far as it fits.

    Args:
        evidence: the texts so far.
        facts: the same with ids and sources; ids continue.
        found: what the tools said, oldest first. What does not fit any more is left out.
        conclusion: what the agent said, for which a place is kept.
    """
    last = [] if conclusion is None else [conclusion]
    places = MOST_FACTS - len(evidence) - len(last)
    room = MOST_CHARS - sum(map(len, evidence)) - sum(len(each.text) for each in last)
    taken: list[Fact] = []
    last = last if places >= 0 and room >= 0 else []
    for fact in found[: max(0, places)]:
        room -= len(fact.text)
        if room < 0:
            break
        taken.append(fact)
    taken += last
    begin = _next_id(facts)
    new = [{"id": f"fact_{n:03d}", "text": fact.text, "source": fact.source} for n, fact in enumerate(taken, begin)]
    return [*evidence, *(fact.text for fact in taken)], [*facts, *new]


def _next_id(facts: Iterable[Any]) -> int:
    ids = (str(fact.get("id", "")) for fact in facts if isinstance(fact, Mapping))
    return max((int(found[1]) + 1 for each in ids if (found := _FACT_ID.fullmatch(each))), default=0)


def show(evidence: Sequence[str]) -> str:
    """Evidence as a model reads it: numbered, as data, what the agent concluded first.

    Each line of an item but its first is indented, so that no item can contain another one's number.
    """
    numbered = [f"[{n}] {_indent(text)}" for n, text in enumerate(evidence, 1)]
    ordered = sorted(range(len(evidence)), key=lambda i: not evidence[i].startswith(CONCLUSION))
    return quote([("Evidence", "\n\n".join(numbered[i] for i in ordered))])


def _indent(text: str) -> str:
    return "\n    ".join(text.splitlines())


def confirming(evidence: Sequence[str], cited: Iterable[int]) -> tuple[int, ...]:
    """The places, from 0, of the evidence that may confirm a claim.

    That is what it cites, else everything. The agent's own conclusion confirms nothing that a tool could confirm: it
    counts only where no tool said anything.

    Args:
        evidence: the texts.
        cited: numbers, from 1.
    """
    said = [i for i, text in enumerate(evidence) if not text.startswith(CONCLUSION)] or range(len(evidence))
    return tuple(i for i in said if i + 1 in set(cited)) or tuple(said)
