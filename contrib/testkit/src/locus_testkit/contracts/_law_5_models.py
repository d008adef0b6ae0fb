"""Law 5: a model call is a step. An answer that was recorded is paid for once."""

from __future__ import annotations

from collections import Counter
from typing import Any

from locus import Agent
from locus.core.journal import Outcome
from locus.core.messages import Message, Role
from locus.core.state import AgentState
from locus.journal import JournalStore
from locus.models import ModelCallResult, ModelRequest
from locus.plugin import View
from locus_testkit.contracts._runs import Case, Talk, World, crash_each_write
from locus_testkit.contracts._store import OpenStore, StoreContract
from locus_testkit.contracts.features import needs
from locus_testkit.scripted_model import ScriptedModel, call

__all__ = ["ModelCallLaws"]


class _Notes:
    """A conversation manager that asks a model of its own before each Think: a node with two model calls."""

    def __init__(self) -> None:
        self.asked: Counter[int] = Counter()

    async def view(self, state: AgentState, run: Any) -> View:
        """All messages, and the model's notes on them."""
        number = state.iteration

        def answer(_: ModelRequest) -> str:
            self.asked[number] += 1
            return f"notes {number}, asked {self.asked[number]} times"

        request = ModelRequest(messages=(Message(Role.USER, f"notes of {number}"),))
        response = await run.call_model(request, model=ScriptedModel(answer), purpose="notes")
        return View(state.messages, metadata={f"notes {number}": response.message.text})


class ModelCallLaws(StoreContract):
    """A crash repeats the call in flight, and no other."""

    async def test_law_5_crash_repeats_one_model_call_at_most(self, open_store: OpenStore) -> None:
        """A crash anywhere costs at most one more call, and each answer is in the history once."""
        place = await self.place(open_store)
        talks: dict[str, Talk] = {}

        def make(thread_id: str) -> Case:
            talk, world = Talk(call("act", n=1), call("act", n=2), "done"), World()
            talks[thread_id] = talk
            tools = [world.effect("act", "pure")]
            return Case(place, thread_id, lambda store: Agent(talk.model, tools=tools, checkpointer=store))

        cases = await crash_each_write(make)
        assert {sum(talks[case.thread_id].asked.values()) for case in cases} == {3, 4}
        for case in cases:
            said = [m.text for m in (await case.state()).messages if m.role is Role.ASSISTANT]
            assert [text.split(",")[0] for text in said] == ["turn 0", "turn 1", "turn 2"], case.dead_process.crash
            assert len(said) == 3

    async def test_law_5_recorded_answer_is_not_asked_for_again(self, open_store: OpenStore) -> None:
        """A call that was stored before the rest of its node is not repeated with the node."""
        place = await self.place(open_store)
        notes: dict[str, _Notes] = {}
        talks: dict[str, Talk] = {}

        def make(thread_id: str) -> Case:
            talk, manager, world = Talk(call("act", n=1), "done"), _Notes(), World()
            notes[thread_id], talks[thread_id] = manager, talk

            def agent(store: JournalStore) -> Agent[object, object]:
                tools = [world.effect("act", "pure")]
                return Agent(talk.model, tools=tools, checkpointer=store, conversation_manager=manager)

            return Case(place, thread_id, agent)

        found = 0
        for case in await crash_each_write(make):
            asked, state = notes[case.thread_id].asked, await case.state()
            calls = sum(asked.values()) + sum(talks[case.thread_id].asked.values())
            assert calls <= 5, f"{case.dead_process.crash}: more than the call in flight was repeated"
            for number in (0, 1):
                stored = any(
                    (b.step_id.iteration, b.step_id.purpose) == (number, "notes")
                    for b in case.dead_process.arrived
                    if isinstance(b, Outcome)
                )
                found += stored
                assert asked[number] == 1 or not stored, f"{case.dead_process.crash}: the answer was stored"
                assert state.metadata[f"notes {number}"] == f"notes {number}, asked {asked[number]} times"
        assert found, "no crash came between the two calls of a node"

    @needs("history")
    async def test_law_5_history_says_what_was_recorded(self, open_store: OpenStore) -> None:
        """Every answer in the conversation is the recorded outcome of a model step, and every outcome is in it."""
        place = await self.place(open_store)

        def make(thread_id: str) -> Case:
            talk, world = Talk(call("act", n=1), "done"), World()
            tools = [world.effect("act", "pure")]
            return Case(place, thread_id, lambda store: Agent(talk.model, tools=tools, checkpointer=store))

        for case in await crash_each_write(make):
            bodies = [entry.body for entry in await place.stores[0].read(case.thread_id)]
            recorded = [b.value for b in bodies if isinstance(b, Outcome) and isinstance(b.value, ModelCallResult)]
            said = [m for m in (await case.state()).messages if m.role is Role.ASSISTANT]
            assert [each.response.message for each in recorded] == said, case.dead_process.crash
