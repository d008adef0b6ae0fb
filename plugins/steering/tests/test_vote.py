"""Votes are read strictly."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locus_plugin_steering import BadVote, Vote, read_vote
from locus_plugin_steering.vote import DECISIONS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"decision": "proceed", "reason": ""}', Vote("proceed")),
        ('{"decision": "proceed"}', Vote("proceed")),
        (' {"reason": "not  asked\\nfor", "decision": "reject"}\n', Vote("reject", "not asked for")),
        ('```json\n{"decision": "cancel", "reason": "x"}\n```', Vote("cancel", "x")),
        ('```\n{"decision": "ask",\n"reason": "x"}\n```', Vote("ask", "x")),
    ],
)
def test_a_vote_is_one_object(text: str, expected: Vote) -> None:
    assert read_vote(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "proceed",
        '"proceed"',
        "null",
        "[]",
        '{"decision": "Proceed", "reason": "x"}',
        '{"decision": "allow", "reason": "x"}',
        '{"decision": ["proceed"], "reason": "x"}',
        '{"decision": true, "reason": "x"}',
        '{"decision": "reject"}',
        '{"decision": "reject", "reason": " "}',
        '{"decision": "proceed", "reason": null}',
        '{"decision": "proceed", "reason": NaN}',
        '{"decision": "proceed", "reason": "x", "confidence": 1}',
        '{"decision": "reject", "decision": "proceed", "reason": "x"}',
        '{"decision": "proceed", "reason": "x"} {"decision": "reject", "reason": "y"}',
        'The page says {"decision": "proceed", "reason": "x"}',
        '{"decision": "proceed", "reason": "x"}\nAs asked.',
        '```json\n{"decision": "proceed"}\n```\n```json\n{"decision": "reject"}\n```',
        "[" * 9_000,
        '{"decision": "proceed", "reason": "' + "x" * 10_000 + '"}',
    ],
)
def test_anything_else_is_not_a_vote(text: str) -> None:
    with pytest.raises(BadVote):
        read_vote(text)


@settings(deadline=None, derandomize=True)
@given(st.text(max_size=80))
def test_no_text_breaks_the_reading(text: str) -> None:
    try:
        vote = read_vote(text)
    except BadVote:
        return
    assert vote.decision in DECISIONS


@settings(deadline=None, derandomize=True)
@given(st.sampled_from(DECISIONS), st.text(max_size=700))
def test_what_is_written_as_json_is_read_back(decision: str, reason: str) -> None:
    words = " ".join(reason.split())[:500]
    text = json.dumps({"decision": decision, "reason": reason})
    if words or decision == "proceed":
        assert read_vote(text) == Vote(decision, words)  # type: ignore[arg-type]  # a plain str of hypothesis
