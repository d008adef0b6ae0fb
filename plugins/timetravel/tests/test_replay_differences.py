"""`agent.replay` with other code than the one that ran: the first difference is told, with both sides of it."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

import locus_plugin_timetravel as timetravel
from locus import (
    Agent,
    Hook,
    Message,
    ModelSettings,
    tool,
)
from locus.core.errors import ConfigError, JournalError, NothingToResume, ReplayDiffers
from locus.core.journal import StateDelta, Transition
from locus.core.termination import MaxIterations, TokenLimit
from locus.journal import MemoryStore
from locus.plugin import hookimpl
from locus_plugin_conversation import SlidingWindowManager
from locus_testkit import ScriptedModel, call

from .kit import Answer, Strict, add, bodies, confirm, dead, made, same

pytestmark = pytest.mark.anyio


@pytest.fixture
def store() -> MemoryStore:
    bodies.clear()
    return MemoryStore()


# -- other code is found ---------------------------------------------------------------------------------


@pytest.fixture
async def told(store: MemoryStore) -> MemoryStore:
    """A thread of one agent with everything that can be changed."""
    agent = made(
        store,
        call("add", a=1),
        [call("add", a=2), call("add", a=2)],
        "no",
        "please",
        system_prompt="Add.",
        hooks=[Strict()],
    )
    await agent.run("x", thread_id="t")
    await same(dead(store, system_prompt="Add.", hooks=[Strict()]))
    return store


@tool(name="add")
async def add_documented_otherwise(a: int, b: int = 1) -> int:
    """Adds two numbers."""
    return a + b


@tool(name="add")
async def add_with_another_default(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


class Rude(Hook):
    @hookimpl
    def locus_review_answer(self, answer: Message) -> None:
        return None


@pytest.mark.parametrize(
    ("changes", "n", "step"),
    [
        ({"system_prompt": "Subtract."}, 1, "the system prompt"),
        ({"system_prompt": None}, 2, "0/think/0"),
        ({"tools": [add_documented_otherwise, confirm]}, 2, "0/think/0"),
        ({"tools": [add]}, 2, "0/think/0"),
        ({"tools": [confirm, add]}, 2, "0/think/0"),
        ({"model_settings": ModelSettings(max_tokens=10)}, 2, "0/think/0"),
        ({"output_schema": Answer}, 2, "0/think/0"),
        ({"confidence_threshold": 0.1}, 1, "state.confidence_threshold"),
        ({"token_budget": 10_000}, 1, "state.token_budget"),
        ({"termination": MaxIterations(1)}, 3, "the next node"),
        ({"termination": TokenLimit(16)}, 4, "the next node"),
        ({"stop_on_text": False}, 7, "the next node"),
        ({"max_revisions": 0}, 6, "the next node"),
        ({"hooks": [Rude()]}, 6, "2/review/0:review%2FRude%2F0"),
        ({"hooks": []}, 6, "2/review/0:review%2FStrict%2F0"),
        ({"hooks": [Strict(), Rude()]}, 6, "2/review/0:review%2FRude%2F1"),
        ({"conversation_manager": SlidingWindowManager(3)}, 6, "2/think/0"),
    ],
)
async def test_a_change_is_found_where_it_shows(told: MemoryStore, changes: Any, n: int, step: str) -> None:
    agent = dead(told, **{"system_prompt": "Add.", "hooks": [Strict()], **changes})
    replay = await timetravel.replay(agent, "t")
    assert not replay
    assert not replay.ok
    found = replay.difference
    assert found is not None
    assert (found.n, found.step) == (n, step)
    assert replay.checked == n - 1
    assert found.recorded != found.actual
    assert str(found) in str(replay)


async def test_another_binding_of_arguments_is_found(store: MemoryStore) -> None:
    """By the fingerprint of the tools, where the journal has one."""
    await made(store, call("add", a=1), "2").run("x", thread_id="t")
    agent = dead(store, tools=[add_with_another_default, confirm])
    found = (await timetravel.replay(agent, "t")).difference
    assert found is not None
    assert (found.step, found.recorded[:10]) == ("0/think/0", "the tools ")

    bare = MemoryStore()
    claim = await bare.claim("t", "w")
    await bare.append(claim, [_without_fingerprint(e.body) for e in await store.read("t")])
    await bare.release(claim)
    await same(dead(bare))
    # A step is known by what the model gave, and it gave the same: a new default is no other step.
    await same(dead(bare, tools=[add_with_another_default, confirm]))


def _without_fingerprint(body: Any) -> Any:
    digest = getattr(body, "digest", "")
    return evolve(body, digest=digest.partition("#")[0]) if "#" in digest else body


async def test_a_call_that_is_not_on_record_is_not_run(store: MemoryStore) -> None:
    def book(n: int) -> str:
        """Book."""
        bodies["book"] += 1
        return f"booked {n}"

    once, each = tool(book, idempotent=True), tool(book)
    script = [[call("book", n=1), call("book", n=1)], "done"]
    await made(store, *script, tools=[once]).run("x", thread_id="t")
    assert bodies["book"] == 1
    found = (await timetravel.replay(dead(store, tools=[each]), "t")).difference
    assert found is not None
    assert (found.n, found.step, found.recorded, found.actual) == (3, "0/execute/1", None, "book(n=1)")
    assert bodies["book"] == 1


async def test_another_model_is_found(store: MemoryStore) -> None:
    await made(store, "hi").run("x", thread_id="t")
    other = Agent(ScriptedModel(name="other:model"), tools=[add, confirm], checkpointer=store)
    found = (await timetravel.replay(other, "t")).difference
    assert found is not None
    assert (found.step, found.recorded, found.actual) == ("0/think/0", "scripted:model:1", "other:model:1")


async def test_a_journal_that_was_changed_is_found(store: MemoryStore) -> None:
    await made(store, call("add", a=1), "2").run("x", thread_id="t")
    forged = MemoryStore()
    claim = await forged.claim("t", "w")
    entries = [e.body for e in await store.read("t")]
    place = next(i for i, b in enumerate(entries) if isinstance(b, Transition) and b.node == "execute")
    transition: Any = entries[place]
    grown = dict(transition.delta.grown)
    keep, (message,) = grown["messages"]
    lie = evolve(message, content=(evolve(message.tool_results[0], content="3"),))
    grown["messages"] = (keep, (lie,))
    entries[place] = evolve(transition, delta=StateDelta(transition.delta.changed, grown))
    await forged.append(claim, entries)
    await forged.release(claim)
    found = (await timetravel.replay(dead(forged), "t")).difference
    assert found is not None
    assert (found.n, found.step, found.recorded) == (3, "state.messages[2]", lie)


async def test_a_difference_in_what_a_run_left_behind_is_found(store: MemoryStore) -> None:
    """The node under way is replayed as far as the record goes, also where a new turn has taken its place."""
    await made(store, [call("add", a=1), call("confirm", what="go")], "hello").run("x", thread_id="t")
    agent = dead(store, tools=[add, confirm])
    await same(agent)
    await made(store, "hello").run("y", thread_id="t")
    await same(agent)


# -- the result -------------------------------------------------------------------------------------------


async def test_a_difference_can_be_raised(store: MemoryStore) -> None:
    await made(store, "hi").run("x", thread_id="t")
    replay = await timetravel.replay(dead(store), "t")
    assert replay.raise_for_difference() is replay
    assert str(replay) == "thread t: 3 transitions came out as recorded"
    other = await timetravel.replay(dead(store, system_prompt="Be."), "t")
    with pytest.raises(ReplayDiffers, match=r"thread 't': transition 1 \(start\), the system prompt") as caught:
        other.raise_for_difference()
    assert caught.value.difference is other.difference
    assert isinstance(caught.value, JournalError)


async def test_there_must_be_a_journal(store: MemoryStore) -> None:
    with pytest.raises(NothingToResume):
        await timetravel.replay(dead(store), "nowhere")
    with pytest.raises(JournalError, match="no history"):
        await timetravel.replay(dead(MemoryStore(history=False)), "t")
    with pytest.raises(ConfigError, match="checkpointer="):
        await timetravel.replay(dead(None), "t")


async def test_a_limit_that_cannot_be_read_is_a_difference(store: MemoryStore) -> None:
    await made(store, "hi").run("x", thread_id="t", termination=MaxIterations(3))
    other = MemoryStore()
    claim = await other.claim("t", "w")
    entries = [e.body for e in await store.read("t")]
    note: Any = entries[0]
    assert str(note.step_id) == "0/segment/0:limits"
    entries[0] = evolve(note, value=[{"type": "OfAPluginThatIsNotHere"}])
    await other.append(claim, entries)
    await other.release(claim)
    found = (await timetravel.replay(dead(other), "t")).difference
    assert found is not None
    assert (found.n, found.step) == (1, "0/segment/0:limits")
    assert "OfAPluginThatIsNotHere" in found.actual
