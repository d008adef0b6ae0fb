"""Where breakpoints stand, and that nothing else moves with them."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locus.core.messages import MediaBlock, Message, Role, TextBlock, ThinkingBlock, ToolCall, ToolResult
from locus.models.protocol import ModelRequest, ModelSettings
from locus.tools.definition import ToolSpec
from locus_plugin_anthropic.body import body_of
from locus_plugin_anthropic.settings import AnthropicSettings

TOOLS = tuple(ToolSpec(name=name, description="d", parameters={"type": "object"}) for name in ("a", "b"))
SYSTEM = Message(Role.SYSTEM, "Be brief.")


def _user(text: str) -> Message:
    return Message(Role.USER, text)


def _turn(call_id: str) -> tuple[Message, ...]:
    call = Message(Role.ASSISTANT, (ThinkingBlock("hm", "s"), ToolCall(call_id, "a", {})), extras={"anthropic": {}})
    return call, Message(Role.TOOL, ToolResult(call_id, "ok"))


def _body(*messages: Message, purpose: str = "think", **settings: Any) -> dict[str, Any]:
    request = ModelRequest(messages=messages, tools=TOOLS, purpose=purpose)
    return body_of(request, "m", AnthropicSettings(**settings))[0]


def _marks(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        found = {path: value["cache_control"]} if "cache_control" in value else {}
        for key, inner in value.items():
            found |= _marks(inner, f"{path}.{key}" if path else key)
        return found
    if isinstance(value, list):
        return {place: mark for at, inner in enumerate(value) for place, mark in _marks(inner, f"{path}.{at}").items()}
    return {}


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _bare(inner) for key, inner in value.items() if key != "cache_control"}
    return [_bare(inner) for inner in value] if isinstance(value, list) else value


def test_first_request_marks_tools_system_prompt_and_question() -> None:
    five = {"type": "ephemeral"}
    assert _marks(_body(SYSTEM, _user("Hi."))) == {"tools.1": five, "system.0": five, "messages.0.content.0": five}


def test_later_request_marks_its_end_and_where_the_one_before_ended() -> None:
    messages = (SYSTEM, _user("Hi."), *_turn("1"), *_turn("2"))
    assert list(_marks(_body(*messages))) == ["tools.1", "system.0", "messages.2.content.0", "messages.4.content.0"]


def test_lifetime_is_a_setting() -> None:
    hour = {"type": "ephemeral", "ttl": "1h"}
    assert set(map(json.dumps, _marks(_body(SYSTEM, _user("Hi."), cache="1h")).values())) == {json.dumps(hour)}


def test_caching_can_be_turned_off() -> None:
    assert _marks(_body(SYSTEM, _user("Hi."), cache="off")) == {}


def test_request_that_none_will_follow_writes_no_cache_of_its_messages() -> None:
    # A plugin's own question: its prompt is not the beginning of another one.
    assert list(_marks(_body(SYSTEM, _user("Judge."), purpose="verifier"))) == ["tools.1", "system.0"]


def test_marks_of_the_user_replace_the_plugins() -> None:
    settings = ModelSettings(extras={"cache_control": {"type": "ephemeral"}})
    request = ModelRequest(messages=(SYSTEM, _user("Hi.")), tools=TOOLS, settings=settings)
    assert list(_marks(body_of(request, "m", AnthropicSettings())[0])) == [""]


def test_mark_comes_after_what_can_bear_one() -> None:
    # A turn that was cut in its thinking: nothing behind which a breakpoint could stand.
    thought = Message(Role.ASSISTANT, ThinkingBlock("hm", "s"), extras={"anthropic": {}})
    assert "messages.1" not in str(_marks(_body(_user("Hi."), thought)))
    said = Message(Role.ASSISTANT, (TextBlock("So"), ThinkingBlock("hm", "s")), extras={"anthropic": {}})
    assert "messages.1.content.0" in _marks(_body(_user("Hi."), said))


_USERS = st.sampled_from(
    [_user("Go on."), Message(Role.USER, (TextBlock("See:"), MediaBlock("image", url="https://x/y")))]
)
_TURNS = st.integers(0, 3).map(lambda n: _turn(f"call_{n}"))  # ids repeat
_HISTORIES = st.lists(_TURNS | _USERS.map(lambda m: (Message(Role.ASSISTANT, "So."), m)), max_size=6)


@given(_HISTORIES)
def test_each_request_is_a_prefix_of_the_next_apart_from_the_marks(history: list[tuple[Message, ...]]) -> None:
    messages: tuple[Message, ...] = (SYSTEM, _user("Hi."))
    bodies = [_body(*messages)]
    for turn in history:
        messages += turn
        bodies.append(_body(*messages))
    for body in bodies:
        assert 3 <= len(_marks(body)) <= 4
    for earlier, later in pairwise(bodies):
        assert _bare(earlier["tools"]) == _bare(later["tools"])
        assert _bare(earlier["system"]) == _bare(later["system"])
        begun = json.dumps(_bare(earlier["messages"]))
        assert json.dumps(_bare(later["messages"])).startswith(begun[:-1])
        # What the earlier one wrote to a cache, the later one looks for at the same place.
        ended = list(_marks(earlier))[-1]
        assert ended in _marks(later)


def test_same_request_has_the_same_bytes() -> None:
    messages = (SYSTEM, _user("Hi."), *_turn("1"))
    first = json.dumps(_body(*messages))
    assert json.dumps(_body(*messages)) == first


@pytest.mark.parametrize("ttl", ["off", "5m", "1h"])
def test_marking_changes_no_message(ttl: str) -> None:
    messages = (SYSTEM, _user("Hi."), *_turn("1"))
    before = json.dumps(_body(*messages, cache="off"))
    _body(*messages, cache=ttl)
    assert json.dumps(_body(*messages, cache="off")) == before
