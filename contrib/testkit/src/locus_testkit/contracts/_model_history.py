"""What a model makes of a conversation: what it said goes back verbatim, what was sent stays as it was."""

from __future__ import annotations

import json
from collections.abc import Set
from itertools import pairwise
from typing import Any

import pytest
from attrs import evolve

from locus import Agent, ModelCompleteEvent
from locus.core import freeze
from locus.core.errors import InputError, ModelError
from locus.core.messages import Block, Message, RawBlock, Role, TextBlock, ThinkingBlock, ToolCall
from locus.journal import MemoryStore
from locus.models import Model, ModelRequest
from locus_testkit.contracts._model import (
    TEMPERATURE,
    Differs,
    MakeModel,
    Promises,
    SentRequest,
    build_request,
    check_calls,
    check_text,
    result_of,
    system,
    user,
)
from locus_testkit.contracts.features import needs
from locus_testkit.scripted_model import ScriptedModel, call

__all__ = ["HistoryPromises"]

_PARIS = "What is the temperature in Paris? Use the tool."


class HistoryPromises(Promises):
    """A conversation of any provenance is accepted, and sent so that prompt caches work."""

    @needs("exact", "tools", "wire")
    async def test_assistant_turn_goes_back_as_it_came(self, make: MakeModel) -> None:
        """The response holds every block of the turn; the next request sends each, once and in order."""
        turn = self._rich_turn()
        model = await make(turn, "Done.")
        first = await model.complete(build_request(_PARIS, tools=(TEMPERATURE,)))
        assert _without_names(first.message, self.block_extras) == _without_names(turn)
        await model.complete(
            build_request(_PARIS, first.message, *map(result_of, check_calls(first)), tools=(TEMPERATURE,))
        )
        wire = _dump(list(self.sent_requests(model)[-1].messages))
        places = [wire.find(mark) for mark in self._marks()]
        assert -1 not in places, f"{dict(zip(self._marks(), places, strict=True))} in {wire}"
        assert places == sorted(places), f"{dict(zip(self._marks(), places, strict=True))} in {wire}"
        assert [wire.count(mark) for mark in self._marks()] == [1] * len(places)

    def _marks(self) -> list[str]:
        marks = ["thought-7f3a", "signature-7f3a"] if self.features.thinking else []
        return [*marks, "said-7f3a", *(["opaque-7f3a"] if self.features.raw_blocks else []), "city-7f3a"]

    def _rich_turn(self) -> Message:
        blocks: list[Block] = [TextBlock("said-7f3a")]
        if self.features.thinking:
            blocks.insert(0, ThinkingBlock("thought-7f3a", "signature-7f3a"))
        if self.features.raw_blocks:
            # The provider's own name is not known here; a test's make_model replaces it.
            blocks.append(RawBlock("", freeze({"type": "opaque", "data": "opaque-7f3a"})))
        blocks.append(ToolCall("", "temperature", freeze({"city": "city-7f3a"})))
        return Message(Role.ASSISTANT, tuple(blocks))

    @needs("exact", "tools", "moves")
    async def test_what_another_model_wrote_for_itself_is_left_out_and_noted(self, make: MakeModel) -> None:
        """A thread that another provider's model began: its words and calls are sent, and notes name the rest."""
        before = ScriptedModel(_foreign_turn(), "Bye.", name="another:model")
        notes, wire = await self._move(before, await make("Done."))
        assert "alien" not in wire, wire
        for said in ("cited-7f3a", "refused-7f3a", "city-7f3a", "Bye."):
            assert said in wire, f"{said} in {wire}"
        for left_out in ("reasoning", "redacted_thinking", "compaction", "refusal"):
            assert left_out in notes, notes

    @needs("exact", "tools", "wire", "moves")
    @pytest.mark.parametrize(("differs",), [("host",), ("family",)])  # noqa: PT006  # as `proof` reads them
    async def test_what_a_relative_wrote_for_itself_is_left_out_and_noted(
        self, make: MakeModel, differs: Differs
    ) -> None:
        """A thread that moves to another server of the same provider, or to a model of another family."""
        notes, wire = await self._move(await make(self._rich_turn(), "Bye."), await make("Done.", differs=differs))
        own = [mark for mark in self._marks() if mark not in ("said-7f3a", "city-7f3a")]
        assert [mark for mark in own if mark in wire] == []
        assert "said-7f3a" in wire
        assert "city-7f3a" in wire
        assert bool(notes) == bool(own)
        for mark, kind in (("thought-7f3a", "reasoning"), ("opaque-7f3a", "opaque")):
            assert (kind in notes) == (mark in own), notes

    async def _move(self, before: Model, after: Model) -> tuple[str, str]:
        """Begin a thread with one model and go on with another: the notes on the last call, and what was sent."""

        def temperature(city: str) -> str:
            """Give the temperature of a city in degrees Celsius."""
            return "21"

        store, notes = MemoryStore(), list[str]()
        begun = await Agent[Any, Any](before, tools=[temperature], checkpointer=store).run(_PARIS, thread_id="moved")
        begun.raise_for_failure()
        run = Agent[Any, Any](after, tools=[temperature], checkpointer=store).run("Go on.", thread_id="moved")
        async for event in run:
            if isinstance(event, ModelCompleteEvent):
                notes += event.notes
        run.result.raise_for_failure()
        return "; ".join(notes), _dump(list(self.sent_requests(after)[-1].messages))

    @needs("exact", "tools", "wire")
    async def test_every_request_begins_as_the_one_before(self, make: MakeModel) -> None:
        """System prompt and tools are the same bytes, old messages a prefix: prompt caches live on it."""
        turns = [
            call("temperature", city="Paris"),
            ["And Rome:", call("temperature", city="Rome")],
            "Done.",
            "Bye.",
        ]
        model = await make(*turns)
        messages = [system("Be brief."), user(_PARIS)]
        for _ in turns:
            response = await model.complete(build_request(*messages, tools=(TEMPERATURE,)))
            messages += [response.message, *map(result_of, response.tool_calls)]
            if not response.tool_calls:
                messages.append(user("Go on."))
        sent = self.sent_requests(model)
        assert len(sent) == len(turns)
        for earlier, later in pairwise(sent):
            assert _dump(later.system) == _dump(earlier.system)
            assert _dump(later.tools) == _dump(earlier.tools)
            was, now = _messages(earlier), _messages(later)
            assert now[: len(was)] == was
            assert len(now) > len(was)

    @needs("tools")
    async def test_agent_runs_on_it(self, make: MakeModel) -> None:
        """The loop gets from a question over a tool call to an answer, and knows what it cost."""
        model = await make(call("temperature", city="Paris"), "It is 21 degrees in Paris.")

        def temperature(city: str) -> str:
            """Give the temperature of a city in degrees Celsius."""
            return "21"

        agent: Agent[Any, Any] = Agent(model, tools=[temperature], max_iterations=5)
        result = await agent.run(_PARIS)
        result.raise_for_failure()
        assert result.usage.total_tokens > 0
        if self.features.exact:
            assert (result.stop_reason, result.text) == ("NoToolCalls", "It is 21 degrees in Paris.")
            assert [execution.result for execution in result.state.tool_executions] == ["21"]

    async def test_ids_of_calls_may_repeat(self, make: MakeModel) -> None:
        """Local models number the calls of each turn from 0; such a history can be continued by any model."""
        history: list[Message] = []
        for city in ("Paris", "Rome"):
            again = ToolCall("call_0", "temperature", freeze({"city": city}))
            history += [user(f"How warm is {city}?"), Message(Role.ASSISTANT, again), result_of(again)]
            history.append(Message(Role.ASSISTANT, "21 degrees."))
        model = await make("Both have 21 degrees.")
        response = await model.complete(build_request(*history, "Compare them.", tools=(TEMPERATURE,)))
        assert check_text(response).strip()

    async def test_blocks_of_another_provider_do_no_harm(self, make: MakeModel) -> None:
        """A thread that another provider's model began can be continued."""
        foreign = Message(
            Role.ASSISTANT,
            (
                ThinkingBlock("hm", "a signature of another provider"),
                RawBlock("another provider", freeze({"type": "search", "id": "1"})),
                TextBlock("Hello.", extras=freeze({"citations": [1]})),
            ),
            extras=freeze({"id": "msg_1", "model": "another"}),
        )
        model = await make("pong")
        request = build_request("Hi.", foreign, "Answer with the one word pong.")
        assert check_text(await model.complete(request)).strip()

    async def test_text_that_is_not_unicode_is_answered_or_refused(self, make: MakeModel) -> None:
        """A lone surrogate or a NUL, as broken pages hold them, gets an answer or a typed error."""
        for text in ("half a pair: \ud83d", "nul: \x00"):
            await _check_survives(await make("pong"), build_request(f"Answer with the one word pong. {text}"))

    async def test_very_long_request_is_answered_or_refused(self, make: MakeModel) -> None:
        """Half a million characters get an answer, or the error that says that the window is too small."""
        await _check_survives(await make("pong"), build_request("Answer with the one word pong. " + "word " * 100_000))


def _foreign_turn() -> Message:
    """What several providers keep in a turn, all of it of a model that the one under test does not know."""
    kept = {"id": "alien-id", "reasoning_details": [{"data": "alien-encrypted"}], "response": {"x": "alien"}}
    forms = ("anthropic", "openai.chat", "openai.responses", "ollama", "oci.generic", "oci.cohere", "gemini")
    of_call = {form: {"id": "alien-item", "extra_content": {"signature": "alien-signed"}} for form in forms}
    part = {"type": "output_text", "text": "", "annotations": [{"url": "alien-url"}]}
    return Message(
        Role.ASSISTANT,
        (
            ThinkingBlock("alien-thought", "alien-signature", extras=freeze(dict.fromkeys(forms, "reasoning_content"))),
            ThinkingBlock("alien-unsigned", extras=freeze({"oci.generic": True})),
            RawBlock("anthropic", freeze({"type": "redacted_thinking", "data": "alien-redacted"})),
            *(
                RawBlock(name, freeze({"type": "compaction", "encrypted_content": "alien-compacted"}))
                for name in ("openai", "oci", "ollama", "llamacpp", "")
            ),
            TextBlock("cited-7f3a", extras=freeze({"citations": ["alien-source"], "openai.responses": {"part": part}})),
            TextBlock("refused-7f3a", extras=freeze(dict.fromkeys(forms, "refusal"))),
            ToolCall("call_1", "temperature", freeze({"city": "city-7f3a"}), extras=freeze(of_call)),
        ),
        extras=freeze({**dict.fromkeys(forms, kept), "llamacpp": "alien-text"}),
    )


async def _check_survives(model: Model, request: ModelRequest) -> None:
    try:
        response = await model.complete(request)
    except (ModelError, InputError):
        return
    check_text(response)


def _without_names(message: Message, extras: Set[str] = frozenset()) -> list[Block]:
    """What was said, apart from what only the provider can name: ids and further data of its own, and itself."""
    said: list[Block] = []
    for block in message.content:
        if isinstance(block, RawBlock):
            said.append(evolve(block, provider=""))
        elif isinstance(block, TextBlock | ThinkingBlock):
            said.append(evolve(block, extras={k: v for k, v in block.extras.items() if k not in extras}))
        elif not isinstance(block, ToolCall):
            said.append(block)
    return said


def _dump(data: object) -> str:
    return json.dumps(data, ensure_ascii=False)


def _messages(sent: SentRequest) -> list[str]:
    return [_dump(message) for message in sent.messages]
