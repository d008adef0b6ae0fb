"""When to reflect: by cadence, after an error, and when the same calls, or a short cycle of them, come again."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from locus.core.state import AgentState, ToolExecution
from locus_kit.reflect import AfterTool, EveryIterations, OnRepetition, OnToolError


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
        ("abcdabcd", True),
        ("xabcdabcd", True),
        ("abcdabce", False),
        ("abcdefabcdef", True),
        ("abcdefgabcdefg", False),
        ("ab ba ab", True),
        ("ab cd ba dc", True),
        ("abc bca cab", True),
        ("aab abb aab", False),
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
    assert Counted.looked_at <= 20  # twelve turns, and the one before them


@pytest.mark.parametrize("threshold", [1, True, "3", 2.0])
def test_a_wrong_threshold_is_refused_at_build(threshold: Any) -> None:
    with pytest.raises(ValueError, match=r"^threshold must be an int of 2 or more, got"):
        OnRepetition(threshold)


def test_the_cadence_counts_iterations_from_one() -> None:
    due = [i for i in range(9) if EveryIterations(3)(AgentState(iteration=i)) is not None]
    assert due == [2, 5, 8]
    assert EveryIterations(1)(AgentState()) == "every iteration"


def test_an_error_of_the_current_iteration_is_a_reason_to_reflect() -> None:
    failed = ToolExecution(tool_name="search", error="ValueError: no", iteration=1)
    fine = ToolExecution(tool_name="other", result="ok", iteration=1)
    seen = AgentState(iteration=1).with_tool_execution(failed).with_tool_execution(fine)
    assert OnToolError()(seen) == "search failed"
    assert OnToolError()(seen.with_iteration(2)) is None
    refused = evolve(failed, started=False)
    assert OnToolError()(AgentState(iteration=1).with_tool_execution(refused)) is None


@pytest.mark.parametrize(
    "build",
    [lambda: EveryIterations(0), lambda: EveryIterations(True)],
    ids=["0", "True"],
)
def test_a_wrong_interval_is_refused_at_build(build: Any) -> None:
    with pytest.raises(ValueError, match="must be an int of 1 or more, got"):
        build()


def test_after_a_tool_means_after_an_iteration_in_which_it_succeeded() -> None:
    policy = AfterTool(("A",))
    assert policy(ran("b")) is None
    assert policy(evolve(ran("a b"), iteration=1)) is None  # it was in the iteration before
    assert policy(evolve(ran("xx ab"), iteration=1)) == "A was called"
    failed = ToolExecution(tool_name="A", error="ValueError: no", iteration=0)
    assert policy(AgentState().with_tool_execution(failed)) is None
    with pytest.raises(ValueError, match="names must be a list of strings"):
        AfterTool("A")  # type: ignore[arg-type]
