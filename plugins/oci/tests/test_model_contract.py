"""What the loop relies on, in each form, and what happens when the service misbehaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from attrs import evolve

from locus.core.messages import TextBlock, ToolCall
from locus.models.protocol import Model
from locus_plugin_oci.model import OciModel, make
from locus_plugin_oci.settings import OciSettings
from locus_testkit import Differs, ModelContract, ModelFeatures, PluginContract, SentRequest
from locus_testkit.hostile import Answer, Good, HostileFeatures, HostileServerContract
from locus_testkit.scripted_model import Turn

from .service import COMPARTMENT, Service, cohere, generic, openai
from .verification import Keys, write_profile

_MODELS = {"generic": "google.gemini-2.5-pro", "cohere": "cohere.command-a-03-2025", "chat": "openai.gpt-5.5"}


class TestPlugin(PluginContract):
    """The manifest, the settings and the compat paths."""

    name = "oci"


class _AtAnEmulator(ModelContract):
    form: ClassVar[str]
    features = ModelFeatures(
        exact=True,
        parallel_tools=True,
        structured_output=True,
        max_tokens=True,
        failures=True,
        deadline=True,
        wire=True,
        moves=True,
    )

    @pytest.fixture(autouse=True)
    def place(self, keys: Keys, tmp_path: Path) -> Iterator[None]:
        """Who signs, and what is running."""
        self.keys, self.config = keys, write_profile(tmp_path, keys)
        self.running: dict[OciModel, Service] = {}
        yield
        assert self.running == {}

    keys: Keys
    config: Path
    running: dict[OciModel, Service]

    def make_model(self, *answers: Turn) -> OciModel:
        return self._make(*answers, name=_MODELS[self.form])

    def make_relative(self, differs: Differs, *answers: Turn) -> OciModel:
        if differs == "host":
            return self._make(*answers, name=_MODELS[self.form], host="localhost")
        return self._make(*answers, name=_MODELS[self.form].replace(".", ".other-"))

    def _make(self, *answers: Turn, name: str, host: str = "127.0.0.1") -> OciModel:
        service = Service(self.keys, *answers)
        service.server.__enter__()
        endpoint = service.server.url.replace("127.0.0.1", host)
        settings = OciSettings(config_file=str(self.config), compartment=COMPARTMENT, endpoint=endpoint)
        model = make(name, settings)
        self.running[model] = service
        return model

    async def close_model(self, model: Model) -> None:
        assert isinstance(model, OciModel)
        service = self.running.pop(model)
        assert service.server.wait_until_idle(), "a connection was left open"
        service.server.__exit__(None, None, None)
        assert service.refused == []

    def sent_requests(self, model: Model) -> Sequence[SentRequest]:
        assert isinstance(model, OciModel)
        return [self.show(request.json) for request in self.running[model].server.received]

    def show(self, body: Any) -> SentRequest:
        """One request."""
        chat = body["chatRequest"]
        return SentRequest(messages=chat["messages"], tools=chat.get("tools"))


class TestGeneric(_AtAnEmulator):
    """The service's own form."""

    form = "generic"
    features = evolve(_AtAnEmulator.features, raw_blocks=True)


class TestCohere(_AtAnEmulator):
    """The form of Cohere's models."""

    form = "cohere"

    def show(self, body: Any) -> SentRequest:
        """What is said now belongs behind the history, where it will be in the next request."""
        chat = body["chatRequest"]
        now: list[Any] = [{"role": "USER", "message": chat["message"]}] if chat["message"] else []
        now += [{"role": "TOOL", "toolResults": [each]} for each in chat.get("toolResults", ())]
        messages = [*chat.get("chatHistory", []), *now]
        for message in messages:
            for result in message.get("toolResults", ()):
                # It repeats its call, for want of ids.
                result["call"].pop("parameters")
        return SentRequest(messages=messages, tools=chat.get("tools"), system=chat.get("preambleOverride"))


@pytest.mark.proof  # the form is another distribution's, which proves it
class TestChat(_AtAnEmulator):
    """The OpenAI-compatible address."""

    form = "chat"

    def show(self, body: Any) -> SentRequest:
        """One request."""
        return SentRequest(messages=body["messages"], tools=body.get("tools"))


# -- a hostile service ----------------------------------------------------------------------------


def _good(form: str) -> Good:
    says: Any = {"generic": generic, "cohere": cohere, "chat": openai}[form]
    whole, stream = _asks(form, stream=False), _asks(form, stream=True)
    calls = [ToolCall("same", "temperature", {"city": city}) for city in ("Paris", "Rome")]
    if form == "cohere":
        empty = empty_stream = None
    elif form == "generic":
        empty = Answer.of({"modelId": "m", "chatResponse": {"apiFormat": "GENERIC", "choices": []}})
        empty_stream = Answer.events({"usage": {"promptTokens": 1}}, done="")
    else:
        empty, empty_stream = Answer.of({"choices": []}), Answer.events({"choices": []})
    return Good(
        whole=says([TextBlock("pong")], 1, whole),
        stream=says([TextBlock("pong pong pong")], 1, stream).with_fields(
            body=says([TextBlock("pong")], 1, stream).body
        ),
        calls=says(calls, 1, whole),
        calls_stream=says(calls, 1, stream),
        empty=empty,
        empty_stream=empty_stream,
    )


def _asks(form: str, *, stream: bool) -> dict[str, Any]:
    if form == "chat":
        return {"model": "m", "stream": stream}
    return {"isStream": stream, "streamOptions": {"isIncludeUsage": True}}


class _Hostile(HostileServerContract):
    form: ClassVar[str]

    @pytest.fixture(autouse=True)
    def place(self, keys: Keys, tmp_path: Path) -> None:
        """Who signs."""
        self.keys, self.folder = keys, tmp_path

    keys: Keys
    folder: Path

    def make_model(self, base_url: str, key: str) -> OciModel:
        # A session signs with a token, which is the secret that must not show.
        config = write_profile(self.folder, self.keys, session=key)
        settings = OciSettings(config_file=str(config), compartment=COMPARTMENT, endpoint=base_url)
        return make(_MODELS[self.form], settings)


class TestHostileGeneric(_Hostile):
    """Everything that goes wrong, in the service's own form."""

    form = "generic"
    good = _good("generic")


@pytest.mark.proof  # the table again, in the other forms
class TestHostileCohere(_Hostile):
    """... with the models of Cohere, which have neither ids nor choices."""

    form = "cohere"
    good = _good("cohere")
    features = HostileFeatures(ids=False, choices=False)


@pytest.mark.proof
class TestHostileChat(_Hostile):
    """... at the OpenAI-compatible address."""

    form = "chat"
    good = _good("chat")
