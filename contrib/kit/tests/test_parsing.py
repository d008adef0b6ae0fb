"""What decides something is one JSON object and nothing else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_kit.parsing import NotOneObject, parse_json_object

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda v: st.lists(v) | st.dictionaries(st.text(), v),
    max_leaves=10,
)


@given(
    form=st.dictionaries(st.text(), VALUES), fence=st.sampled_from(["{}", " {}\n", "```json\n{}\n```", "```\n{}\n```"])
)
def test_an_object_is_read_as_it_is_with_a_fence_or_without(form: dict[str, object], fence: str) -> None:
    assert parse_json_object(fence.replace("{}", json.dumps(form)), longest=10**6) == form


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('Sure: {"a": 1}', "not one JSON object"),
        ('{"a": 1} {"a": 2}', "not one JSON object"),
        ('```json\n{"a": 1}\n```\n```json\n{"a": 2}\n```', "not one JSON object"),
        ("[1]", "not one JSON object"),
        ("", "not one JSON object"),
        ("[" * 50_000, "not one JSON object"),
        ('{"a": 1, "a": 2}', "a key is repeated"),
        ('{"b": {"a": 1, "a": 2}}', "a key is repeated"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": -Infinity}', "-Infinity is not JSON"),
        ("x" * 60_000, "the answer has 60000 characters; at most 55000 are allowed"),
    ],
)
def test_anything_else_is_refused_and_not_quoted(text: str, said: str) -> None:
    with pytest.raises(NotOneObject) as caught:
        parse_json_object(text, longest=55_000)
    assert said in str(caught.value)
    assert "Sure" not in str(caught.value)
