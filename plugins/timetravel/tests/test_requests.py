"""`model_requests`: what the code of today asks is what the model was asked, as long as the code is the same."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

import locus_plugin_timetravel as timetravel
from locus import Agent, Hook, ModelErrorEvent, ModelRequest, ModelSettings, Retry, ThinkEvent, tool
from locus.core.errors import JournalError, ModelError, NothingToResume
from locus.core.journal import BLANK, Fold, ModelFailed, Outcome, Transition
from locus.core.step_id import THINK
from locus.core.termination import MaxIterations
from locus.journal import MemoryStore
from locus.models.call import ModelCallResult
from locus.plugin import hookimpl
from locus_plugin_conversation import SlidingWindowManager, SummarizingManager
from locus_plugin_timetravel import RebuiltRequest, model_requests
from locus_testkit import ScriptedModel, call

from .kit import Strict, add, bodies, dead, made

pytestmark = pytest.mark.anyio

ADDS = [call("add", a=n) for n in range(7)]


@pytest.fixture
def store() -> MemoryStore:
    bodies.clear()
    return MemoryStore()


async def rebuild(agent: Agent[Any, Any], store: MemoryStore, purpose: str = "", **how: Any) -> list[RebuiltRequest]:
    """The requests of all model calls on record, in order, each found by the number of its own entry."""
    found: list[RebuiltRequest] = []
    for entry in await store.read("t"):
        body = entry.body
        if isinstance(body, ModelFailed) or (isinstance(body, Outcome) and isinstance(body.value, ModelCallResult)):
            if body.step_id.purpose != purpose:
                continue
            made = await model_requests(agent, "t", entry.n, **how)
            found += [each for each in made if each.step_id == body.step_id]
    return found


def asked(model: Any) -> list[ModelRequest]:
    """What a model got, without the moment at which its caller gives up."""
    return [evolve(request, deadline=None, model=None) for request in model.requests]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"system_prompt": "You add.", "model_settings": ModelSettings(temperature=0.5, extras={"top_k": 3})},
        {"conversation_manager": SlidingWindowManager(5)},
        {"conversation_manager": SlidingWindowManager(3, slack=0), "system_prompt": "You add."},
        {"conversation_manager": SummarizingManager(6, keep_recent=2, model=ScriptedModel("So far.", after="repeat"))},
        {"hooks": [Strict()]},
        {"tools": []},
    ],
    ids=["plain", "prompt and settings", "window", "window with a prompt", "summary", "reviewed", "no tools"],
)
async def test_every_request_is_what_the_model_was_asked(store: MemoryStore, options: dict[str, Any]) -> None:
    script = ["no", "yes, please"] if options.get("tools") == [] else [*ADDS, "no", "yes, please"]
    agent = made(store, *script, **options)
    await agent.run("x", thread_id="t")
    if "hooks" not in options:
        await agent.run("And once more.", thread_id="t")
    found = await rebuild(dead(store, **options), store)
    assert [each.request for each in found] == asked(agent.runtime.model)
    assert [each.changed for each in found] == [()] * len(found)
    assert len(found) >= 2


async def test_a_known_state_is_not_read_for(store: MemoryStore) -> None:
    agent = made(store, *ADDS, "done", conversation_manager=SlidingWindowManager(5))
    await agent.run("x", thread_id="t")
    fold, before, states = Fold(BLANK), 0, {}
    for entry in await store.read("t"):
        states[entry.n] = before
        if isinstance(entry.body, Transition):
            fold.add(entry.body.delta)
            before = entry.n
    entries = await store.read("t")
    last = entries[-2]
    fold = Fold(BLANK)
    for entry in entries[: states[last.n]]:
        if isinstance(entry.body, Transition):
            fold.add(entry.body.delta)

    class Short(MemoryStore):
        """Has only the end of the thread; a fold from its beginning would be of nothing."""

        async def read_page(self, thread_id: str, after: int, count: int) -> Any:
            assert after + 256 > states[last.n] - 1
            return (await store.read(thread_id, after))[:count]

        async def head(self, thread_id: str) -> int:
            return len(entries)

    given = dead(Short(), conversation_manager=SlidingWindowManager(5))
    assert await model_requests(given, "t", last.n, before=fold.state()) == await model_requests(
        dead(store, conversation_manager=SlidingWindowManager(5)), "t", last.n
    )


async def test_every_attempt_has_its_request(store: MemoryStore) -> None:
    class Again(Hook):
        def on_event(self, event: Any) -> Retry | None:
            is_bad = isinstance(event, ModelErrorEvent) or (isinstance(event, ThinkEvent) and event.text == "bad")
            return Retry("once more") if is_bad else None

    agent = made(store, ModelError("busy", retryable=True), "bad", "good", hooks=[Again()])
    await agent.run("x", thread_id="t")
    found = await rebuild(dead(store, hooks=[Again()]), store)
    assert [each.step_id.attempt for each in found] == [0, 1, 2]
    assert [each.request for each in found] == asked(agent.runtime.model)


async def test_a_run_with_a_limit_schema_and_settings_of_its_own(store: MemoryStore) -> None:
    agent = made(store, *ADDS[:4], '{"sum": 6}', max_iterations=9)
    how: dict[str, Any] = {"model_settings": ModelSettings(seed=7), "output_schema": dict[str, int]}
    await agent.run("x", thread_id="t", termination=MaxIterations(8), **how)
    found = await rebuild(dead(store, max_iterations=2), store, **how)
    assert [each.request for each in found] == asked(agent.runtime.model)
    # Without them the requests are others, and it is said in what.
    found = await rebuild(dead(store, max_iterations=2), store)
    assert len(found) == 5
    assert {each.changed for each in found} == {("the model settings", "the output schema")}


async def test_the_calls_of_a_plugin(store: MemoryStore) -> None:
    model = ScriptedModel("So far.", after="repeat")
    manager = SummarizingManager(6, keep_recent=2, model=model)
    await made(store, *ADDS, "done", conversation_manager=manager).run("x", thread_id="t")
    purposes = {e.body.step_id.purpose for e in await store.read("t") if isinstance(e.body, Outcome)} - {""}
    (purpose,) = purposes
    found = await rebuild(dead(store, conversation_manager=manager), store, purpose)
    assert [each.request for each in found] == asked(model)
    assert len(found) > 1


@tool
async def mail(to: str) -> str:
    """Send a mail."""
    return to


async def test_changed_code_is_noticed(store: MemoryStore) -> None:
    await made(store, *ADDS[:3], "1", system_prompt="You add.").run("x", thread_id="t")
    now = dead(store, system_prompt="You add.", tools=[add, mail])
    assert {each.changed for each in await rebuild(now, store)} == {("the tools",)}
    now = dead(store, system_prompt="You add.", conversation_manager=SlidingWindowManager(1, slack=0))
    assert "the messages" in (await rebuild(now, store))[-1].changed
    other = Agent[Any, Any](
        ScriptedModel(name="scripted:other"), tools=[add], checkpointer=store, name="a", system_prompt="You subtract."
    )
    # The prompt on record is what the conversation begins with, and is sent.
    first, *_ = await rebuild(other, store)
    assert first.changed == ("the model", "the system prompt", "the tools")
    assert first.request.messages[0].text == "You add."


async def test_wrappers_that_saw_a_request_are_named(store: MemoryStore) -> None:
    class Wraps(Hook):
        name = "wraps"

        @hookimpl
        async def locus_wrap_model_call(self, call_next: Any, request: ModelRequest) -> Any:
            return await call_next(evolve(request, messages=request.messages[-1:]))

    await made(store, "1", system_prompt="You add.", hooks=[Wraps()]).run("x", thread_id="t")
    (found,) = await rebuild(dead(store, system_prompt="You add.", hooks=[Wraps()]), store)
    assert [message.text for message in found.request.messages] == ["You add.", "x"]
    assert found.wrapped_by == ("wraps",)


async def test_what_asked_no_model_has_no_requests(store: MemoryStore) -> None:
    await made(store, ADDS[0], "1").run("x", thread_id="t")
    agent = dead(store)
    asking = {e.n for e in await store.read("t") if getattr(getattr(e.body, "step_id", None), "node", "") == THINK}
    for entry in await store.read("t"):
        found = await model_requests(agent, "t", entry.n)
        assert bool(found) == (entry.n in asking or getattr(entry.body, "node", "") == THINK), entry


async def test_an_entry_that_is_not_there_is_an_error(store: MemoryStore) -> None:
    await made(store, "1").run("x", thread_id="t")
    with pytest.raises(JournalError, match="has no entry 99"):
        await model_requests(dead(store), "t", 99)
    with pytest.raises(NothingToResume):
        await model_requests(dead(store), "nobody", 1)
    assert timetravel.model_requests is model_requests
