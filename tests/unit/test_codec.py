"""The codec: values to JSON and back, entries of a journal, and errors that survive a process boundary."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from tests.property.strategies_values import blocks, data, messages

from locus.core import data as values
from locus.core import errors
from locus.core.codec import decode, decode_data, encode, encode_data
from locus.core.directives import Interrupt
from locus.core.errors import CheckpointError, LocusError, NotSerialisable
from locus.core.executions import ToolExecution
from locus.core.frozen import EMPTY, FrozenDict, freeze
from locus.core.journal import (
    END,
    START,
    Answered,
    Asked,
    Entry,
    Intent,
    Outcome,
    StateDelta,
    StepId,
    Transition,
    entry_from_json,
    entry_to_json,
)
from locus.core.messages import Block, Message, RawBlock, Role, ThinkingBlock, ToolResult, Usage
from locus.core.state import ReasoningStep
from locus.models import ModelResponse
from locus.models.call import ChildUsage, ModelCallResult
from locus.tools.outcome import CallOutcome
from locus_plugin_timetravel import Difference


def through_json(form: Any) -> Any:
    return json.loads(json.dumps(form, allow_nan=False))


# -- values -----------------------------------------------------------------------------------------


@given(data)
def test_free_form_data_comes_back_frozen_and_equal(value: Any) -> None:
    frozen = freeze(value)
    restored = decode_data(through_json(encode_data(value)))
    assert restored == frozen
    assert repr(sorted_sets(restored)) == repr(sorted_sets(frozen))


def sorted_sets(value: Any) -> Any:
    """The same with sets in a fixed order, so that types can be compared by their text: 1, True and 1.0 are equal."""
    if isinstance(value, frozenset):
        return ("set", sorted(map(sorted_sets, value), key=repr))
    if isinstance(value, tuple):
        return tuple(map(sorted_sets, value))
    if isinstance(value, dict):
        return {k if not isinstance(k, frozenset) else sorted_sets(k): sorted_sets(v) for k, v in value.items()}
    return value


@given(messages)
def test_a_message_comes_back_as_it_was(message: Message) -> None:
    assert decode(through_json(encode(message)), Message) == message


@given(blocks)
def test_a_block_comes_back_as_what_it_was(block: Block) -> None:
    message = Message(Role.ASSISTANT, block)
    (restored,) = decode(through_json(encode(message)), Message).content
    assert restored == block
    assert type(restored) is type(block)


def test_an_assistant_turn_keeps_signatures_and_unknown_blocks_to_the_letter() -> None:
    turn = Message(
        Role.ASSISTANT,
        [ThinkingBlock("hm", "c2ln\n", extras={"redacted": True}), RawBlock("acme", {"z": 1, "a": [None, 1.5]})],
        extras={"id": "msg_1"},
    )
    restored = decode(through_json(encode(turn)), Message)
    assert restored == turn
    assert list(restored.content[1].data) == ["z", "a"]  # type: ignore[arg-type, union-attr]


def test_what_is_left_at_its_default_takes_no_room() -> None:
    assert encode(Message(Role.USER, "hi")) == {"role": "user", "content": [{"type": "text", "text": "hi"}]}


@pytest.mark.parametrize(
    "value", [object(), 1j, {"k": {1, object()}}, [print]], ids=["object", "complex", "set", "list"]
)
def test_what_has_no_json_form_is_refused(value: Any) -> None:
    with pytest.raises(NotSerialisable, match="register_value"):
        encode_data(value, "arguments")


# -- entries ----------------------------------------------------------------------------------------


def test_an_answer_is_the_same_live_and_read_back() -> None:
    answered = Answered(run_id="r", interrupt_id="i", answer=["yes", {"why": ["it", "is"]}])
    assert entry_from_json(through_json(entry_to_json(answered))) == answered


def test_lists_given_to_an_entry_are_kept_as_tuples() -> None:
    options = ["yes"]
    asked = Asked(run_id="r", interrupt_id="i", step_id=StepId(0, "s"), question="?", options=options)
    step = ReasoningStep(iteration=0, actions=options)
    options.append("no")
    assert asked.options == step.actions == ("yes",)


def test_an_entry_has_an_id() -> None:
    assert Entry(3, "w", "2:w", Intent(run_id="r", step_id=StepId(0, "s"))).id == "3:w"


def plain(form: Any) -> bool:
    """Whether it is made of what JSON is made of, and of nothing that only looks like it."""
    if type(form) is dict:
        return all(type(k) is str and plain(v) for k, v in form.items())
    return all(map(plain, form)) if type(form) is list else type(form) in (str, int, float, bool, type(None))


def test_the_form_of_an_entry_is_plain_data() -> None:
    # A node is an enumeration of texts where the loop makes the transition.
    transition = Transition(run_id="r", node=Role.USER, next_node=Role.TOOL, delta=StateDelta({"errors": ("e",)}))
    form = entry_to_json(transition)
    assert plain(form)
    assert entry_from_json(form) == transition


TRANSITION = entry_to_json(Transition(run_id="r", node=START, next_node=END, delta=StateDelta()))


@pytest.mark.parametrize(
    "form",
    [
        None,
        [],
        {},
        {"entry": "nope"},
        {"entry": ["intent"]},
        {"entry": "intent"},
        {"entry": "intent", "run_id": "r", "step_id": "s", "policy": "twice"},
        {"entry": "intent", "run_id": "r", "step_id": "0/s/0", "bogus": 1, "v": 2},
        {"entry": "submitted", "run_id": "r", "prompt": {"role": "user"}, "metadata": [1], "v": 2},
        {**TRANSITION, "bogus": 1},
        {**TRANSITION, "delta": {"changed": {}}},
        {**TRANSITION, "delta": {"changed": {"bogus": 1}, "grown": {}}},
        {**TRANSITION, "delta": {"changed": {"_base": None}, "grown": {}}},
        {**TRANSITION, "delta": {"changed": {"iteration": "x"}, "grown": {}}},
        {**TRANSITION, "delta": {"changed": {}, "grown": {"messages": [0]}}},
        {**TRANSITION, "delta": {"changed": {}, "grown": {"iteration": [0, 1]}}},
    ],
    ids=str,
)
def test_a_damaged_entry_is_refused_with_a_typed_error(form: Any) -> None:
    with pytest.raises(CheckpointError):
        entry_from_json(form)


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"role": "user", "colour": 1}, "Message: unknown field 'colour'"),
        ({"content": []}, "Message: has no role"),
        (["user"], "Message: expected a JSON object"),
        ({"role": "user", "content": [{"type": "tool_call", "id": "1", "name": "t", "arguments": [1]}]}, "a mapping"),
    ],
)
def test_a_form_that_is_not_one_of_a_class_is_refused_with_what_is_wrong(form: Any, said: str) -> None:
    with pytest.raises(CheckpointError, match=said):
        decode(form, Message)


def test_arguments_that_look_like_a_tag_come_back_as_arguments() -> None:
    execution = ToolExecution(tool_name="t", arguments=freeze({"$": "set", "v": [{"$": 1}]}))
    outcome = Outcome(run_id="r", step_id=StepId(0, "s"), value=CallOutcome(execution=execution, content="x"))
    assert entry_from_json(through_json(entry_to_json(outcome))) == outcome


# -- frozen values and errors -----------------------------------------------------------------------


def test_a_frozen_mapping_is_a_dict_for_everybody_else() -> None:
    mapping = FrozenDict({"b": 1, "a": (2,)})
    assert mapping == {"b": 1, "a": (2,)}
    assert json.dumps(mapping) == '{"b": 1, "a": [2]}'
    assert {**mapping, "b": 2} == {"b": 2, "a": (2,)}
    assert copy.deepcopy(mapping) is copy.copy(mapping) is mapping
    assert pickle.loads(pickle.dumps(mapping)) == mapping
    assert hash(mapping) == hash(FrozenDict({"a": (2,), "b": 1}))
    assert EMPTY == {}


EXAMPLES: dict[type[BaseException], tuple[Any, ...]] = {
    errors.SettingsError: (["a: wrong", "b: wrong"],),
    errors.UnknownName: ("plugin", "retri", ["retry"], "install it"),
    errors.NotSerialisable: ("metadata['k']", "no form"),
    errors.CheckpointTooNew: (3, 1),
    errors.ConditionError: ("Even", ValueError("odd")),
    errors.ThreadBusy: ("thread", "worker", "2026-01-01"),
    errors.QueueFull: ("shop", 1000, 1000),
    errors.RequestSuperseded: ("thread", "order 4711"),
    errors.DeadLetter: ("thread", "three workers died in Think"),
    errors.ReplayDiffers: ("thread", Difference(n=1, node="think", step="0/think/0", recorded="a", actual="b")),
}
_SHAPES = {errors.PluginError: ("retry", "broken"), errors.CheckpointError: ("entry", "damaged")}


def example(cls: type[LocusError]) -> LocusError:
    if cls in EXAMPLES:
        return cls(*EXAMPLES[cls])
    shape = next((given for base, given in _SHAPES.items() if issubclass(cls, base)), ("said",))
    return cls(*shape)


TREE = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, LocusError)]


@pytest.mark.parametrize("cls", TREE, ids=lambda c: c.__name__)
def test_an_error_survives_pickling_and_copying_with_its_data(cls: type[LocusError]) -> None:
    error = example(cls)
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is cls
        assert str(again) == str(error)
        assert {k: repr(v) for k, v in vars(again).items()} == {k: repr(v) for k, v in vars(error).items()}


@pytest.mark.parametrize("cls", TREE, ids=lambda c: c.__name__)
def test_every_error_is_drawn_in_the_tree_and_exported(cls: type[LocusError]) -> None:
    assert errors.__doc__ is not None
    assert f" {cls.__name__} " in errors.__doc__.replace("\n", " \n ")
    assert cls.__name__ in errors.__all__


def test_an_interrupt_is_a_value_that_no_tool_swallows() -> None:
    interrupt = Interrupt("Really?", ("yes", "no"))
    assert not isinstance(interrupt, Exception)
    assert pickle.loads(pickle.dumps(interrupt)) == interrupt
    assert interrupt != Interrupt("Really?")
    assert hash(interrupt) == hash(Interrupt("Really?", ("yes", "no")))


def test_a_result_of_blocks_comes_back_as_blocks() -> None:
    message = Message(Role.TOOL, ToolResult("1", (RawBlock("acme", {"x": 1}),), name="t"))
    assert decode(through_json(encode(message)), Message) == message


READS = """
import json, sys
from locus.core.journal import entry_from_json
print(*sorted(type(entry_from_json(form).value).__name__ for form in json.load(sys.stdin)))
"""


def test_a_journal_is_read_by_a_program_that_has_built_no_agent() -> None:
    usage = Usage(prompt_tokens=1)
    response = ModelResponse(message=Message(Role.ASSISTANT, "hi"), usage=usage)
    execution = ToolExecution(tool_name="t", arguments=EMPTY)
    recorded = [ModelCallResult(response, usage, 1), ChildUsage(usage), CallOutcome(execution=execution, content="x")]
    forms = [entry_to_json(Outcome(run_id="r", step_id=StepId(0, "s"), value=value)) for value in recorded]

    done = subprocess.run(
        [sys.executable, "-c", READS], input=json.dumps(forms), capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.stderr) == ("CallOutcome ChildUsage ModelCallResult", "")
    assert {tag for tag in values._TAGS if tag.startswith("locus.")} == set(values._HOMES)
