"""What is sent in each form and what is made of answers: the shapes of the Inference API, one promise each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from locus import Agent
from locus.core.errors import ConfigError, ContextOverflow, InputError
from locus.core.messages import MediaBlock, Message, RawBlock, Role, TextBlock, ThinkingBlock, ToolCall, ToolResult
from locus.models import ModelRequest, ModelSettings, OutputSpec
from locus.models.protocol import Chunk, ModelResponse
from locus.plugins.secret import Secret
from locus.tools.definition import ToolSpec
from locus_plugin_oci.cohere import Cohere
from locus_plugin_oci.generic import Generic
from locus_plugin_oci.listing import default_model, models
from locus_plugin_oci.model import OciModel, make
from locus_plugin_oci.names import form_of
from locus_plugin_oci.settings import OciSettings
from locus_testkit.imports import modules_imported_by
from locus_testkit.localserver import Answer, LocalServer
from locus_wire.errors import KeyMissing, KeyRefused, NotFound, RateLimited
from locus_wire.streams import ErrorInAnswer

from .service import COMPARTMENT, USAGE
from .verification import Keys, write_profile

pytestmark = pytest.mark.anyio

USER = Message(Role.USER, "Hi.")
ENDPOINT = "ocid1.generativeaiendpoint.oc1..x"
TOOL = ToolSpec(
    name="find",
    description="Find it.",
    parameters={
        "type": "object",
        "properties": {
            "what": {"type": "string", "description": "what to find"},
            "where": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        },
        "required": ["what"],
        "additionalProperties": False,
    },
)
OUTPUT = OutputSpec(
    name="city",
    schema={"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
)


def make_request(*messages: Message, **fields: Any) -> ModelRequest:
    return ModelRequest(messages=messages or (USER,), **fields)


def body_of(family: Generic | Cohere, request: ModelRequest, model: str = "xai.grok-4") -> Any:
    return json.loads(family.request(request, model, stream=False))


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with LocalServer() as made:
        yield made


@pytest.fixture
def config(keys: Keys, tmp_path: Path) -> Path:
    return write_profile(tmp_path, keys)


def model_at(server: LocalServer, config: Path, name: str = "google.gemini-2.5-pro", **more: Any) -> OciModel:
    fields = {"config_file": str(config), "compartment": COMPARTMENT, "endpoint": server.url, **more}
    return make(name, OciSettings(**fields))


# -- which form, and who is asked -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("openai.gpt-5.5", "chat"),
        ("xai.grok-4", "chat"),
        ("meta.llama-4-scout", "chat"),
        ("google.gemini-2.5-pro", "generic"),
        ("cohere.command-a-03-2025", "cohere"),
        ("ocid1.generativeaiendpoint.oc1.us-chicago-1.abc", "generic"),
        ("ocid1.generativeaimodel.oc1.us-chicago-1.abc", "generic"),
    ],
)
def test_the_name_says_which_form_unless_the_settings_do(name: str, form: str) -> None:
    assert make(name).form == form
    assert form_of(name, "responses") == "responses"
    assert make(name, OciSettings(api="cohere")).form == "cohere"
    assert make(name).name == f"oci:{name}"


def test_invalid_names_and_settings_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"oci:openai\.gpt-5\.5"):
        make(" ")
    with pytest.raises(ConfigError, match="takes signatures"):
        make("cohere.command-a", OciSettings(api_key=Secret("sk-0123456789")))
    assert all(name.startswith("oci:") for name, _ in models(None))
    assert default_model({}) is None


async def test_an_endpoint_of_ones_own_is_named_as_such(server: LocalServer, config: Path) -> None:
    """A dedicated endpoint by its OCID, everything else as a model."""
    answer = {"choices": [{"message": {"content": [{"type": "TEXT", "text": "Hi."}]}, "finishReason": "stop"}]}
    for name, serving in (
        (
            "ocid1.generativeaiendpoint.oc1..x",
            {"servingType": "DEDICATED", "endpointId": "ocid1.generativeaiendpoint.oc1..x"},
        ),
        ("google.gemini-2.5-pro", {"servingType": "ON_DEMAND", "modelId": "google.gemini-2.5-pro"}),
    ):
        server.then(Answer.of({"chatResponse": answer}))
        response = await model_at(server, config, name).complete(make_request())
        assert response.message.text == "Hi."
        body = server.received[-1].json
        assert (body["servingMode"], body["compartmentId"]) == (serving, COMPARTMENT)


async def test_the_compatible_address_gets_who_pays(server: LocalServer, config: Path) -> None:
    """By header, and the project as well."""
    server.then(Answer.of({"choices": [{"message": {"content": "Hi."}, "finish_reason": "stop"}]}))
    await model_at(server, config, "openai.gpt-5.5", project="ocid1.generativeaiproject.oc1..p").complete(
        make_request()
    )
    (received,) = server.received
    assert received.path == "/openai/v1/chat/completions"
    assert received.headers["opc-compartment-id"] == received.headers["compartmentid"] == COMPARTMENT
    assert received.headers["openai-project"] == "ocid1.generativeaiproject.oc1..p"
    assert received.json["model"] == "openai.gpt-5.5"


async def test_the_strict_form_is_for_those_who_know_it(server: LocalServer, config: Path) -> None:
    for name, strict in (("openai.gpt-5.5", True), ("xai.grok-4", None)):
        server.then(Answer.of({"choices": [{"message": {"content": "Hi."}, "finish_reason": "stop"}]}))
        await model_at(server, config, name).complete(make_request(tools=(TOOL,)))
        assert server.received[-1].json["tools"][0]["function"].get("strict") is strict


async def test_an_api_key_takes_the_place_of_signatures(server: LocalServer, tmp_path: Path) -> None:
    """No profile is read then, and the key is shown nowhere."""
    key = Secret("sk-oci-0123456789abcdef")
    settings = OciSettings(config_file=str(tmp_path / "none"), endpoint=f"{server.url}/openai/v1", api_key=key)
    model = make("openai.gpt-5.5", settings)
    server.then(
        Answer.of({"choices": [{"message": {"content": "Hi."}, "finish_reason": "stop"}]}),
        Answer.of({"code": "NotAuthenticated", "message": f"the key {key.reveal()} is not known"}, status=401),
    )
    await model.complete(make_request())
    assert server.received[0].headers["authorization"] == f"Bearer {key.reveal()}"
    with pytest.raises(KeyRefused) as caught:
        await model.complete(make_request())
    assert key.reveal() not in f"{caught.value} {caught.value!r} {model!r} {settings!r} {vars(caught.value)}"


async def test_responses_are_asked_where_the_settings_say_so(server: LocalServer, config: Path) -> None:
    part = {"type": "output_text", "text": "Hi."}
    item = {"type": "message", "role": "assistant", "content": [part]}
    server.then(Answer.of({"status": "completed", "model": "m", "output": [item]}))
    response = await model_at(server, config, "openai.gpt-5.5", api="responses").complete(make_request())
    assert response.message.text == "Hi."
    assert server.received[0].path == "/openai/v1/responses"


async def test_nobody_can_sign_is_a_typed_error_and_the_thread_continues(server: LocalServer, tmp_path: Path) -> None:
    model = model_at(server, tmp_path / "none")
    with pytest.raises(KeyMissing, match="oci setup config") as caught:
        await model.complete(make_request())
    assert (caught.value.provider, caught.value.retryable) == ("oci", False)
    agent: Agent[Any, Any] = Agent(make("openai.gpt-5.5", OciSettings(config_file=str(tmp_path / "none"))))
    result = await agent.run("Hi.")
    assert isinstance(result.error, KeyMissing)
    assert server.connections == 0


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (401, "NotAuthenticated", KeyRefused),
        (404, "NotAuthorizedOrNotFound", NotFound),
        (429, "TooManyRequests", RateLimited),
    ],
)
async def test_failures_say_what_the_service_says(
    server: LocalServer, config: Path, status: int, code: str, error: type[Exception]
) -> None:
    said = {"code": code, "message": "Authorization failed or requested resource not found."}
    server.then(Answer.of(said, status=status, headers={"opc-request-id": "ABC/DEF"}))
    with pytest.raises(error) as caught:
        await model_at(server, config).complete(make_request())
    assert (caught.value.code, caught.value.request_id, caught.value.status) == (code, "ABC/DEF", status)  # type: ignore[attr-defined]
    assert "Authorization failed" in str(caught.value)


async def test_an_error_in_the_middle_of_a_stream_is_reported(server: LocalServer, config: Path) -> None:
    piece = {"message": {"content": [{"type": "TEXT", "text": "Hel"}]}}
    server.then(Answer.events(piece, {"code": "429", "message": "too many"}, done=""))

    async def listen(chunk: Chunk) -> None:
        assert chunk.text == "Hel"

    with pytest.raises(RateLimited, match="too many"):
        await model_at(server, config).complete(make_request(), listen)


# -- GENERIC --------------------------------------------------------------------------------------


def test_generic_settings_have_their_names() -> None:
    settings = ModelSettings(
        temperature=0.5,
        max_tokens=9,
        seed=3,
        stop=("x",),
        tool_choice="find",
        extras={"topK": 4, "reasoningEffort": "LOW"},
    )
    body = body_of(Generic(), make_request(settings=settings, tools=(TOOL,), output=OUTPUT))
    assert {name: body[name] for name in ("temperature", "maxTokens", "seed", "stop", "topK", "reasoningEffort")} == {
        "temperature": 0.5,
        "maxTokens": 9,
        "seed": 3,
        "stop": ["x"],
        "topK": 4,
        "reasoningEffort": "LOW",
    }
    assert body["toolChoice"] == {"type": "FUNCTION", "name": "find"}
    assert body["tools"][0]["type"] == "FUNCTION"
    schema = body["responseFormat"]["jsonSchema"]
    assert (schema["name"], schema["isStrict"], schema["schema"]["additionalProperties"]) == ("city", True, False)
    assert body_of(Generic(), make_request(settings=settings), "openai.gpt-5.5")["maxCompletionTokens"] == 9
    for choice in ("auto", "none", "required"):
        body = body_of(Generic(), make_request(settings=ModelSettings(tool_choice=choice), tools=(TOOL,)))
        assert body["toolChoice"] == {"type": choice.upper()}
    anything = OutputSpec(name="any", schema={"type": "object", "additionalProperties": {"type": "integer"}})
    assert body_of(Generic(), make_request(output=anything))["responseFormat"]["jsonSchema"]["isStrict"] is False


def test_generic_media_and_results_are_put_where_they_are_allowed() -> None:
    """A picture that a tool shows is shown by the user, once all results are given."""
    picture = MediaBlock("image", "image/png", data=b"png")
    calls = Message(Role.ASSISTANT, (ToolCall("1", "find", {"what": "x"}), ToolCall("2", "find", {"what": "y"})))
    results = [
        Message(Role.TOOL, ToolResult("1", (TextBlock("see"), picture), name="find")),
        Message(Role.TOOL, ToolResult("2", "nothing", name="find")),
    ]
    user = Message(Role.USER, (TextBlock("look"), MediaBlock("document", url="https://x.example/a.pdf")))
    body = body_of(Generic(), make_request(user, calls, *results, Message(Role.USER, "and?")))
    assert [message["role"] for message in body["messages"]] == ["USER", "ASSISTANT", "TOOL", "TOOL", "USER", "USER"]
    assert body["messages"][0]["content"][1] == {
        "type": "DOCUMENT",
        "documentUrl": {"url": "https://x.example/a.pdf"},
    }
    assert body["messages"][1]["content"] == [{"type": "TEXT", "text": "."}], "the service fails on calls without text"
    assert body["messages"][4]["content"][1]["imageUrl"]["url"] == "data:image/png;base64,cG5n"
    assert body["messages"][2]["toolCallId"] == "1"


_TEXT = st.text(max_size=12)
_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | _TEXT, lambda inner: st.lists(inner, max_size=2)
)
_CALL: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "id": _TEXT,
        "type": st.just("FUNCTION"),
        "name": _TEXT,
        "arguments": st.sampled_from(["{}", '{"a": 1}', "{ ", ""]),
    },
    optional={"extra": _JSON},
)
_PART = st.fixed_dictionaries(
    {"type": st.just("TEXT"), "text": st.text(min_size=1, max_size=9)}
) | st.fixed_dictionaries({"type": st.sampled_from(["IMAGE", "ODD"]), "data": _JSON})
_SAID = st.fixed_dictionaries(
    {"role": st.just("ASSISTANT"), "content": st.lists(_PART, min_size=1, max_size=3)},
    optional={
        "reasoningContent": _TEXT,
        "refusal": _TEXT,
        "name": _TEXT,
        "annotations": st.lists(_JSON, max_size=2),
        "toolCalls": st.lists(_CALL, min_size=1, max_size=3, unique_by=lambda each: each["id"]),
    },
)


@given(_SAID)
def test_generic_turns_go_back_as_they_came(said: dict[str, Any]) -> None:
    """Unknown parts and fields, odd spacing and text that is no JSON included; ids that were missing are made up."""
    answer = {"choices": [{"message": said, "finishReason": "stop"}], "usage": USAGE}
    response = Generic().response(answer)
    back = body_of(Generic(), make_request(USER, response.message))["messages"][1]
    wanted = {name: value for name, value in said.items() if value is not None}
    for made, one in zip(back.get("toolCalls", ()), wanted.get("toolCalls", ()), strict=True):
        assert made["id"]
        assert {**made, "id": ""} == {**one, "id": ""}
        assert one["id"] in ("", made["id"])
    assert {**back, "toolCalls": None} == {**wanted, "toolCalls": None}


def test_generic_turns_that_were_changed_say_what_they_say_now() -> None:
    """A hook may rewrite an answer; what was kept of the old one must not bring it back."""
    said = {"role": "ASSISTANT", "content": [{"type": "TEXT", "text": "old", "extra": 1}], "name": "n"}
    message = Generic().response({"choices": [{"message": said, "finishReason": "stop"}]}).message
    changed = evolve(message, content=(TextBlock("new"),))
    back = body_of(Generic(), make_request(USER, changed))["messages"][1]
    assert back["content"] == [{"type": "TEXT", "text": "new"}]


@pytest.mark.parametrize(
    ("finish", "stop"),
    [
        ("stop", "stop"),
        ("STOP", "stop"),
        ("length", "length"),
        ("MAX_TOKENS", "length"),
        ("content_filter", "filter"),
        ("odd", "other"),
    ],
)
def test_generic_reasons_to_stop(finish: str, stop: str) -> None:
    message = {"content": [{"type": "TEXT", "text": "x"}]}
    assert Generic().response({"choices": [{"message": message, "finishReason": finish}]}).stop_reason == stop


def _gather(family: Generic | Cohere, *events: dict[str, Any]) -> tuple[ModelResponse, list[Chunk]]:
    pieces, heard = family.gathering(), list[Chunk]()
    for event in events:
        heard += pieces.take(event)
    assert pieces.is_finished
    return family.response(pieces.whole()), heard


def test_generic_reasoning_streams_and_goes_back() -> None:
    response, heard = _gather(
        Generic(),
        {"message": {"reasoningContent": "Let me "}},
        {"message": {"reasoningContent": "think."}},
        {"message": {"content": [{"type": "TEXT", "text": "Yes."}]}},
        {"finishReason": "stop"},
        {"usage": USAGE},
    )
    assert response.message.content[0] == ThinkingBlock("Let me think.", extras={"oci.generic": True})
    assert [(chunk.kind, chunk.text) for chunk in heard] == [
        ("reasoning", "Let me "),
        ("reasoning", "think."),
        ("text", "Yes."),
    ]
    assert (response.usage.cached_tokens, response.usage.reasoning_tokens) == (4, 2)
    back = body_of(Generic(), make_request(USER, response.message))["messages"][1]
    assert back["reasoningContent"] == "Let me think."


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize("repeats", [True, False], ids=["name once", "name in each piece"])
def test_generic_calls_are_put_together_however_they_come(numbered: bool, repeats: bool) -> None:
    """With an index or without, with the name in each piece or in the first one."""

    def events(number: int, city: str) -> Iterator[dict[str, Any]]:
        head = {"id": f"c{number}", "type": "FUNCTION", "name": "find"}
        index = {"index": number} if numbered else {}
        for at, piece in enumerate(("", '{"city": ', f'"{city}"', "}")):
            more = head if not at or repeats else {}
            yield {"message": {"toolCalls": [{**more, **index, "arguments": piece}]}}

    response, _ = _gather(Generic(), *events(0, "Paris"), *events(1, "Rome"), {"finishReason": "tool_calls"})
    assert [(call.id, dict(call.arguments)) for call in response.tool_calls] == [
        ("c0", {"city": "Paris"}),
        ("c1", {"city": "Rome"}),
    ]


# -- COHERE ---------------------------------------------------------------------------------------


def test_cohere_parts_of_a_conversation_have_their_fields() -> None:
    """System prompts, history, the newest results, and what the user says now."""
    first, second = ToolCall("1", "find", {"what": "x"}), ToolCall("1", "find", {"what": "y"})
    history = [
        Message(Role.SYSTEM, "Be brief."),
        Message(Role.USER, "Find both."),
        Message(Role.ASSISTANT, (TextBlock("Well."), first)),
        Message(Role.TOOL, ToolResult("1", "here", name="find")),
        Message(Role.ASSISTANT, second),
        Message(Role.TOOL, ToolResult("1", "there", name="find")),
    ]
    body = body_of(Cohere(), make_request(*history, tools=(TOOL,)))
    assert (body["preambleOverride"], body["message"]) == ("Be brief.", "")
    assert [each["role"] for each in body["chatHistory"]] == ["USER", "CHATBOT", "TOOL", "CHATBOT"]
    assert body["chatHistory"][1] == {
        "role": "CHATBOT",
        "message": "Well.",
        "toolCalls": [{"name": "find", "parameters": {"what": "x"}}],
    }
    assert body["toolResults"] == [
        {"call": {"name": "find", "parameters": {"what": "y"}}, "outputs": [{"output": "there"}]}
    ]
    body = body_of(Cohere(), make_request(*history, Message(Role.ASSISTANT, "Done."), Message(Role.USER, "Thanks.")))
    assert body["message"] == "Thanks."
    assert "toolResults" not in body
    assert [each["role"] for each in body["chatHistory"]][-2:] == ["TOOL", "CHATBOT"]


def test_cohere_tools_say_in_words_what_they_cannot_say_otherwise() -> None:
    (tool,) = body_of(Cohere(), make_request(tools=(TOOL,)))["tools"]
    assert tool["parameterDefinitions"]["what"] == {"description": "what to find", "type": "str", "isRequired": True}
    where = tool["parameterDefinitions"]["where"]
    assert (where["type"], where["isRequired"]) == ("List", False)
    assert '"enum": ["a", "b"]' in where["description"]


def test_cohere_cannot_be_made_to_call_a_tool() -> None:
    """What would change the meaning is refused, and "none" is kept by offering nothing."""
    with pytest.raises(InputError, match="cannot be made to call a tool"):
        body_of(Cohere(), make_request(tools=(TOOL,), settings=ModelSettings(tool_choice="required")))
    assert "tools" not in body_of(Cohere(), make_request(tools=(TOOL,), settings=ModelSettings(tool_choice="none")))
    with pytest.raises(InputError, match="text only"):
        body_of(Cohere(), make_request(Message(Role.USER, MediaBlock("image", url="https://x.example/a.png"))))


async def test_cohere_answers_by_a_schema_or_with_a_tool_beside_others(server: LocalServer, config: Path) -> None:
    """Its schemas and its tools exclude each other, so the answer is a tool where there are some."""
    model = model_at(server, config, "cohere.command-a-03-2025")
    server.then(
        Answer.of({"chatResponse": {"text": '{"name": "Paris"}', "finishReason": "COMPLETE"}}),
        Answer.of(
            {
                "chatResponse": {
                    "text": "I will answer.",
                    "finishReason": "COMPLETE",
                    "toolCalls": [{"name": "final_answer", "parameters": {"name": "Paris"}}],
                }
            }
        ),
    )
    assert (await model.complete(make_request(output=OUTPUT))).message.text == '{"name": "Paris"}'
    response = await model.complete(make_request(output=OUTPUT, tools=(TOOL,)))
    assert (response.message.text, response.stop_reason) == ('{"name": "Paris"}', "stop")
    first, second = (received.json["chatRequest"] for received in server.received)
    assert first["responseFormat"]["schema"]["required"] == ["name"]
    assert "responseFormat" not in second
    assert [tool["name"] for tool in second["tools"]] == ["find", "final_answer"]


def test_cohere_reasons_to_stop() -> None:
    def said(finish: str) -> dict[str, Any]:
        return {"text": "x", "finishReason": finish, "errorMessage": "it broke", "usage": USAGE}

    assert Cohere().response(said("COMPLETE")).stop_reason == "stop"
    assert Cohere().response(said("MAX_TOKENS")).stop_reason == "length"
    assert Cohere().response(said("ERROR_TOXIC")).stop_reason == "filter"
    with pytest.raises(ErrorInAnswer) as caught:
        Cohere().response(said("ERROR"))
    assert caught.value.body == {"code": "ERROR", "message": "it broke"}


async def test_cohere_that_runs_out_of_window_says_so(server: LocalServer, config: Path) -> None:
    answer = {"text": "", "finishReason": "ERROR_LIMIT", "errorMessage": "too many tokens"}
    server.then(Answer.of({"chatResponse": answer}))
    with pytest.raises(ContextOverflow):
        await model_at(server, config, "cohere.command-a-03-2025").complete(make_request())


@pytest.mark.parametrize("repeats", [True, False], ids=["whole at the end", "nothing at the end"])
def test_cohere_streams_are_heard_once(repeats: bool) -> None:
    """The last event repeats the text, and nobody hears it twice; sources are kept."""
    last = {"finishReason": "COMPLETE", "usage": USAGE, "citations": [{"start": 0}]}
    response, heard = _gather(
        Cohere(), {"text": "Hel"}, {"text": "lo"}, {**last, **({"text": "Hello"} if repeats else {})}
    )
    assert (response.message.text, "".join(chunk.text for chunk in heard)) == ("Hello", "Hello")
    assert response.message.extras["oci.cohere"] == {"citations": ({"start": 0},)}


def test_blocks_of_others_are_left_out() -> None:
    foreign = Message(Role.ASSISTANT, (ThinkingBlock("hm", "sig"), RawBlock("other", {"x": 1}), TextBlock("Hello.")))
    body = body_of(Generic(), make_request(USER, foreign))
    assert body["messages"][1] == {"role": "ASSISTANT", "content": [{"type": "TEXT", "text": "Hello."}]}


# -- what it costs --------------------------------------------------------------------------------


def test_choosing_the_provider_loads_its_own_stack_and_nothing_else() -> None:
    """Its modules, the client's, what signs, and no SDK: under twice what the client alone takes."""
    client, own = modules_imported_by("httpx2"), modules_imported_by("locus_plugin_oci.model")
    assert len(own) < 2 * len(client), sorted(own - client)
    assert not {name.partition(".")[0] for name in own} & {"oci", "openai", "pydantic", "requests"}


def test_the_manifest_loads_neither_a_client_nor_cryptography() -> None:
    assert not {name.partition(".")[0] for name in modules_imported_by("locus_plugin_oci.manifest")} & {
        "httpx2",
        "cryptography",
    }


@pytest.mark.parametrize("family", [Generic, Cohere])
def test_tools_that_the_service_runs_come_behind_our_own(family: Any) -> None:
    hosted = {"type": "WEB_SEARCH", "new": [1]}
    settings = ModelSettings(extras={"tools": [hosted]})
    assert body_of(family(), make_request(settings=settings, tools=(TOOL,)))["tools"][1:] == [hosted]
    assert body_of(family(), make_request(settings=settings))["tools"] == [hosted]
    with pytest.raises(InputError, match="must be a list of the provider's tools"):
        body_of(family(), make_request(settings=ModelSettings(extras={"tools": "WEB_SEARCH"})))
