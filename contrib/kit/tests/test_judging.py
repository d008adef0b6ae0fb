"""What judges are shown: cut texts, boundaries that hold, and the right request."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus.core.executions import ToolExecution
from locus.core.messages import MediaBlock, Message, Role, TextBlock, plugin_message
from locus.core.state import AgentState, ReasoningStep
from locus_kit.judging import clip, describe_execution, describe_message, find_request, indent_json, quote

atoms = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.builds(object)
data = st.recursive(atoms, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)
texts = st.text(st.sampled_from("ab<>{}\n 0f\ud800"), max_size=30)


@given(st.text(max_size=60), st.integers(0, 40))
def test_a_text_is_cut_in_its_middle_and_says_by_how_much(text: str, most: int) -> None:
    shown = clip(text, most)
    if len(text) <= most:
        assert shown == text
        return
    note = f" [... {len(text) - most:,} characters left out ...] "
    head, _, tail = shown.partition(note)
    assert len(head) + len(tail) == most
    assert text.startswith(head)
    assert text.endswith(tail)


@given(st.lists(st.tuples(st.just("title"), texts), min_size=1, max_size=3), texts)
def test_no_text_can_contain_its_own_boundary(parts: list[tuple[str, str]], salt: str) -> None:
    shown = quote(parts, salt=salt)
    found = re.match(r"title:\n<<<data ([0-9a-f]{16})\n", shown)
    assert found is not None
    code = found[1]
    assert not any(code in text for _, text in parts)
    assert shown == "\n\n".join(f"{title}:\n<<<data {code}\n{text}\n{code}>>>" for title, text in parts)
    assert quote(parts, salt=salt) == shown
    assert quote([*parts, ("title", "more")], salt=salt)[: len(shown)] != shown
    assert quote(parts, salt=f"{salt}x") != shown


@pytest.mark.parametrize(("error", "outcome"), [(None, "result: 4"), ("no", "error: no")])
def test_a_call_is_described_with_its_outcome(error: str | None, outcome: str) -> None:
    done = ToolExecution(call_id="1", tool_name="look", arguments={"b": 1, "a": "é"}, result="4", error=error)
    assert describe_execution(done, 100) == f'look {{"a": "é", "b": 1}}\n{outcome}'
    assert "left out" in describe_execution(done, 5)


def test_the_request_is_the_users_own_and_not_what_reviewers_say() -> None:
    user, answer = Message(Role.USER, "request"), Message(Role.ASSISTANT, "answer")
    feedback = Message(Role.USER, "feedback")
    steps = [ReasoningStep(iteration=0, thought=""), ReasoningStep(iteration=1, thought="")]
    earlier = [Message(Role.USER, "earlier"), answer]
    messages = [*earlier, user, plugin_message("p", "note"), answer, feedback, answer]
    assert find_request(AgentState(messages=messages, reasoning_steps=steps)) == 2
    assert find_request(AgentState(messages=[*earlier, user])) == 2
    assert find_request(AgentState(messages=[answer])) is None


def test_message_is_described_by_its_text_and_its_other_blocks() -> None:
    image = MediaBlock("image", "image/png", data=b"hi")
    assert describe_message(Message(Role.USER, "Look.")) == "Look."
    assert (
        describe_message(Message(Role.USER, (TextBlock("Look."), image))) == "Look.\n[and 1 blocks that are not text]"
    )


@given(data)
def test_indented_json_is_that_of_the_standard_library(value: object) -> None:
    assert indent_json(value) == json.dumps(value, ensure_ascii=False, indent=1, default=repr)
