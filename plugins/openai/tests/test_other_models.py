"""A thread that moves to another server, form or family: what only the model before can read is not sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from locus import Agent, Hook, ModelCompleteEvent
from locus.core.messages import Block, RawBlock, TextBlock, ThinkingBlock
from locus.journal import MemoryStore
from locus_plugin_openai.model import OpenAIModel, make
from locus_plugin_openai.settings import OpenAISettings
from locus_testkit.localserver import Answer, LocalServer

from .emulator import responses

pytestmark = pytest.mark.anyio

SEARCHED = {"type": "web_search_call", "id": "ws_1", "status": "completed"}


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with LocalServer() as server:
        yield server


class Notes(Hook):
    """Keeps the notes on the last call."""

    notes: tuple[str, ...] | None = None

    def on_model_complete(self, event: ModelCompleteEvent) -> None:
        self.notes = event.notes


def model(server: LocalServer, form: Any, name: str, host: str = "127.0.0.1") -> OpenAIModel:
    url = server.url.replace("127.0.0.1", host)
    return make(name, OpenAISettings(base_url=f"{url}/v1", api=form))


def said(server: LocalServer, form: str) -> None:
    """An answer with reasoning, and where the form has them, with a refusal or an item of the provider."""
    if form == "chat":
        message = {"role": "assistant", "content": "Hi.", "reasoning_content": "hm", "refusal": "Not that.", "x": 1}
        server.then(Answer.of({"choices": [{"message": message, "finish_reason": "stop"}]}))
    else:
        blocks: list[Block] = [ThinkingBlock("hm", "encrypted"), RawBlock("", SEARCHED), TextBlock("Hi.")]
        server.then(responses(blocks, 1, {"model": "m"}))


async def sent_on(before: OpenAIModel, after: OpenAIModel, server: LocalServer, form: str) -> tuple[str, Any]:
    """The second request of a thread, and the notes on it."""
    store = MemoryStore()
    await Agent(before, checkpointer=store).run("One.", thread_id="t")
    if form == "chat":
        server.then(Answer.of({"choices": [{"message": {"content": "Yes."}, "finish_reason": "stop"}]}))
    else:
        server.then(responses([TextBlock("Yes.")], 2, {"model": "m"}))
    hook = Notes()
    result = await Agent(after, checkpointer=store, hooks=[hook]).run("Two.", thread_id="t")
    assert result.text == "Yes."
    return server.received[-1].body.decode(), hook.notes


@pytest.mark.parametrize("form", ["chat", "responses"])
async def test_the_same_family_on_the_same_server_gets_all_of_it(server: LocalServer, form: str) -> None:
    said(server, form)
    body, notes = await sent_on(model(server, form, "gpt-5"), model(server, form, "gpt-5-mini"), server, form)
    assert ("reasoning_content" if form == "chat" else "encrypted") in body
    assert notes == ()


@pytest.mark.parametrize("form", ["chat", "responses"])
@pytest.mark.parametrize("moved", ["server", "form", "family"])
async def test_another_model_gets_the_words_and_nothing_else(server: LocalServer, form: str, moved: str) -> None:
    said(server, form)
    new_form = {"chat": "responses", "responses": "chat"}[form] if moved == "form" else form
    name, host = "qwen3-32b" if moved == "family" else "gpt-5", "localhost" if moved == "server" else "127.0.0.1"
    after = model(server, new_form, name, host)
    body, notes = await sent_on(model(server, form, "gpt-5"), after, server, new_form)
    assert "Hi." in body
    for own in ("reasoning_content", '"encrypted"', "web_search_call", "ws_1", '"refusal"', '"x"'):
        assert own not in body
    if form == "chat":
        assert "Not that." in body  # what was refused is text now
    left_out = "reasoning" if form == "chat" else "reasoning, web_search_call"
    assert notes[0] == f"not sent, as only the model that wrote it can read it: {left_out}"
    assert notes[1:] == (("sent as plain text: refusal",) if form == "chat" else ())
