"""The fields of OpenAI's requests: what an agent cannot heed is refused by name, and what changes nothing is taken."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from pydantic import BaseModel

from .conftest import PATIENCE, StartServer, make_agent

CHAT: dict[str, Any] = {"model": "shop", "messages": [{"role": "user", "content": "Hi."}]}
RESPONSE: dict[str, Any] = {"model": "shop", "input": "Hi."}
SCHEMA = {"type": "json_schema", "name": "x", "schema": {"type": "object"}}

#: Fields of a chat completion with a value that would have no effect.
UNHEEDED_CHAT: dict[str, Any] = {
    "top_p": 0.1,
    "presence_penalty": 2,
    "frequency_penalty": -0.5,
    "reasoning_effort": "high",
    "verbosity": "low",
    "modalities": ["text", "audio"],
    "web_search_options": {"search_context_size": "low"},
    "logprobs": True,
    "top_logprobs": 3,
    "tool_choice": "required",
    "parallel_tool_calls": False,
    "service_tier": "flex",
    "functions": [{"name": "f"}],
    "logit_bias": {"1": 2},
    "prediction": {"type": "content", "content": "x"},
}

#: And of a response.
UNHEEDED_RESPONSE: dict[str, Any] = {
    "top_p": 0.1,
    "truncation": "auto",
    "tool_choice": "required",
    "tools": [{"type": "web_search"}],
    "top_logprobs": 3,
    "max_tool_calls": 3,
    "reasoning": {"effort": "high"},
    "background": True,
    "service_tier": "flex",
}

#: What says nothing to an agent, or asks for what is so anyway.
TAKEN: dict[str, Any] = {
    "user": "someone",
    "metadata": {"a": "b"},
    "store": False,
    "safety_identifier": "x",
    "prompt_cache_key": "x",
    "prompt_cache_retention": "24h",
    "temperature": 0.5,
    "top_p": 1,
    "top_logprobs": 0,
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "service_tier": "auto",
    "tools": [],
    "stream": False,
    "stream_options": None,
}
TAKEN_CHAT: dict[str, Any] = {
    **TAKEN,
    "n": 1,
    "seed": 1,
    "stop": None,
    "logprobs": False,
    "top_p": 1.0,
    "presence_penalty": 0,
    "frequency_penalty": 0.0,
    "modalities": ["text"],
    "verbosity": "medium",
    "response_format": {"type": "text"},
    "max_completion_tokens": 10,
    "tool_choice": "none",
}
TAKEN_RESPONSE: dict[str, Any] = {
    **TAKEN,
    "truncation": "disabled",
    "text": {"format": {"type": "text"}, "verbosity": "medium"},
    "background": False,
    "include": [],
    "max_output_tokens": 10,
    "max_tool_calls": None,
}


def test_a_field_without_effect_is_refused_by_name(start_server: StartServer) -> None:
    server = start_server(make_agent("Hello."))
    with server.client() as client:
        for path, body, fields in (
            ("/v1/chat/completions", CHAT, UNHEEDED_CHAT),
            ("/v1/responses", RESPONSE, UNHEEDED_RESPONSE),
        ):
            for name, value in fields.items():
                error = client.post_json(path, **{**body, name: value}).json().get("error")
                assert error, name
                assert (error["param"], error["code"]) == (name, "unsupported_parameter")
                assert error["message"].startswith(f"{name} is not supported: ")


def test_fields_that_change_nothing_are_taken(start_server: StartServer) -> None:
    server = start_server(make_agent("Hello."))
    with server.client() as client:
        for path, body, fields in (
            ("/v1/chat/completions", CHAT, TAKEN_CHAT),
            ("/v1/responses", RESPONSE, TAKEN_RESPONSE),
        ):
            for given in (*({name: value} for name, value in fields.items()), fields):
                answer = client.post_json(path, **{**body, **given})
                assert answer.status_code == 200, answer.text


def test_a_misspelled_field_is_refused_with_the_one_that_was_meant(start_server: StartServer) -> None:
    server = start_server(make_agent("Hello."))
    with server.client() as client:
        for path, body, wrong, meant in (
            ("/v1/chat/completions", CHAT, "temprature", "temperature"),
            ("/v1/responses", RESPONSE, "instrctions", "instructions"),
            ("/api/turns", {"prompt": "Hi."}, "requestid", "request_id"),
        ):
            refused = client.post_json(path, **{**body, wrong: "x"})
            error = refused.json()["error"]
            assert (refused.status_code, error["param"]) == (400, wrong)
            assert error["message"] == f"unknown field {wrong!r}; did you mean {meant!r}?"
        error = client.post_json("/v1/chat/completions", **CHAT, zzzzz=1).json()["error"]
        fields = error["message"].removeprefix("unknown field 'zzzzz'; the fields are ").split(", ")
        assert {"messages", "model", "stream"} <= set(fields)
        assert not {"tools", "audio", "metadata"} & set(fields)  # which would be refused, or have no effect


@pytest.mark.parametrize(
    ("text", "param"),
    [({"format": SCHEMA}, "text.format"), ({"verbosity": "low"}, "text.verbosity"), ({"x": 1}, "text.x")],
)
def test_a_response_of_another_form_is_refused(start_server: StartServer, text: dict[str, Any], param: str) -> None:
    server = start_server(make_agent("Hello."))
    with server.client() as client:
        refused = client.post_json("/v1/responses", **RESPONSE, text=text)
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)


class Order(BaseModel):
    """What a client may want to read an answer as."""

    number: int


def test_the_client_says_that_an_answer_cannot_be_parsed_as_a_type(start_server: StartServer) -> None:
    server = start_server(make_agent("Hello."))
    url = f"{server.url}/v1"
    with openai.OpenAI(base_url=url, api_key="x", timeout=PATIENCE, max_retries=0) as client:
        with pytest.raises(openai.BadRequestError, match=r"text\.format is not supported"):
            client.responses.parse(model="shop", input="Hi.", text_format=Order)
        with pytest.raises(openai.BadRequestError, match="response_format must be text"):
            client.chat.completions.parse(**CHAT, response_format=Order)
