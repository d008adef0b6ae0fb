"""Events: every class freezes what it is given, has a tag, and survives JSON."""

from __future__ import annotations

import json
import pickle
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from attrs import evolve, field, fields, frozen, resolve_types
from hypothesis import given
from hypothesis import strategies as st
from tests.property.strategies_values import counts, frozen_objects, moments, numbers, texts, tool_calls, usages

import locus.core.events as module
from locus.core.directives import Choice, Option
from locus.core.errors import CheckpointError
from locus.core.events import (
    EPOCH,
    Event,
    InterruptEvent,
    TerminateEvent,
    ThinkEvent,
    ToolStartEvent,
    event_from_json,
    event_to_json,
    event_types,
    register_event,
    stamp,
)
from locus.core.frozen import FrozenDict
from locus.core.messages import RawBlock, ToolCall, Usage

OF_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    str: texts,
    str | None: st.none() | texts,
    int: counts,
    bool: st.booleans(),
    float: numbers,
    float | None: st.none() | numbers,
    datetime: moments,
    Usage: usages,
    tuple[str, ...]: st.lists(texts, max_size=2).map(tuple),
    tuple[Choice, ...]: st.lists(texts | st.builds(Option, texts, allow=st.booleans()), max_size=2).map(tuple),
    tuple[RawBlock, ...]: st.lists(st.builds(RawBlock, texts, frozen_objects), max_size=2).map(tuple),
    tuple[ToolCall, ...]: st.lists(tool_calls, max_size=2).map(tuple),
    tuple[RawBlock, ...]: st.lists(st.builds(RawBlock, texts, frozen_objects), max_size=2).map(tuple),
    FrozenDict[str, Any]: frozen_objects,
    FrozenDict[str, str]: st.dictionaries(texts, texts, max_size=2).map(FrozenDict),
}


def of_class(cls: type[Event]) -> st.SearchStrategy[Event]:
    """Events with a value in each field."""
    return st.builds(cls, **{a.name: OF_TYPE[a.type] for a in fields(resolve_types(cls))})


CLASSES = {name: cls for name, cls in event_types().items() if cls.__module__ == module.__name__}
every = pytest.mark.parametrize("cls", CLASSES.values(), ids=CLASSES)


def test_every_event_of_the_kernel_is_registered_and_exported() -> None:
    named = {n for n in module.__all__ if n.endswith("Event") and n != "Event"}
    assert {c.__name__ for c in CLASSES.values()} == named


@every
def test_a_type_tag_is_the_name_in_snake_case(cls: type[Event]) -> None:
    assert cls.type == re.sub("(?<!^)(?=[A-Z])", "_", cls.__name__.removesuffix("Event")).lower()


@every
@given(data=st.data())
def test_an_event_survives_json_and_pickling(cls: type[Event], data: st.DataObject) -> None:
    event = data.draw(of_class(cls))
    form = json.loads(json.dumps(event_to_json(event), allow_nan=False))
    assert form["type"] == cls.type
    assert event_from_json(form) == event
    assert pickle.loads(pickle.dumps(event)) == event
    assert hash(event) == hash(evolve(event))


@every
def test_an_event_cannot_be_changed(cls: type[Event]) -> None:
    event = cls()
    for name in [*(a.name for a in fields(cls)), "something_new"]:
        with pytest.raises(AttributeError):
            setattr(event, name, None)


@every
def test_every_event_is_documented_and_shows_its_payload(cls: type[Event]) -> None:
    assert cls.__doc__
    assert repr(cls()).startswith(f"{cls.__name__}(")


def test_what_an_event_is_given_is_frozen_all_the_way_down() -> None:
    arguments: dict[str, Any] = {"list": [1]}
    options, satisfied, calls = ["yes"], ["NoToolCalls"], [ToolCall("1", "t")]
    events = [
        ToolStartEvent(arguments=arguments),
        InterruptEvent(options=options),
        TerminateEvent(satisfied=satisfied),
        ThinkEvent(tool_calls=calls),
    ]
    arguments["list"].append(2)
    options.append("no")
    satisfied.append("more")
    calls.clear()
    assert events == [
        ToolStartEvent(arguments=FrozenDict({"list": (1,)})),
        InterruptEvent(options=("yes",)),
        TerminateEvent(satisfied=("NoToolCalls",)),
        ThinkEvent(tool_calls=(ToolCall("1", "t"),)),
    ]
    assert all(isinstance(hash(event), int) for event in events)


def test_events_of_two_classes_are_never_equal() -> None:
    @frozen(kw_only=True)
    class Other(Event):
        pass

    assert Event() != Other()
    assert Event() == Event()
    assert Event() != object()


def test_an_event_is_stamped_once() -> None:
    event = ThinkEvent(text="hm")
    now = datetime(2026, 5, 4, tzinfo=UTC)
    assert (event.seq, event.timestamp) == (0, EPOCH)
    stamp(event, ("run", "thread", None, 2, 1, now, 7))
    assert event == ThinkEvent(
        text="hm", run_id="run", thread_id="thread", iteration=2, segment=1, timestamp=now, seq=7
    )
    assert event.event_id == "run/1/7"
    with pytest.raises(ValueError, match="ThinkEvent"):
        stamp(event, ("run", "thread", None, 2, 1, now, 8))


def test_events_match_by_keyword() -> None:
    match TerminateEvent(reason="NoToolCalls"):
        case TerminateEvent(reason=reason):
            assert reason == "NoToolCalls"
        case _:
            pytest.fail("no match")


def test_an_event_of_a_plugin_decodes_like_the_rest() -> None:
    @register_event
    @frozen(kw_only=True)
    class TestsWeatherEvent(Event):
        """It rains."""

        millimetres: float = 0.0
        places: tuple[str, ...] = field(default=(), converter=tuple)

    event = TestsWeatherEvent(millimetres=2.5, places=["Bergen"])  # type: ignore[list-item]
    assert TestsWeatherEvent.type == "tests_weather"
    assert event_from_json(json.loads(json.dumps(event_to_json(event)))) == event


def test_two_event_classes_cannot_share_a_type() -> None:
    @frozen(kw_only=True)
    class Impostor(Event):
        type = "think"

    with pytest.raises(ValueError, match="think"):
        register_event(Impostor)
    assert event_types()["think"] is ThinkEvent


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"type": "nope"},
        {"type": ["think"]},
        {"type": "think", "iteration": "x"},
        {"type": "think", "usage": 1},
        None,
    ],
    ids=repr,
)
def test_a_damaged_event_is_refused_with_a_typed_error(form: Any) -> None:
    if form and "usage" in form:
        form = {"type": "terminate", "usage": 1}
    with pytest.raises(CheckpointError):
        event_from_json(form)
