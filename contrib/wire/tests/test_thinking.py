"""Thoughts in tags are told from text, however the text is cut."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from locus_wire.thinking import ThinkSplitter, ThinkTags, split_thinking

PIECES = st.lists(
    st.sampled_from(["<think>", "</think>", "<", "</", "think", ">", "\n", " ", "a", "```", "<thin", "</thi"])
    | st.text(max_size=3),
    max_size=8,
)


@pytest.mark.parametrize(
    ("text", "thought", "said"),
    [
        ("<think>Hm.</think>Yes.", "Hm.", "Yes."),
        ("\n <think>\nHm.\n</think>\n\nYes.\n", "Hm.\n", "Yes.\n"),
        ("<think>\n\n</think>\n\nYes.", "", "Yes."),
        ("<think>Hm.", "Hm.", ""),
        ("<think>Hm.</thi", "Hm.</thi", ""),
        ("<think>Hm.</think>", "Hm.", ""),
        ("<think>a < b </ c</think>Yes.", "a < b </ c", "Yes."),
        ("<think>Hm.</think>Write:\n```\n<think>x</think>\n```", "Hm.", "Write:\n```\n<think>x</think>\n```"),
        ("Write:\n```\n<think>x</think>\n```\nDone.", "", "Write:\n```\n<think>x</think>\n```\nDone."),
        ("```\n<think>x</think>\n```", "", "```\n<think>x</think>\n```"),
        ("<thinking>Hm.</thinking>", "", "<thinking>Hm.</thinking>"),
        ("  <thi", "", "  <thi"),
        ("  Yes. </think>", "", "  Yes. </think>"),
        ("", "", ""),
    ],
)
def test_only_a_leading_tag_counts(text: str, thought: str, said: str) -> None:
    assert split_thinking(text, "leading") == (thought, said)


def test_tag_that_the_template_wrote_is_not_missed() -> None:
    assert split_thinking("Hm.\n</think>\n\nYes.", "opened") == ("Hm.\n", "Yes.")
    assert split_thinking("<think>Hm.</think>Yes.", "opened") == ("Hm.", "Yes.")
    assert split_thinking("<thi", "opened") == ("<thi", "")
    assert split_thinking("Hm.", "opened") == ("Hm.", "")


@given(PIECES, st.sampled_from(["leading", "opened", "off"]))
@example(["<", "think", ">", "Hm.", "<", "/", "think>", "\n", "Yes."], "leading")
@example([" ", "<", "b>"], "leading")
def test_pieces_say_what_the_whole_says(pieces: list[str], tags: ThinkTags) -> None:
    splitter = ThinkSplitter(tags)
    found = [*(splitter.feed(piece) for piece in pieces), splitter.finish()]
    assert ("".join(t for t, _ in found), "".join(s for _, s in found)) == split_thinking("".join(pieces), tags)


@given(PIECES)
def test_text_without_a_leading_tag_is_untouched(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert split_thinking(text, "off") == ("", text)
    if not text.lstrip().startswith("<think>"):
        assert split_thinking(text, "leading") == ("", text)


@given(st.text().filter(lambda text: "</think>" not in text), st.text())
def test_thoughts_and_text_come_out_as_they_went_in(thought: str, text: str) -> None:
    assert split_thinking(f"<think>{thought}</think>{text}", "leading") == (thought.lstrip(), text.lstrip())
