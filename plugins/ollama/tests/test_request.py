"""What is sent for what is asked."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from attrs import evolve

from locus.core.errors import ConfigError, SettingsError
from locus.core.frozen import freeze
from locus.core.messages import MediaBlock, Message, Role, TextBlock, ThinkingBlock, ToolCall, ToolResult
from locus.models.protocol import ModelRequest, ModelSettings, OutputSpec, Price
from locus.plugins.settings import Layer, structure
from locus.tools.definition import ToolSpec
from locus_plugin_ollama.errors import CannotSend
from locus_plugin_ollama.messages import encode_messages
from locus_plugin_ollama.model import OllamaModel, make
from locus_plugin_ollama.request import body_of, plan
from locus_plugin_ollama.settings import OllamaSettings

from .protocol import check_chat

LOOK = ToolSpec(name="look", description="Looks.", parameters=freeze({"type": "object", "properties": {}}))
CITY = OutputSpec(name="city", schema=freeze({"type": "object", "properties": {"name": {"type": "string"}}}))
PIXEL = b"\x89PNG\r\n\x1a\n pixel"


def user(*content: Any) -> Message:
    return Message(Role.USER, content)


def make_body(
    *messages: Message, own: OllamaSettings | None = None, stream: bool = False, **fields: Any
) -> dict[str, Any]:
    """The body, after checking that it is one."""
    request = ModelRequest(messages=messages or (user(TextBlock("Hi.")),), **fields)
    body: dict[str, Any] = json.loads(
        body_of(plan(request).request, "llama3.2:1b", own or OllamaSettings(), stream=stream)
    )
    check_chat(body)
    return body


# ----------------------------------------------------------------- settings


def test_without_settings_only_what_is_needed_is_sent() -> None:
    body = make_body(own=OllamaSettings(overflow="server"))

    assert body == {"messages": [{"role": "user", "content": "Hi."}], "model": "llama3.2:1b", "stream": False}


def test_settings_of_the_plugin_become_options() -> None:
    settings = OllamaSettings(
        num_ctx=16384,
        max_tokens=100,
        temperature=0.0,
        top_p=0.9,
        top_k=20,
        seed=7,
        stop=("END",),
        options=freeze({"min_p": 0.05}),
    )

    assert make_body(own=settings)["options"] == {
        "num_ctx": 16384,
        "num_predict": 100,
        "temperature": 0.0,
        "top_p": 0.9,
        "top_k": 20,
        "seed": 7,
        "stop": ["END"],
        "min_p": 0.05,
    }


def test_the_request_goes_before_the_plugin_and_its_own_words_before_its_extras() -> None:
    own = OllamaSettings(
        temperature=0.9,
        max_tokens=5,
        seed=1,
        stop=("a",),
        num_ctx=512,
        options=freeze({"min_p": 0.1}),
        think=True,
        keep_alive="5m",
    )
    asked = ModelSettings(
        temperature=0.0,
        max_tokens=9,
        seed=0,
        stop=("b",),
        extras=freeze({"options": {"min_p": 0.2, "num_ctx": 1024, "seed": 5}, "keep_alive": "1h", "think": False}),
    )

    body = make_body(own=own, settings=asked, stream=True)

    assert body["options"] == {
        "temperature": 0.0,
        "num_predict": 9,
        "seed": 0,
        "stop": ["b"],
        "num_ctx": 1024,
        "min_p": 0.2,
    }
    assert (body["keep_alive"], body["think"], body["stream"]) == ("1h", False, True)


@pytest.mark.parametrize("value", [True, False, "high"])
def test_thinking_is_switched_as_set(value: bool | str) -> None:
    assert make_body(own=OllamaSettings(think=value))["think"] == value


@pytest.mark.parametrize("value", [0, -1.0, 90.5, "10m", "1h30m", "-1m", "0s"])
def test_the_model_stays_loaded_as_set(value: Any) -> None:
    assert make_body(own=OllamaSettings(keep_alive=value))["keep_alive"] == value


def test_a_prompt_that_is_too_long_is_not_to_be_cut_in_silence() -> None:
    assert {name: make_body()[name] for name in ("truncate", "shift")} == {"truncate": False, "shift": False}
    assert {"truncate", "shift"}.isdisjoint(make_body(own=OllamaSettings(overflow="server")))


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"num_ctx": 0}, "num_ctx"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"temperature": -0.5}, "temperature"),
        ({"top_p": 1.5}, "top_p"),
        ({"top_k": -1}, "top_k"),
        ({"think": ""}, "think"),
        ({"keep_alive": "10"}, "keep_alive"),
        ({"keep_alive": "soon"}, "keep_alive"),
        ({"keep_alive": float("nan")}, "keep_alive"),
        ({"price": {"prompt": -1.0, "completion": 0.0}}, "price"),
        ({"overflow": "ignore"}, "overflow"),
        ({"timeout": 0}, "timeout"),
        ({"silence": float("inf")}, "silence"),
        ({"connections": 0}, "connections"),
        ({"api_key": "text"}, "api_key"),
        ({"numctx": 1}, "num_ctx"),
    ],
)
def test_wrong_settings_are_refused_by_name(table: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        structure(OllamaSettings, [Layer("locus.toml", "plugins.ollama", table)], {})


def test_settings_are_read_as_they_are_written() -> None:
    table = {"think": "low", "keep_alive": -1, "price": {"prompt": 0.1, "completion": 0.2}, "options": {"num_gpu": 0}}

    made = structure(OllamaSettings, [Layer("locus.toml", "plugins.ollama", table)], {})

    assert (made.think, made.keep_alive, made.options) == ("low", -1, {"num_gpu": 0})
    assert made.price == Price(prompt=0.1, completion=0.2)


@pytest.mark.parametrize("name", ["model", "messages", "tools", "stream"])
def test_extras_do_not_take_the_place_of_the_request(name: str) -> None:
    with pytest.raises(CannotSend, match=name):
        make_body(settings=ModelSettings(extras=freeze({name: 1})))


# ----------------------------------------------------------------- tools and typed answers


def test_tools_are_sent_in_their_order() -> None:
    tools = tuple(evolve(LOOK, name=name) for name in ("b", "a", "c"))

    assert [tool["function"]["name"] for tool in make_body(tools=tools)["tools"]] == ["b", "a", "c"]


def test_no_tool_may_be_called_means_that_none_is_offered() -> None:
    assert "tools" not in make_body(tools=(LOOK,), settings=ModelSettings(tool_choice="none"))
    assert "tools" in make_body(tools=(LOOK,), settings=ModelSettings(tool_choice="auto"))


@pytest.mark.parametrize("choice", ["required", "look"])
def test_a_call_that_cannot_be_forced_is_refused_rather_than_hoped_for(choice: str) -> None:
    with pytest.raises(CannotSend, match=f"tool_choice must not be '{choice}'") as caught:
        make_body(tools=(LOOK,), settings=ModelSettings(tool_choice=choice))
    assert (caught.value.provider, caught.value.retryable) == ("ollama", False)


def test_a_typed_answer_is_a_schema_without_tools() -> None:
    assert make_body(output=CITY)["format"] == {"type": "object", "properties": {"name": {"type": "string"}}}
    forbidden = make_body(output=CITY, tools=(LOOK,), settings=ModelSettings(tool_choice="none"))
    assert "tools" not in forbidden
    assert forbidden["format"]["type"] == "object"


def test_a_typed_answer_is_one_more_tool_where_there_are_tools() -> None:
    body = make_body(output=CITY, tools=(LOOK,))

    assert "format" not in body, "it would forbid the calls"
    assert [tool["function"]["name"] for tool in body["tools"]] == ["look", "final_answer"]
    assert body["tools"][1]["function"]["parameters"]["properties"] == {"name": {"type": "string"}}


# ----------------------------------------------------------------- messages


def test_images_are_sent_as_bytes() -> None:
    picture = MediaBlock("image", "image/png", data=PIXEL)
    linked = MediaBlock("image", url="data:image/png;base64," + base64.b64encode(PIXEL).decode())

    (message,) = make_body(user(TextBlock("What is this?"), picture, linked))["messages"]

    assert message == {"role": "user", "content": "What is this?", "images": [base64.b64encode(PIXEL).decode()] * 2}


@pytest.mark.parametrize(
    ("block", "told"),
    [
        (MediaBlock("image", url="https://example.com/a.png"), "data="),
        (MediaBlock("image", url="data:image/svg+xml,<svg/>"), "data="),
        (MediaBlock("audio", "audio/wav", data=b"x"), "audio"),
        (MediaBlock("document", "application/pdf", data=b"x"), "document"),
    ],
)
def test_what_the_protocol_cannot_say_is_refused_before_it_is_sent(block: MediaBlock, told: str) -> None:
    with pytest.raises(CannotSend, match=told):
        make_body(user(block))


def test_results_name_their_tool_and_only_ids_of_the_server_are_sent() -> None:
    given = {"ollama": {"id": "call_1"}}
    calls = (ToolCall("made_up", "look"), ToolCall("call_1", "see", extras=freeze(given)))
    results = (ToolResult("made_up", "a"), ToolResult("call_1", "b"))
    turn = Message(Role.ASSISTANT, calls)
    together = make_body(user(TextBlock("?")), turn, Message(Role.TOOL, results))["messages"]
    apart = make_body(user(TextBlock("?")), turn, *(Message(Role.TOOL, each) for each in results))["messages"]

    assert together == apart
    assert together[2:] == [
        {"role": "tool", "content": "a", "tool_name": "look"},
        {"role": "tool", "content": "b", "tool_name": "see", "tool_call_id": "call_1"},
    ]
    assert together[1]["tool_calls"] == [
        {"function": {"name": "look", "arguments": {}}},
        {"id": "call_1", "function": {"name": "see", "arguments": {}}},
    ]


def test_results_of_calls_with_one_id_find_their_calls_in_order() -> None:
    turn = Message(Role.ASSISTANT, (ToolCall("same", "look"), ToolCall("same", "see")))
    results = (ToolResult("same", "a"), ToolResult("same", "b"))
    together = make_body(user(TextBlock("?")), turn, Message(Role.TOOL, results))["messages"]
    apart = make_body(user(TextBlock("?")), turn, *(Message(Role.TOOL, each) for each in results))["messages"]

    assert together == apart
    assert [message["tool_name"] for message in together[2:]] == ["look", "see"]


def test_results_of_one_tool_in_one_message_stay_apart() -> None:
    turn = Message(Role.ASSISTANT, (ToolCall("1", "look"), ToolCall("2", "look")))
    results = Message(Role.TOOL, (ToolResult("1", "a", name="look"), ToolResult("2", "b", name="look")))

    messages = make_body(user(TextBlock("?")), turn, results)["messages"]

    assert [message["content"] for message in messages[2:]] == ["a", "b"]


def test_a_result_says_what_it_is_of_also_where_its_call_is_gone() -> None:
    """A conversation manager may have cut the call off; the server takes such a message."""
    result = Message(Role.TOOL, ToolResult("1", "a", name="look"))

    assert json.loads(encode_messages([result])[0]) == {"role": "tool", "content": "a", "tool_name": "look"}


def test_a_result_is_encoded_for_the_call_that_it_follows() -> None:
    result = Message(Role.TOOL, ToolResult("1", "a"))
    first = Message(Role.ASSISTANT, ToolCall("1", "look"))
    second = Message(Role.ASSISTANT, ToolCall("1", "see", extras=freeze({"ollama": {"id": "1"}})))

    assert [json.loads(encode_messages([turn, result])[1]) for turn in (first, second)] == [
        {"role": "tool", "content": "a", "tool_name": "look"},
        {"role": "tool", "content": "a", "tool_name": "see", "tool_call_id": "1"},
    ]


def test_a_result_may_show_an_image() -> None:
    turn = Message(Role.ASSISTANT, ToolCall("1", "look"))
    shown = (TextBlock("here"), MediaBlock("image", "image/png", data=PIXEL))

    messages = make_body(user(TextBlock("?")), turn, Message(Role.TOOL, ToolResult("1", shown)))["messages"]

    assert messages[2]["images"] == [base64.b64encode(PIXEL).decode()]


def test_thinking_goes_back_and_what_another_provider_signed_does_not() -> None:
    own = Message(Role.ASSISTANT, (ThinkingBlock("hm"), TextBlock("A.")))
    foreign = Message(Role.ASSISTANT, (ThinkingBlock("hm", "signed"), TextBlock("B.")))

    messages = make_body(user(TextBlock("?")), own, user(TextBlock("?")), foreign)["messages"]

    assert messages[1] == {"role": "assistant", "content": "A.", "thinking": "hm"}
    assert messages[3] == {"role": "assistant", "content": "B."}


def test_malformed_arguments_of_another_provider_are_sent_as_none() -> None:
    turn = Message(Role.ASSISTANT, ToolCall("1", "look", malformed="{oops"))
    result = Message(Role.TOOL, ToolResult("1", "Error: no JSON", is_error=True))

    assert make_body(user(TextBlock("?")), turn, result)["messages"][1]["tool_calls"][0]["function"]["arguments"] == {}


# ----------------------------------------------------------------- the model itself


def test_names_may_have_tags() -> None:
    assert make("llama3.2:1b").name == "ollama:llama3.2:1b"
    assert make(" qwen3 ").name == "ollama:qwen3"


def test_a_name_is_needed() -> None:
    with pytest.raises(ConfigError, match="ollama:NAME"):
        make(" ")


@pytest.mark.parametrize(
    ("model", "url", "price"),
    [
        ("qwen3", None, Price(prompt=0.0, completion=0.0)),
        ("gpt-oss:120b-cloud", None, None),
        ("glm:cloud", None, None),
        ("qwen3", "http://10.0.0.7", None),
        ("gpt-oss:120b", "https://ollama.com", None),
    ],
)
def test_a_model_of_this_machine_costs_nothing_and_others_nobody_knows_what(
    model: str, url: str | None, price: Price | None
) -> None:
    assert OllamaModel(model, OllamaSettings(base_url=url), {}).price == price


def test_the_price_is_what_the_user_says() -> None:
    price = Price(prompt=0.1, completion=0.4)

    assert OllamaModel("qwen3", OllamaSettings(base_url="https://ollama.com", price=price), {}).price == price
