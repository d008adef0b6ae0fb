"""Who can read a turn: models of the same form, host and family."""

from __future__ import annotations

import pytest

from locus.core.messages import Message, RawBlock, Role, TextBlock, ThinkingBlock
from locus.models import ModelRequest, ModelResponse
from locus_kit.origins import Origin, family_of

HERE, THERE = Origin("acme@here/llama"), Origin("acme@there/llama")
THOUGHT = Message(Role.ASSISTANT, ThinkingBlock("hm", "signed"))
SAID = Message(Role.ASSISTANT, (ThinkingBlock("hm"), RawBlock("acme", {"id": 1}), TextBlock("Hi.", extras={"x": 1})))


def request_of(*messages: Message) -> ModelRequest:
    return ModelRequest(messages=(Message(Role.USER, "?"), *messages))


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("gpt-5", "gpt"),
        ("gpt-5-mini-2025-08-07", "gpt"),
        ("ft:gpt-4o:acme", "gpt"),
        ("openai/gpt-oss-120b", "gpt-oss"),
        ("qwen3:8b", "qwen"),
        ("hf.co/bartowski/Llama-3.2:Q4_K_M", "llama"),
        ("claude-opus-4-8", "claude"),
        ("claude-sonnet-5-5", "claude"),
        ("us.anthropic.claude-sonnet-5-5-v1:0", "claude"),
        ("openai.gpt-5.5", "gpt"),
        ("meta.llama-3.3-70b-instruct", "llama"),
        ("ocid1.generativeaimodel.oc1..A", "ocid1.generativeaimodel.oc1..a"),
        ("O3", "o"),
        ("42", "42"),
    ],
)
def test_the_family_is_how_the_name_begins(name: str, family: str) -> None:
    assert family_of(name) == family
    made = Origin.of("x.chat", "https://user:secret@Host.example:8000/v1", name)
    assert made == Origin(f"x.chat@host.example/{family}")


def test_a_turn_goes_back_to_its_own_origin_as_it_came() -> None:
    signed = HERE.sign(ModelResponse(message=SAID)).message
    assert signed.content == SAID.content
    request = request_of(signed)
    assert HERE.read(request) == (request, ())
    assert HERE.read(request)[0] is request


def test_another_origin_reads_the_words_and_gets_notes_on_the_rest() -> None:
    request, notes = THERE.read(request_of(HERE.sign(ModelResponse(message=SAID)).message))
    assert request.messages[1] == Message(Role.ASSISTANT, "Hi.")
    assert request.messages[1].extras == {}
    assert notes == ("not sent, as only the model that wrote it can read it: reasoning, a block of its provider",)


def test_a_turn_that_nobody_signed_is_foreign_and_one_of_nothing_else_is_left_out() -> None:
    request, notes = HERE.read(request_of(THOUGHT, THOUGHT))
    assert request.messages == (Message(Role.USER, "?"),)
    assert notes == ("not sent, as only the model that wrote it can read it: reasoning (2 blocks)",)


def test_a_turn_is_worked_out_once() -> None:
    messages = request_of(SAID)
    assert HERE.read(messages)[0].messages[1] is THERE.read(messages)[0].messages[1]


def test_notes_of_the_provider_come_first() -> None:
    assert HERE.sign(ModelResponse(message=SAID, notes=("a",)), ("b",)).notes == ("a", "b")
