"""What the strategies promise: legal values, of every kind there is, that survive their JSON form."""

from __future__ import annotations

import json
from functools import reduce
from typing import Any, get_args

import attrs
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from locus.core.codec import decode, decode_data, encode, encode_data
from locus.core.events import Event, event_from_json, event_to_json, event_types
from locus.core.frozen import FrozenDict
from locus.core.journal import BLANK, Body, apply, delta, entry_from_json, entry_to_json, fold
from locus.core.messages import Block, Message, Role, Usage
from locus.core.state import AgentState
from locus.core.termination import TerminationCondition, condition_from_json, condition_types
from locus.models.protocol import ModelRequest, ModelResponse
from locus.tools.definition import ToolSpec
from locus_testkit import ScriptedModel
from locus_testkit import strategies as values
from locus_testkit.strategies import Growth, Journal

_FIND = settings(database=None, derandomize=True, max_examples=2000, deadline=None, phases=[Phase.generate])

#: How long an example takes says nothing on a machine that others use as well.
calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def through_json(form: Any) -> Any:
    return json.loads(json.dumps(form))


@calm
@given(values.data())
def test_data_survives_its_json_form(value: Any) -> None:
    assert decode_data(through_json(encode_data(value))) == value


@calm
@given(values.metadata())
def test_metadata_is_accepted_by_a_state(metadata: FrozenDict[str, Any]) -> None:
    assert AgentState(metadata=metadata).metadata == metadata


@calm
@given(values.messages())
def test_messages_survive_their_json_form(message: Message) -> None:
    assert decode(through_json(encode(message)), Message) == message


@pytest.mark.parametrize("kind", get_args(Block), ids=lambda kind: kind.__name__)
def test_every_kind_of_block_is_drawn(kind: type) -> None:
    assert isinstance(find(values.blocks(), lambda block: isinstance(block, kind), settings=_FIND), kind)


@calm
@given(values.conversations())
def test_conversations_answer_every_call_in_order(conversation: tuple[Message, ...]) -> None:
    open_calls: list[str] = []
    for message in conversation:
        if message.role is Role.TOOL:
            assert [result.call_id for result in message.tool_results] == [open_calls.pop(0)]
            continue
        assert open_calls == []
        open_calls = [call.id for call in message.tool_calls]
    assert open_calls == []


@calm
@given(values.usages())
def test_usages_have_parts_within_their_whole(usage: Usage) -> None:
    assert 0 <= usage.cached_tokens + usage.cache_write_tokens <= usage.prompt_tokens
    assert 0 <= usage.reasoning_tokens <= usage.completion_tokens


@calm
@given(values.states() | values.grown_states())
def test_states_survive_their_checkpoint(state: AgentState) -> None:
    assert AgentState.from_checkpoint(through_json(state.to_checkpoint())) == state


@calm
@given(values.states(), st.lists(values.growths() | values.stamps(), max_size=5))
def test_growths_leave_the_original_alone(state: AgentState, steps: list[Growth]) -> None:
    before = state.to_checkpoint()
    grown = reduce(lambda made, step: step(made), steps, state)
    assert isinstance(grown, AgentState)
    assert state.to_checkpoint() == before


# The others are made of the builders that are drawn, are what one of them calls, or replace what is there.
_NOT_DRAWN = {"with_answer", "with_calls_closed", "with_entries", "with_next_iteration", "with_system", "with_usage"}


@pytest.mark.parametrize("name", sorted({n for n in dir(AgentState) if n.startswith("with_")} - _NOT_DRAWN))
def test_every_builder_is_drawn(name: str) -> None:
    assert find(values.growths(), lambda growth: growth.method == name, settings=_FIND).method == name


@calm
@given(values.state_pairs())
def test_pairs_have_a_difference_that_makes_one_of_the_other(pair: tuple[AgentState, AgentState]) -> None:
    old, new = pair
    assert apply(old, delta(old, new)) == new


@calm
@given(values.bodies())
def test_bodies_survive_their_json_form(body: Body) -> None:
    assert entry_from_json(through_json(entry_to_json(body))) == body


@pytest.mark.parametrize("kind", get_args(Body), ids=lambda kind: kind.__name__)
def test_every_kind_of_body_is_drawn(kind: type) -> None:
    assert isinstance(find(values.bodies(), lambda body: isinstance(body, kind), settings=_FIND), kind)


@calm
@given(values.journals())
def test_journals_fold_to_their_state(journal: Journal) -> None:
    assert fold(BLANK, journal.bodies) == journal.state
    forms = [through_json(entry_to_json(body)) for body in journal.bodies]
    assert fold(BLANK, map(entry_from_json, forms)) == journal.state


@calm
@given(values.events())
def test_events_survive_their_json_form(event: Event) -> None:
    assert event_from_json(through_json(event_to_json(event))) == event


@pytest.mark.parametrize("cls", event_types().values(), ids=lambda cls: cls.__name__)
def test_events_of_one_class_have_all_its_fields_drawn(cls: type[Event]) -> None:
    event = find(values.events(cls), lambda _: True, settings=_FIND)
    assert type(event) is cls


def test_fields_of_an_event_can_be_narrowed() -> None:
    event = find(values.events(Event, run_id=st.just("mine")), lambda _: True, settings=_FIND)
    assert event.run_id == "mine"


def test_unknown_field_of_an_event_is_named() -> None:
    with pytest.raises(TypeError, match="nonsense"):
        values.events(Event, nonsense=st.none())


def test_annotation_without_a_strategy_is_named() -> None:
    with pytest.raises(TypeError, match="complex"):
        values.of_type(complex)


@calm
@given(values.conditions(), values.grown_states())
def test_conditions_can_be_asked_and_written(condition: TerminationCondition, state: AgentState) -> None:
    assert condition.check(state) in (True, False)
    assert condition_from_json(through_json(condition.to_json())) == condition


@pytest.mark.parametrize(
    "name", sorted(n for n, cls in condition_types().items() if cls.__module__.startswith("locus."))
)
def test_every_condition_is_drawn(name: str) -> None:
    def holds(tree: TerminationCondition) -> bool:
        return type(tree).__name__ == name

    assert holds(find(values.conditions(), holds, settings=_FIND))


@calm
@given(values.model_requests(), values.model_responses(), values.tool_specs())
def test_model_values_survive_their_json_form(request: ModelRequest, response: ModelResponse, spec: ToolSpec) -> None:
    assert decode(through_json(encode(request)), ModelRequest) == request
    named = attrs.evolve(request, model=ScriptedModel("x"))
    assert decode(through_json(encode(named)), ModelRequest).model == "scripted:model"
    assert decode(through_json(encode(response)), ModelResponse) == response
    assert decode(through_json(encode(spec)), ToolSpec) == spec
    assert all(attrs.asdict(example)["user"] is not None for example in spec.examples)
