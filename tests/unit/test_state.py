"""`AgentState`: what it takes, what it refuses, what it derives, and what it does with checkpoints."""

from __future__ import annotations

import gc
import json
import math
import weakref
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any, ClassVar
from uuid import UUID

import pytest
from attrs import evolve, frozen

from locus.core.codec import register_value
from locus.core.errors import CheckpointError, CheckpointTooNew, NotSerialisable
from locus.core.executions import QUESTIONS
from locus.core.frozen import FrozenDict
from locus.core.journal import apply, delta
from locus.core.messages import Message, Role, TextBlock, ToolCall, ToolResult, Usage, plugin_message
from locus.core.state import SCHEMA, AgentState, ReasoningStep, ToolExecution


def reloaded(state: AgentState) -> AgentState:
    """The state after it was on disk."""
    return AgentState.from_checkpoint(json.loads(json.dumps(state.to_checkpoint(), allow_nan=False)))


def committed(state: AgentState) -> AgentState:
    return state.commit(updated_at=state.updated_at, active_seconds=state.active_seconds, iteration=state.iteration)


# -- construction -----------------------------------------------------------------------------------


def test_a_new_state_has_an_id_of_its_own_and_the_documented_defaults() -> None:
    state, other = AgentState(), AgentState()
    assert state.run_id != other.run_id
    assert str(UUID(state.run_id)) == state.run_id
    assert (state.max_iterations, state.confidence_threshold, state.tool_loop_threshold) == (20, 0.8, 3)
    assert (state.iteration, state.confidence, state.total_tokens_used) == (0, 0.0, 0)
    assert state.started_at.tzinfo is UTC


def test_what_comes_as_a_list_is_kept_as_a_tuple() -> None:
    messages = [Message(Role.USER, "hi")]
    state = AgentState(messages=messages, errors=["e"], terminal_tools={"submit"})
    messages.clear()
    assert state.messages == (Message(Role.USER, "hi"),)
    assert state.errors == ("e",)
    assert state.terminal_tools == frozenset({"submit"})


@pytest.mark.parametrize(
    "options",
    [
        {"iteration": -1},
        {"iteration": True},
        {"iteration": 1.5},
        {"max_iterations": -1},
        {"confidence": math.nan},
        {"confidence": "high"},
        {"confidence_threshold": math.nan},
        {"prompt_tokens_used": -1},
        {"started_at": datetime(2026, 1, 1)},  # noqa: DTZ001 - it is what is refused
        {"updated_at": datetime(2026, 1, 1)},  # noqa: DTZ001 - it is what is refused
    ],
    ids=str,
)
def test_a_wrong_value_is_refused_by_name(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ValueError, match=name.removesuffix("_threshold")):
        AgentState(**options)


def test_a_tool_name_is_not_taken_for_a_set_of_letters() -> None:
    with pytest.raises((TypeError, ValueError), match="terminal_tools"):
        AgentState(terminal_tools="submit")


@pytest.mark.parametrize(("given", "kept"), [(1.5, 1.0), (-3, 0.0), (math.inf, 1.0), (-math.inf, 0.0), (1, 1.0)])
def test_confidence_is_clamped_and_remembered(given: float, kept: float) -> None:
    state = AgentState(confidence=0.5).with_confidence(given)
    assert (state.confidence, state.confidence_history) == (kept, (kept,))
    assert type(state.confidence) is float


def test_confidence_that_is_not_a_number_is_refused_and_not_taken_for_certainty() -> None:
    with pytest.raises(ValueError, match="nan"):
        AgentState().with_confidence(math.nan)


@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens", "cached_tokens"])
@pytest.mark.parametrize("value", [-1, 1.5, 2.0, math.nan, math.inf, True, "3", None], ids=repr)
def test_tokens_are_counted_in_whole_numbers(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must be an integer, 0 or more, got {value!r}"):
        AgentState().with_token_usage(**{name: value})


@pytest.mark.parametrize("cost", [-0.1, math.nan, True, "3"], ids=repr)
def test_dollars_are_a_number_and_never_negative(cost: Any) -> None:
    with pytest.raises(ValueError, match=f"cost must be a number of dollars, 0 or more, or None, got {cost!r}"):
        AgentState().with_token_usage(cost=cost)


@pytest.mark.parametrize(
    ("costs", "known"),
    [([], None), ([None], None), ([0.0], 0.0), ([None, 0.0], 0.0), ([0.0, None], 0.0), ([0.5, None, 0.0], 0.5)],
)
def test_a_known_price_of_zero_is_not_an_unknown_one(costs: list[float | None], known: float | None) -> None:
    state = AgentState()
    for cost in costs:
        state = state.with_usage(Usage(prompt_tokens=1, cost=cost))
    assert state.usage.cost == known
    assert AgentState.from_checkpoint(state.to_checkpoint()).usage.cost == known
    assert (state.usage - Usage()).cost == known


def test_a_state_of_before_prices_were_known_to_be_zero_keeps_its_dollars() -> None:
    assert AgentState(cost=0.25).usage.cost == 0.25


def test_a_state_cannot_be_changed() -> None:
    state = AgentState(messages=[Message(Role.USER, "hi")], metadata={"list": [1]})
    for name in ("iteration", "messages", "metadata", "something_new"):
        with pytest.raises(AttributeError):
            setattr(state, name, None)
    with pytest.raises(AttributeError):
        del state.iteration
    with pytest.raises(TypeError):
        state.metadata["list"] = ()
    with pytest.raises(AttributeError):
        state.metadata["list"].append(2)


# -- builders ---------------------------------------------------------------------------------------


def test_a_reasoning_step_takes_the_place_of_the_one_of_its_iteration() -> None:
    first, again, second = (
        ReasoningStep(iteration=0, thought="a"),
        ReasoningStep(iteration=0, thought="a", reflection="good"),
        ReasoningStep(iteration=1),
    )
    state = AgentState().with_reasoning_step(first).with_reasoning_step(again).with_reasoning_step(second)
    assert state.reasoning_steps == (again, second)


def test_a_step_replaced_after_a_commit_is_saved_as_replaced() -> None:
    base = committed(AgentState().with_reasoning_step(ReasoningStep(iteration=0, thought="a")))
    state = base.with_reasoning_step(ReasoningStep(iteration=0, reflection="b"))
    state = state.with_reasoning_step(ReasoningStep(iteration=0, reflection="c"))
    state = state.with_reasoning_step(ReasoningStep(iteration=1))
    made = delta(base, state)
    assert made.grown["reasoning_steps"] == (0, state.reasoning_steps)
    assert apply(base, made) == state


def test_a_difference_is_of_the_size_of_what_was_added() -> None:
    reads = 0

    class Loud(Message):
        """A message that tells when it is compared."""

        __slots__ = ()
        __hash__: ClassVar[None]  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            nonlocal reads
            reads += 1
            return self is other

    base = committed(AgentState(messages=[Loud(Role.USER, "x") for _ in range(1_000)]))
    made = delta(base, base.with_message(Message(Role.USER, "y")))
    assert reads == 0
    assert made.grown["messages"] == (1_000, (Message(Role.USER, "y"),))


def test_a_value_that_only_changes_its_type_is_saved() -> None:
    base = committed(AgentState(metadata={"n": 1, "zero": 0.0}))
    for value in (True, 1.0):
        state = base.with_metadata("n", value)
        assert repr(apply(base, delta(base, state)).metadata) == repr(state.metadata)


# -- derived ----------------------------------------------------------------------------------------

CALLS = Message(Role.ASSISTANT, [ToolCall("1", "a"), ToolCall("1", "b"), ToolCall("2", "c")])


def answer(*ids: str) -> Message:
    return Message(Role.TOOL, [ToolResult(i, "ok") for i in ids])


@pytest.mark.parametrize(
    ("messages", "open_calls"),
    [
        ((), []),
        ((Message(Role.USER, "hi"),), []),
        ((CALLS,), ["a", "b", "c"]),
        ((CALLS, answer("1")), ["b", "c"]),
        ((CALLS, answer("1"), answer("1")), ["c"]),
        ((CALLS, answer("1", "1", "2")), []),
        ((CALLS, answer("1", "1", "2"), Message(Role.ASSISTANT, "done")), []),
        ((CALLS, Message(Role.USER, "hi")), []),
    ],
    ids=["new", "asked", "called", "one result", "two results", "all results", "answered", "interrupted"],
)
def test_calls_are_open_until_their_results_follow(messages: Any, open_calls: list[str]) -> None:
    state = AgentState(messages=messages)
    assert [c.name for c in state.unanswered] == open_calls
    closed = state.with_calls_closed("Cancelled")
    assert closed.unanswered == ()
    assert [r.name for m in closed.messages[len(messages) :] for r in m.tool_results] == open_calls
    assert all(r.is_error for m in closed.messages[len(messages) :] for r in m.tool_results)
    if not open_calls:
        assert closed is state


def test_the_last_assistant_message_is_one_of_this_turn() -> None:
    old, new = Message(Role.ASSISTANT, "old"), Message(Role.ASSISTANT, "new")
    user, feedback = Message(Role.USER, "hi"), Message(Role.USER, "not quite")
    assert AgentState(messages=[user, old, user]).last_assistant is None
    assert AgentState(messages=[user, old, user, new, answer("1")]).last_assistant is new
    assert AgentState(messages=[user, new]).with_revision(feedback).last_assistant is new
    noted = plugin_message("judge", "Go on.")
    assert AgentState(messages=[user, new, answer("1"), noted]).last_assistant is new
    assert AgentState(messages=[user, old, noted, user, noted]).last_assistant is None
    assert AgentState().last_assistant is None


def test_the_first_execution_that_matches_is_found_and_each_is_asked_once() -> None:
    asked = []

    def large(arguments: Any) -> bool:
        asked.append(arguments["n"])
        return bool(arguments["n"] > 2)

    state = AgentState()
    for n in range(5):
        state = state.with_tool_execution(ToolExecution(tool_name="t", arguments={"n": n}))
        state.first_execution("t", large)
    found = state.first_execution("t", large)
    assert found is not None
    assert found.arguments["n"] == 3
    assert asked == [0, 1, 2, 3]


def test_questions_that_are_made_again_each_time_do_not_pile_up() -> None:
    asked: list[int] = []

    def never(arguments: Any) -> bool:
        asked.append(arguments["n"])
        return False

    state = AgentState()
    alive = weakref.WeakSet[Any]()
    for n in range(400):
        state = state.with_tool_execution(ToolExecution(tool_name="t", arguments={"n": n}))
        fresh = lambda arguments, n=n: bool(arguments["n"] > n)  # noqa: E731
        alive.add(fresh)
        assert state.first_execution("t", fresh) is None
        assert state.first_execution("t", never) is None
    del fresh
    gc.collect()
    assert len(alive) <= QUESTIONS
    # What is asked all the time is never forgotten, so nothing is tested twice for it.
    assert asked == list(range(400))


def test_an_execution_answers_for_its_key_unless_nothing_happened() -> None:
    started = ToolExecution(tool_name="t", key="k", result="a")
    again = ToolExecution(tool_name="t", key="k", result="b")
    refused = ToolExecution(tool_name="t", key="k", error="bad", started=False)
    nothing = ToolExecution(tool_name="t", key="k", error="busy", retryable=True)
    state = AgentState().with_results((), [refused, nothing])
    assert state.find_execution("k") is None
    assert state.with_results((), [started, nothing, refused]).find_execution("k") is started
    assert state.with_results((), [started, again]).find_execution("k") is again
    assert state.find_execution("other") is None


# -- metadata ---------------------------------------------------------------------------------------


@frozen
class Money:
    """An application's own value."""

    cents: int


class Unknown:
    """A value without a JSON form."""


register_value(Money, "tests.Money", lambda m: {"cents": m.cents}, lambda data: Money(data["cents"]))


def test_metadata_survives_as_what_it_is() -> None:
    kept = {
        1: "an integer key",
        (2, "b"): frozenset({1, (2, 3)}),
        "tuple": (1, (2,)),
        "$": {"$": "map", "v": 1},
        "bytes": b"\x00\xff",
        "at": datetime(2026, 5, 4, tzinfo=UTC),
        "on": date(2026, 5, 4),
        "far": -math.inf,
        "own": (Money(5),),
        "none": None,
    }
    state = AgentState(metadata={"all": kept})
    restored = reloaded(state)
    assert restored == state
    assert restored.metadata["all"] == kept
    assert type(restored.metadata["all"]["tuple"]) is tuple
    assert [type(k) for k in restored.metadata["all"]] == [type(k) for k in kept]


def test_a_list_becomes_a_tuple_when_it_enters_and_not_when_it_is_saved() -> None:
    state = AgentState().with_metadata("k", [1, {"x": [2]}])
    assert state.metadata["k"] == (1, {"x": (2,)})
    assert reloaded(state).metadata["k"] == state.metadata["k"]


@pytest.mark.parametrize(
    ("value", "path"),
    [(math.nan, "['n']"), ({"deep": [1.0, math.nan]}, "['n']['deep'][1]")],
    ids=["itself", "inside"],
)
def test_nan_in_metadata_is_refused_because_no_copy_would_be_equal(value: Any, path: str) -> None:
    gives: list[Callable[[], AgentState]] = [
        lambda: AgentState(metadata={"n": value}),
        lambda: AgentState().with_metadata("n", value),
    ]
    for give in gives:
        with pytest.raises(NotSerialisable, match="NaN is not equal to itself") as e:
            give()
        assert e.value.path == f"metadata{path}"


def test_what_metadata_a_state_takes_it_gives_back_equal() -> None:
    state = AgentState(metadata={"far": -math.inf, "near": [math.inf, 0.1]})
    assert reloaded(state) == state


@pytest.mark.parametrize(
    "value",
    [Unknown(), {"deep": [Unknown()]}, {Unknown(): 1}, print, {1, Unknown()}],
    ids=["bare", "deep", "key", "function", "set"],
)
def test_metadata_without_a_json_form_is_refused_where_it_is_set(value: Any) -> None:
    with pytest.raises(NotSerialisable, match=r"metadata\['k'\].*register"):
        AgentState().with_metadata("k", value)
    with pytest.raises(NotSerialisable, match=r"metadata\['k'\].*register"):
        AgentState(metadata={"k": value})


def test_the_path_names_the_place() -> None:
    with pytest.raises(NotSerialisable) as caught:
        AgentState().with_metadata("k", {"a": [0, {"b": Unknown()}]})
    assert caught.value.path == "metadata['k']['a'][1]['b']"


def test_metadata_that_holds_itself_is_refused_with_a_typed_error() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(NotSerialisable, match="metadata"):
        AgentState().with_metadata("k", endless)


def test_metadata_is_frozen_even_where_a_frozen_mapping_hides_a_list() -> None:
    inner = [1]
    state = AgentState().with_metadata("k", FrozenDict({"list": inner}))
    inner.append(2)
    assert state.metadata["k"] == {"list": (1,)}


def test_two_classes_cannot_share_a_tag() -> None:
    with pytest.raises(ValueError, match=r"tests\.Money"):
        register_value(Unknown, "tests.Money", lambda _: None, lambda _: Unknown())


# -- checkpoints ------------------------------------------------------------------------------------


def test_a_checkpoint_says_which_schema_it_has_and_spells_everything_out() -> None:
    form = AgentState().to_checkpoint()
    assert form["schema"] == SCHEMA
    assert set(form) - {"schema"} == {name for name in AgentState().__dict__ if not name.startswith("_")}


def test_a_newer_checkpoint_is_refused_with_both_numbers() -> None:
    with pytest.raises(CheckpointTooNew, match=f"{SCHEMA + 1}.*{SCHEMA}.*upgrade") as caught:
        AgentState.from_checkpoint({**AgentState().to_checkpoint(), "schema": SCHEMA + 1, "from_the_future": 1})
    assert (caught.value.found, caught.value.supported) == (SCHEMA + 1, SCHEMA)


@pytest.mark.parametrize("schema", [None, 0, -1, "1", True, 1.0])
def test_what_has_no_schema_is_not_a_checkpoint(schema: Any) -> None:
    with pytest.raises(CheckpointError, match="schema"):
        AgentState.from_checkpoint({**AgentState().to_checkpoint(), "schema": schema})
    with pytest.raises(CheckpointError, match="schema"):
        AgentState.from_checkpoint({})


TEXT: dict[str, Any] = {"type": "text", "text": "x"}


@pytest.mark.parametrize(
    "damage",
    [
        {"bogus": 1},
        {"iteration": "three"},
        {"iteration": -1},
        {"iteration": 2.7},
        {"iteration": None},
        {"run_id": None},
        {"pending_revision": "no"},
        {"cost": "a lot"},
        {"messages": "abc"},
        {"messages": [{"role": "robot"}]},
        {"messages": [{"role": "user", "content": [{"type": "hologram"}]}]},
        {"messages": [{"role": "user", "content": [{**TEXT, "bogus": 1}]}]},
        {"messages": [{"role": "user", "bogus": 1}]},
        {"started_at": "yesterday"},
        {"started_at": "2026-01-01T00:00:00"},
        {"metadata": [1]},
        {"metadata": {"k": {"$": "somebody.Else", "v": 1}}},
        {"metadata": {"k": {"$": ["no tag"], "v": 1}}},
        {"metadata": {"k": {"$": "map", "v": 3}}},
    ],
    ids=str,
)
def test_a_damaged_checkpoint_is_refused_with_a_typed_error(damage: dict[str, Any]) -> None:
    with pytest.raises(CheckpointError):
        AgentState.from_checkpoint({**AgentState().to_checkpoint(), **damage})


@pytest.mark.parametrize("missing", ["run_id", "messages", "iteration", "started_at"])
def test_a_checkpoint_with_a_hole_is_refused(missing: str) -> None:
    form = AgentState().to_checkpoint()
    del form[missing]
    with pytest.raises(CheckpointError):
        AgentState.from_checkpoint(form)


@pytest.mark.parametrize("thing", [None, [], "text", 3], ids=repr)
def test_what_is_not_a_mapping_is_not_a_checkpoint(thing: Any) -> None:
    with pytest.raises(CheckpointError):
        AgentState.from_checkpoint(thing)


def test_a_checkpoint_is_plain_data_of_its_own() -> None:
    state = AgentState(messages=[Message(Role.USER, [TextBlock("x", extras={"ids": [1]})])], metadata={"k": [1]})
    form = state.to_checkpoint()
    form["metadata"]["k"].append(2)
    form["messages"].clear()
    assert state == evolve(state)
    assert state.metadata["k"] == (1,)
