"""Laws of what is shown: bounded, on as many lines as meant, and free of control characters."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus.core.messages import ToolCall, Usage
from locus_kit.calls import show_call
from locus_kit.invisible import is_visible
from locus_plugin_cli.text import escape_controls, format_call, format_ms, format_tokens, one_line, shorten

ANY_TEXT = st.text(st.characters())  # lone surrogates and control characters included


def controls(text: str) -> set[str]:
    return {c for c in text if not is_visible(c)}


@given(ANY_TEXT)
def test_safe_text_has_no_control_characters_and_keeps_the_rest(text: str) -> None:
    assert controls(escape_controls(text)) == set()
    if not controls(text):
        assert escape_controls(text) == text


@given(ANY_TEXT)
def test_one_line_is_one_line(text: str) -> None:
    assert len(one_line(text).splitlines()) <= 1
    assert one_line(one_line(text)) == one_line(text)


@given(ANY_TEXT.map(lambda text: text * 50))
def test_shortened_text_is_short_and_accounts_for_the_rest(text: str) -> None:
    shown = shorten(text)

    assert controls(shown) == set()
    assert len(shown.splitlines()) <= 5
    if " more characters)" not in shown:
        assert shown == escape_controls(text.strip())


def test_shortened_text_says_how_much_is_missing() -> None:
    assert shorten("x" * 1000) == "x" * 300 + " ... (700 more characters)"
    assert shorten("a\nb\nc\nd\ne\nf") == "a\nb\nc\nd ... (4 more characters)"


PLAIN: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner),
    max_leaves=10,
)


@given(st.dictionaries(ANY_TEXT, PLAIN))
def test_call_is_one_short_line_whatever_the_arguments(arguments: dict[str, Any]) -> None:
    shown = format_call("tool", arguments)

    assert shown.startswith("tool(")
    assert len(shown.splitlines()) == 1
    assert controls(shown) == set()


def test_call_looks_like_one() -> None:
    assert format_call("add", {"a": 1, "b": "zwölf", "c": [1.5, None]}) == 'add(a=1, b="zwölf", c=[1.5, null])'


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [(0.04, "0.0 ms"), (5.14, "5.1 ms"), (340.6, "341 ms"), (12_345, "12.3 s"), (68_000, "1 min 8 s")],
)
def test_durations_have_the_unit_that_suits_them(milliseconds: float, shown: str) -> None:
    assert format_ms(milliseconds) == shown


def test_tokens_name_the_cached_ones_and_the_cost() -> None:
    assert format_tokens(Usage(prompt_tokens=1200, completion_tokens=34)) == "1,234 tokens"
    assert format_tokens(Usage(prompt_tokens=10, cached_tokens=7, cost=0.0123)) == "10 tokens (7 cached), $0.0123"


def test_call_that_is_decided_about_keeps_its_blanks_and_shows_its_ends_of_lines() -> None:
    shown = show_call(ToolCall(id="1", name="delete", arguments={"path": "a  b\u2028c\nd"}))
    assert shown == 'delete(path="a  b\\u2028c\\nd")'
