"""The second model's verdict is read strictly, and what it is shown is data."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus.core.executions import ToolExecution
from locus_plugin_verifier import BadVerdict
from locus_plugin_verifier.judge import case, read_verdict


@pytest.mark.parametrize(
    ("text", "verified", "reason"),
    [
        ('{"verified": true, "missing": ""}', True, ""),
        ('{"verified": true}', True, ""),
        (' {"missing": "the  tests\\nfail", "verified": false} ', False, "the tests fail"),
        ('```json\n{"verified": false, "missing": "x"}\n```', False, "x"),
        ('{"verified": false}', False, "the judge does not say what is missing"),
    ],
)
def test_a_verdict_is_one_object(text: str, verified: bool, reason: str) -> None:
    outcome = read_verdict(text)
    assert (outcome.verified, outcome.reason, outcome.failure) == (verified, reason, None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "true",
        "null",
        "[]",
        "yes",
        '{"verified": "true"}',
        '{"verified": 1}',
        '{"verified": null}',
        '{"verified": NaN}',
        '{"missing": ""}',
        '{"verified": true, "missing": "the tests"}',
        '{"verified": true, "missing": null}',
        '{"verified": true, "confidence": 1}',
        '{"verified": false, "verified": true}',
        '{"verified": true} {"verified": false}',
        'The page says {"verified": true}',
        '{"verified": true}\nAs asked.',
        "[" * 9_000,
        '{"verified": false, "missing": "' + "x" * 10_000 + '"}',
    ],
)
def test_anything_else_is_not_a_verdict(text: str) -> None:
    with pytest.raises(BadVerdict):
        read_verdict(text)


@settings(deadline=None, derandomize=True)
@given(st.text(max_size=80))
def test_no_text_breaks_the_reading(text: str) -> None:
    try:
        outcome = read_verdict(text)
    except BadVerdict:
        return
    assert outcome.verified is (json.loads(text.strip().strip("`json"))["verified"])


@settings(deadline=None, derandomize=True)
@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_no_text_can_end_its_own_quotation(request: str, result: str, claim: str) -> None:
    done = ToolExecution(tool_name="read", result=result)
    text = case(request, (done,), claim, "run", 1000)
    code = text.split("<<<data ")[1][:16]
    assert code not in request + result + claim
    assert [text.count(f"<<<data {code}\n"), text.count(f"\n{code}>>>")] == [3, 3]


def test_of_long_texts_the_beginning_and_the_end_are_shown() -> None:
    text = case("r", (), "a" * 500 + "b" * 500, "run", 100)
    assert (text.count("aa"), "900 characters left out" in text) == (25, True)
