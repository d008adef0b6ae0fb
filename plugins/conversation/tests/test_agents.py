"""Conversation managers in the loop: what the model sees grows short, what was said stays whole."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from tests.loop.hook_kit import Crash
from tests.loop.kit import Recorder, add, assert_valid_history, bodies, confirm, of, results

from locus import (
    Agent,
    AgentState,
    CheckpointEvent,
    Hook,
    Message,
    ModelCompleteEvent,
    ModelError,
    ModelRequest,
    Retry,
    Role,
    ThinkEvent,
    tool,
)
from locus.core.termination import TokenLimit
from locus.journal import MemoryStore
from locus.plugin import ConversationManager, RunContext, View, hookimpl
from locus_plugin_conversation import LLMCompactor, SlidingWindowManager, SummarizingManager
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio

SYSTEM = "Be brief."


@tool
async def read(page: int) -> str:
    """A long page."""
    return f"page {page}: " + "word " * 200


class Talker:
    """A script by purpose: the loop's turns come from a list, summaries are numbered."""

    def __init__(self, *turns: Any) -> None:
        self.turns = list(turns)
        self.summaries = 0

    def __call__(self, request: ModelRequest) -> Any:
        if request.purpose == "summarize":
            self.summaries += 1
            return f"summary {self.summaries}"
        return self.turns.pop(0)

    def model(self) -> ScriptedModel:
        return ScriptedModel(self, after="repeat")


def requests_for(model: ScriptedModel, purpose: str = "think") -> list[ModelRequest]:
    return [r for r in model.requests if r.purpose == purpose]


def is_prefix(shorter: tuple[Message, ...], longer: tuple[Message, ...]) -> bool:
    return longer[: len(shorter)] == shorter


# -- every manager ------------------------------------------------------------------------------------

MANAGERS: dict[str, ConversationManager] = {
    "a window": SlidingWindowManager(6, slack=2),
    "a tight window": SlidingWindowManager(1),
    "summaries": SummarizingManager(threshold=6, keep_recent=3),
    "a compactor": LLMCompactor(window=900, trigger=0.8, tail=0.4, tool_output_ttl=1, head=1),
}


@pytest.mark.parametrize("name", MANAGERS)
async def test_nothing_that_was_said_is_lost_and_what_is_sent_is_always_valid(name: str) -> None:
    turns = [[call("read", page=n), call("read", page=n + 100)] for n in range(8)]
    talker = Talker(*turns, "done")
    model = talker.model()
    agent = Agent(model, tools=[read], system_prompt=SYSTEM, conversation_manager=MANAGERS[name])
    result = await agent.run("read all of it")
    assert (result.stop_reason, result.message) == ("NoToolCalls", "done")
    assert len(results(result)) == 16
    assert all(len(text) > 200 for text in results(result))
    assert_valid_history(result.state.messages)
    sent = [r.messages for r in requests_for(model)]
    assert any(len(messages) < 1 + 1 + 2 * n for n, messages in enumerate(sent)) or talker.summaries
    for messages in sent:
        assert messages[0] == Message(Role.SYSTEM, SYSTEM)
        assert [m.role for m in messages].count(Role.SYSTEM) == 1
        assert "read all of it" in [m.text for m in messages]
        assert_valid_history(messages)
        assert messages[-1].role is not Role.ASSISTANT


@pytest.mark.parametrize("name", MANAGERS)
async def test_a_short_conversation_is_sent_as_it_is(name: str) -> None:
    model = ScriptedModel("hello")
    result = await Agent(model, system_prompt=SYSTEM, conversation_manager=MANAGERS[name]).run("hi")
    assert model.requests[0].messages == result.state.messages[:2]
    assert result.state.metadata == {}


async def test_between_two_acts_every_request_begins_like_the_one_before() -> None:
    talker = Talker(*[call("add", a=n) for n in range(12)], "done")
    model = talker.model()
    manager = SummarizingManager(threshold=9, keep_recent=4)
    await Agent(model, tools=[add], conversation_manager=manager).run("x")
    sent = [r.messages for r in requests_for(model)]
    broken = sum(not is_prefix(a, b) for a, b in pairwise(sent))
    assert broken == talker.summaries
    assert 1 <= talker.summaries <= 4


# -- summaries ----------------------------------------------------------------------------------------


def summarizing(model: ScriptedModel, **options: Any) -> Agent[Any, Any]:
    return Agent(
        model,
        tools=[add, confirm],
        system_prompt=SYSTEM,
        conversation_manager=SummarizingManager(threshold=5, keep_recent=2),
        **options,
    )


async def test_a_summary_is_a_call_of_the_run_and_is_in_its_state() -> None:
    recorder, talker = Recorder(), Talker(*[call("add", a=n) for n in range(3)], "done")
    model = talker.model()
    result = await summarizing(model, hooks=[recorder]).run("x")
    assert talker.summaries >= 1
    assert result.usage.total_tokens == 15 * len(model.requests)
    told = [e.purpose for e in of(recorder.events, ModelCompleteEvent)]
    assert told.count("summarize") == talker.summaries
    last = requests_for(model)[-1].messages
    assert any("summary" in m.text for m in last)
    assert "summary" not in "".join(m.text for m in result.state.messages)
    assert result.state.metadata["locus.summary"]["summary"].startswith("summary")


async def test_a_summary_is_used_again_in_the_next_turn_of_the_thread() -> None:
    talker = Talker(*[call("add", a=n) for n in range(4)], "one", "two")
    model = talker.model()
    manager = SummarizingManager(threshold=7, keep_recent=6)
    agent = Agent(model, tools=[add], system_prompt=SYSTEM, conversation_manager=manager, checkpointer=MemoryStore())
    first = await agent.run("x", thread_id="t")
    assert talker.summaries == 1
    second = await agent.run("y", thread_id="t")
    assert talker.summaries == 1
    assert any("summary" in m.text for m in requests_for(model)[-1].messages)
    assert second.state.metadata == first.state.metadata
    assert len(second.state.messages) == len(first.state.messages) + 2


async def test_a_summary_is_used_again_when_a_question_has_been_answered() -> None:
    talker = Talker(*[call("add", a=n) for n in range(3)], call("confirm", what="pay"), "done")
    model = talker.model()
    agent = summarizing(model, checkpointer=MemoryStore())
    await agent.run("x", thread_id="t")
    before = talker.summaries
    assert before >= 1
    result = await agent.resume("t", "yes")
    assert result.message == "done"
    assert talker.summaries - before <= 1
    views = [r.messages for r in requests_for(model)]
    assert any("summary" in m.text for m in views[-1])


async def test_a_summary_that_was_made_is_not_made_again_after_a_crash() -> None:
    class Dies(Hook):
        """Dies at the first answer that came after a summary, when both are on record."""

        alive = False

        @hookimpl
        async def locus_review_answer(self, answer: Message, run: RunContext) -> None:
            async def nothing() -> None:
                return None

            await run.step("nothing", nothing)
            if not self.alive:
                raise Crash

    talker = Talker(*[call("add", a=n) for n in range(2)], "done")
    model, dies = talker.model(), Dies()
    manager = SummarizingManager(threshold=4, keep_recent=1)
    agent = Agent(model, tools=[add], conversation_manager=manager, hooks=[dies], checkpointer=MemoryStore())
    with pytest.raises(Crash):
        await agent.run("x", thread_id="t")
    assert talker.summaries == 1
    dies.alive = True
    result = await agent.resume("t")
    assert (result.message, talker.summaries, talker.turns) == ("done", 1, [])
    assert result.usage.total_tokens == 15 * len(model.requests) == 60


async def test_a_summariser_that_fails_changes_nothing_but_the_report() -> None:
    def failing(request: ModelRequest) -> Any:
        if request.purpose == "summarize":
            raise ModelError("busy")
        return turns.pop(0)

    turns = [call("add", a=0), call("add", a=1), call("add", a=2), "done"]
    model = ScriptedModel(failing, after="repeat")
    result = await summarizing(model).run("x")
    assert (result.stop_reason, result.message, results(result)) == ("NoToolCalls", "done", ["1", "2", "3"])
    assert "busy" in result.reports["conversation_manager"]
    assert requests_for(model)[-1].messages == result.state.messages[:-1]


async def test_a_summary_that_the_budget_does_not_allow_is_not_made() -> None:
    talker = Talker(*[call("add", a=n) for n in range(4)], "done")
    model = talker.model()
    result = await summarizing(model, termination=TokenLimit(60), max_iterations=9).run("x")
    assert result.stop_reason == "TokenLimit"
    assert result.usage.total_tokens <= 75
    assert_valid_history(result.state.messages)


async def test_the_manager_may_ask_another_model() -> None:
    writer = ScriptedModel("written elsewhere", name="toy:writer", after="repeat")
    manager = SummarizingManager(threshold=4, keep_recent=1, model=writer)
    model = ScriptedModel(call("add", a=1), call("add", a=2), "done")
    await Agent(model, tools=[add], conversation_manager=manager).run("x")
    assert len(writer.requests) == 1
    assert any("written elsewhere" in m.text for m in model.requests[-1].messages)


async def test_retried_thinks_see_the_same_view_and_cost_no_second_summary() -> None:
    class Fussy(Hook):
        asked = 0

        def on_think(self, event: ThinkEvent) -> Retry | None:
            if event.text == "done":
                self.asked += 1
                return Retry("again") if self.asked == 1 else None
            return None

    talker = Talker(call("add", a=0), call("add", a=1), "done", "done")
    model = talker.model()
    manager = SummarizingManager(threshold=4, keep_recent=1)
    await Agent(model, tools=[add], conversation_manager=manager, hooks=[Fussy()]).run("x")
    *_, first, second = requests_for(model)
    assert first.messages == second.messages
    assert talker.summaries == 1


# -- windows and compactors ---------------------------------------------------------------------------


async def test_a_window_moves_over_a_thread_of_many_turns() -> None:
    model = ScriptedModel(lambda request: f"answer to {request.messages[-1].text}", after="repeat")
    manager = SlidingWindowManager(4, slack=0)
    agent = Agent(model, system_prompt=SYSTEM, conversation_manager=manager, checkpointer=MemoryStore())
    for n in range(6):
        result = await agent.run(f"question {n}", thread_id="t")
    assert len(result.state.messages) == 13
    # The system prompt does not count, and a question stays with its answer: three messages where four fit.
    assert [m.text for m in model.requests[-1].messages] == [
        SYSTEM,
        "question 4",
        "answer to question 4",
        "question 5",
    ]


async def test_a_compactor_shortens_old_tool_outputs_before_it_asks_anybody() -> None:
    talker = Talker(*[call("read", page=n) for n in range(5)], "done")
    model = talker.model()
    manager = LLMCompactor(window=2_000, trigger=0.5, tail=0.1, tool_output_ttl=1)
    result = await Agent(model, tools=[read], conversation_manager=manager).run("read")
    assert talker.summaries == 0
    last = requests_for(model)[-1].messages
    outputs = [r.content for m in last for r in m.tool_results]
    assert len(outputs) == 5
    assert any("is left out here" in str(o) for o in outputs)
    assert all(len(text) > 200 for text in results(result))


async def test_results_stay_deduplicated_whatever_the_model_was_shown() -> None:
    bodies.clear()

    @tool(idempotent=True)
    async def book(room: str) -> str:
        """Books."""
        bodies["book"] += 1
        return f"booked {room}"

    talker = Talker(call("book", room="a"), *[call("add", a=n) for n in range(4)], call("book", room="a"), "done")
    agent = Agent(talker.model(), tools=[book, add], conversation_manager=SlidingWindowManager(3, slack=0))
    result = await agent.run("x")
    assert bodies["book"] == 1
    assert results(result)[0] == results(result)[-1] == "booked a"


# -- managers of one's own ----------------------------------------------------------------------------


async def test_a_manager_of_ones_own_keeps_what_it_wants_in_the_metadata() -> None:
    class Numbered:
        """Shows the last message only, and counts its views."""

        async def view(self, state: AgentState, run: RunContext) -> View:
            n = state.metadata.get("views", 0) + 1
            return View(state.messages[-1:], {"views": n})

    model = ScriptedModel("one", "two")
    agent = Agent(model, conversation_manager=Numbered(), checkpointer=MemoryStore())
    await agent.run("x", thread_id="t")
    result = await agent.run("y", thread_id="t")
    assert [len(r.messages) for r in model.requests] == [1, 1]
    assert result.state.metadata["views"] == 2
    assert len(result.state.messages) == 4


@pytest.mark.parametrize("how", ["raises", "returns nonsense"])
async def test_a_manager_that_goes_wrong_ends_the_run_with_its_error(how: str) -> None:
    class Broken:
        async def view(self, state: AgentState, run: RunContext) -> Any:
            if how == "raises":
                raise LookupError("my mistake")
            return "nonsense"

    recorder, model = Recorder(), ScriptedModel()
    result = await Agent(model, conversation_manager=Broken(), hooks=[recorder]).run("x")
    assert result.stop_reason == "NodeError"
    assert model.requests == ()
    assert [e.next_node for e in of(recorder.events, CheckpointEvent)][-1] == "end"
