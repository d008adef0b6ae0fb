"""What a reader does not see is escaped or taken out, and nothing else is changed."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus_kit.invisible import escape_invisible, is_visible, remove_invisible

ANY_TEXT = st.text(st.characters())


@given(ANY_TEXT)
def test_nothing_invisible_is_left_and_the_rest_stays(text: str) -> None:
    seen = [c for c in text if is_visible(c)]

    assert all(map(is_visible, escape_invisible(text)))
    assert remove_invisible(text) == "".join(seen)
    assert escape_invisible(text) == "".join(c if is_visible(c) else ascii(c)[1:-1] for c in text)


@pytest.mark.parametrize("categories", [{"Cc", "Cf", "Cs", "Zl", "Zp"}])
def test_no_character_that_steers_or_hides_is_visible(categories: set[str]) -> None:
    found = {chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) in categories}

    assert {c for c in found if is_visible(c)} == {"\n", "\t"}


@pytest.mark.parametrize("text", [*"\x1b\x9b\x7f\r\u202e\u2066\u200b\u200d\ufeff\u00ad"])
def test_what_drives_a_terminal_or_hides_text_is_escaped(text: str) -> None:
    assert escape_invisible(f"a{text}b") == f"a{ascii(text)[1:-1]}b"


@pytest.mark.parametrize("text", [*"\U000e0041\U000e0100\u3164\u034f\ufe00\u180e\u2065\ud800"])
def test_text_that_can_hide_text_is_taken_out(text: str) -> None:
    assert remove_invisible(f"a{text}b") == "ab"


@pytest.mark.parametrize(
    "text",
    ["zw\u00f6lf \u4e2d\u6587\u3000 \u05e2\u05d1", "e\u0301 \u2764\ufe0f \U0001f469", "a\u00a0b\n\tc"],
)
def test_ordinary_text_is_not_touched(text: str) -> None:
    assert escape_invisible(text) == remove_invisible(text) == text
