"""Going in circles: the same calls again, or a short cycle of calls."""

from __future__ import annotations

from typing import Any

import pytest

from locus.core.state import AgentState, ToolExecution
from locus_kit.reflect import OnRepetition


def ran(keys: str, **changes: Any) -> AgentState:
    """A state whose executions have these keys, one letter each; a space begins the next iteration, or each letter."""
    built = AgentState(**changes)
    for iteration, batch in enumerate(keys.split() if " " in keys else keys):
        for key in batch:
            execution = ToolExecution(tool_name=key.upper(), key=key, result="ok", iteration=iteration)
            built = built.with_tool_execution(execution)
    return built


@pytest.mark.parametrize(
    ("keys", "repeats"),
    [
        ("aaa", True),
        ("baaa", True),
        ("aa", False),
        ("aab", False),
        ("abab", True),
        ("cabab", True),
        ("aba", False),
        ("abcabc", True),
        ("abcab", False),
        ("abcdabcd", False),
        ("", False),
        ("b aaa", False),
        ("abab c", False),
        ("ab ab", False),
        ("ab ab ab", True),
        ("ab cd ab cd", True),
        ("ab a ab", False),
        ("aa a a", False),
        ("aa a a a", True),
    ],
)
def test_repetition_is_the_same_call_or_a_short_cycle(keys: str, repeats: bool) -> None:
    assert (OnRepetition()(ran(keys)) is not None) is repeats
    assert (OnRepetition(3)(ran(keys, tool_loop_threshold=0)) is not None) is repeats


def test_repetition_is_measured_by_the_state_s_threshold() -> None:
    assert OnRepetition()(ran("aa", tool_loop_threshold=2)) == "A was called 2 times with the same arguments"
    assert OnRepetition()(ran("ab ab", tool_loop_threshold=2)) == "the same 2 calls were made 2 times"
    assert OnRepetition()(ran("aaa", tool_loop_threshold=4)) is None
    assert OnRepetition()(ran("ababab", tool_loop_threshold=4)) == "the last 2 calls repeat the 2 before them"
    assert OnRepetition()(ran("abab", tool_loop_threshold=4)) is None
    assert OnRepetition()(ran("aaaa", tool_loop_threshold=1)) is None


class Counted(tuple[ToolExecution, ...]):
    """A history that counts how many of its items were looked at."""

    looked_at = 0

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        Counted.looked_at += len(found) if isinstance(key, slice) else 1
        return found

    def __iter__(self) -> Any:
        raise AssertionError("the whole history was scanned")


def test_repetition_looks_only_at_the_end_of_the_history() -> None:
    seen = ran("abc" * 1000)
    object.__setattr__(seen, "tool_executions", Counted(seen.tool_executions))
    Counted.looked_at = 0
    assert OnRepetition()(seen) is not None
    assert Counted.looked_at <= 20


@pytest.mark.parametrize("threshold", [1, True, "3", 2.0])
def test_a_wrong_threshold_is_refused_at_build(threshold: Any) -> None:
    with pytest.raises(ValueError, match=r"^threshold must be an int of 2 or more, got"):
        OnRepetition(threshold)
