"""A JSON value read from pieces says the same as one read whole."""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from locus_plugin_llamacpp.jsonstream import AnswerStream, StringReader, ValueReader

# Text that UTF-8 can carry: half a surrogate pair is replaced, see below.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def pieces(text: str, cuts: list[int]) -> list[str]:
    at = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(at)]


CUTS = st.lists(st.integers(min_value=0, max_value=10_000), max_size=12)


@given(TEXTS, CUTS, st.booleans(), TEXTS)
@example("\U0001f600", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], True, "")
def test_a_string_cut_anywhere_decodes_to_itself(text: str, cuts: list[int], ascii_only: bool, after: str) -> None:
    written = json.dumps(text, ensure_ascii=ascii_only)[1:] + after
    reader = StringReader()

    assert "".join(map(reader.feed, pieces(written, cuts))) == text
    assert reader.done


@given(TEXTS, st.booleans())
def test_nothing_is_held_back_but_an_unfinished_escape(text: str, ascii_only: bool) -> None:
    reader = StringReader()
    for char in text:
        assert reader.feed(json.dumps(char, ensure_ascii=ascii_only)[1:-1]) == char


def test_half_a_surrogate_pair_is_replaced() -> None:
    reader = StringReader()

    assert reader.feed('a\\ud83d\\u0041\\udc00b\\ud83d"') == "a\ufffdA\ufffdb\ufffd"


@given(JSON, CUTS, st.sampled_from(["}}", " }}", ', "more": 1}', ""]))
def test_a_value_cut_anywhere_is_passed_through_to_its_end(value: Any, cuts: list[int], after: str) -> None:
    written = json.dumps(value)
    reader = ValueReader()

    assert "".join(map(reader.feed, pieces(written + after, cuts))) == written


@given(TEXTS, CUTS, st.sampled_from(["", " ", "\n  "]))
def test_the_answer_streams_out_of_the_turn(text: str, cuts: list[int], space: str) -> None:
    written = (
        f'{space}{{{space}"tool":{space}"done",{space}"args":{space}{{"answer":{space}{json.dumps(text)}{space}}}}}'
    )
    stream = AnswerStream("done")

    assert "".join(map(stream.feed, pieces(written, cuts))) == text
    assert stream.is_final


@given(JSON, CUTS, st.sampled_from(["", " ", "\n"]))
def test_a_structured_answer_streams_as_it_is_written(value: Any, cuts: list[int], space: str) -> None:
    written = f'{{"tool": "done", "args": {{"answer":{space}{json.dumps(value)}}}}}'
    stream = AnswerStream("done", raw=True)

    assert json.loads("".join(map(stream.feed, pieces(written, cuts)))) == value


@given(st.sampled_from(["look", "don", "done2"]), st.dictionaries(TEXTS, TEXTS), CUTS)
def test_a_tool_call_yields_nothing(name: str, arguments: dict[str, str], cuts: list[int]) -> None:
    stream = AnswerStream("done")

    assert "".join(map(stream.feed, pieces(json.dumps({"tool": name, "args": arguments}), cuts))) == ""
    assert not stream.is_final
