"""Errors of settings name the setting, what it must be, and what it was."""

from __future__ import annotations

import math
from typing import Any

import pytest
from attrs import field, make_class
from hypothesis import given
from hypothesis import strategies as st

from locus_kit.validators import (
    Validator,
    integer,
    model_or_name,
    not_blank,
    number,
    optional,
    seconds,
    strings,
    to_tuple,
    zero_to_none,
)
from locus_testkit import ScriptedModel


def check(validator: Validator, value: Any) -> None:
    """Construct a class with one such setting."""
    make_class("Settings", {"limit": field(validator=validator)})(value)


@pytest.mark.parametrize(
    ("validator", "value", "error"),
    [
        (integer(1), 0, "limit must be an int of 1 or more, got 0"),
        (integer(1), True, "limit must be an int of 1 or more, got True"),
        (integer(1), 1.0, "limit must be an int of 1 or more, got 1.0"),
        (integer(1), "1", "limit must be an int of 1 or more, got '1'"),
        (integer(1), None, "limit must be an int of 1 or more, got None"),
        (integer(1, 100), 101, "limit must be an int from 1 to 100, got 101"),
        (integer(high=5), 6, "limit must be an int of 5 or less, got 6"),
        (integer(), "a", "limit must be an int, got 'a'"),
        (number(), "a", "limit must be a number, got 'a'"),
        (number(), math.nan, "limit must be a finite number, got nan"),
        (number(0), -0.5, "limit must be a number of 0 or more, got -0.5"),
        (number(0), math.inf, "limit must be a finite number, got inf"),
        (number(0), False, "limit must be a number of 0 or more, got False"),
        (number(0, 1), math.nan, "limit must be a number from 0 to 1, got nan"),
        (number(0, 1), 1.5, "limit must be a number from 0 to 1, got 1.5"),
        (number(above=0, high=1), 0, "limit must be a number above 0 and at most 1, got 0"),
        (number(above=0, unit="seconds"), 0, "limit must be a number of seconds above 0, got 0"),
        (number(above=0, unit="seconds"), math.inf, "limit must be a finite number of seconds, got inf"),
        (number(5, unit="seconds"), 1, "limit must be a number of seconds, 5 or more, got 1"),
        (number(1, 9, unit="seconds"), 10, "limit must be a number of seconds from 1 to 9, got 10"),
        (integer(1), "x" * 200, "limit must be an int of 1 or more, got '" + "x" * 79),
        (model_or_name, 3, "limit must be 'provider:model' or a Model, got 3"),
        (model_or_name, ScriptedModel, "limit must be 'provider:model' or a Model, got <class"),
        (seconds, -1, "limit must be a number of seconds above 0, got -1"),
        (not_blank, " \n", "limit must not be empty, got ' \\n'"),
        (not_blank, 3, "limit must be a str, got 3"),
        (strings, "a", "limit must be a list of strings, got 'a'; write ['a']"),
        (strings, ("a", 1), "limit must be a list of strings, got ('a', 1)"),
        (strings, 3, "limit must be a list of strings, got 3"),
    ],
)
def test_the_error_says_what_the_setting_must_be(validator: Validator, value: Any, error: str) -> None:
    with pytest.raises(ValueError, match=r"^limit must ") as caught:
        check(validator, value)
    assert str(caught.value).startswith(error)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("validator", "value"),
    [
        (integer(1), 10),
        (integer(1, 100), 100),
        (integer(), -(10**30)),
        (optional(integer(1)), None),
        (number(0, 1), 1),
        (number(above=0, high=1), 1.0),
        (number(), -1e300),
        (model_or_name, "llamacpp:qwen"),
        (model_or_name, ScriptedModel("x")),
        (not_blank, "a"),
        (strings, ()),
        (strings, ("a", "b")),
    ],
)
def test_a_value_within_its_bounds_is_accepted(validator: Validator, value: Any) -> None:
    check(validator, value)


@given(st.floats() | st.integers(), st.floats(-5, 5), st.floats(-5, 5))
def test_a_number_is_accepted_exactly_if_it_is_finite_and_within_its_bounds(value: float, a: float, b: float) -> None:
    low, high = sorted((a, b))
    accepted = True
    try:
        check(number(low, high), value)
    except ValueError:
        accepted = False
    assert accepted is (math.isfinite(value) and low <= value <= high)


@pytest.mark.parametrize(("value", "converted"), [(0, None), (0.0, None), (None, None), (2, 2), (False, False)])
def test_zero_means_none_where_a_file_has_no_null(value: Any, converted: Any) -> None:
    assert zero_to_none(value) is converted or zero_to_none(value) == converted
    assert (zero_to_none(value) is None) is (converted is None)


@pytest.mark.parametrize(
    ("value", "converted"), [("ab", ("ab",)), (["a", "b"], ("a", "b")), ((), ()), (3, 3), (None, None)]
)
def test_a_lone_string_becomes_a_tuple_of_one(value: Any, converted: Any) -> None:
    assert to_tuple(value) == converted
