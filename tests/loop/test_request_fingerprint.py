"""What a journal keeps of a run's setup: a replay reads it, a resume passes it over, and it costs next to nothing."""

from __future__ import annotations

from typing import Any

import pytest
from plugins.timetravel.tests.kit import Answer, Strict, made
from tests.loop.hook_kit import Crash
from tests.loop.kit import add, confirm

import locus_plugin_timetravel as timetravel
from locus import Agent, AgentState, Hook, Message, ModelSettings, Role, ToolContext, tool
from locus.core.errors import StepMismatch
from locus.core.fingerprint import bare, fingerprint, parts_of, short_hash
from locus.core.journal import Outcome
from locus.core.termination import CustomCondition, MaxIterations, TokenLimit
from locus.journal import MemoryStore
from locus.models.call import request_fingerprint
from locus.models.protocol import OutputSpec
from locus.plugin import hookimpl
from locus.tools.registry import ToolRegistry
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


# -- fingerprints -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("digest", ["a:model:3", "", "a#b:3", "a#t:3", "0123abcd", "a:3#tnothex00", "a:3#t1234567"])
async def test_what_has_no_fingerprint_is_bare(digest: str) -> None:
    assert bare(digest) == digest
    assert parts_of(digest) is None
    marked = digest + fingerprint({"p": "00000000", "t": "deadbeef"})
    assert bare(marked) == digest
    assert parts_of(marked) == {"p": "00000000", "t": "deadbeef"}
    assert parts_of(digest + fingerprint({})) == {}


async def test_any_text_has_a_short_hash() -> None:
    for text in ("", "x", "\ud800", "\u2028" * 1000):
        assert len(short_hash(text)) == 8
        assert parts_of(fingerprint({"s": short_hash(text)})) == {"s": short_hash(text)}


async def test_each_part_counts_for_itself() -> None:
    prompt = Message(Role.SYSTEM, "Be brief.")
    state = AgentState(messages=[prompt, Message(Role.USER, "x")])
    some, none, plain = ToolRegistry.of([add]), ToolRegistry.of([]), ModelSettings()
    spec = OutputSpec(name="answer", schema={"type": "object"})

    def letters(*what: Any) -> str:
        return "".join(parts_of(request_fingerprint(*what)) or {})

    assert letters(state, None, none, plain, None) == ""
    assert letters(state, prompt, none, plain, None) == "p"
    assert letters(state, Message(Role.SYSTEM, "Be kind."), none, plain, None) == ""
    assert letters(state, None, some, plain, None) == "t"
    assert letters(state, None, none, ModelSettings(seed=1), None) == "s"
    assert letters(state, None, none, ModelSettings(extras={"client": object()}), None) == "s"
    assert letters(state, prompt, some, ModelSettings(seed=1), spec) == "ptso"
    odd = request_fingerprint(state, None, none, ModelSettings(extras={"client": object()}), None)
    assert odd == request_fingerprint(state, None, none, ModelSettings(extras={"client": object()}), None)


async def test_what_a_model_gets_of_tools_is_their_digest() -> None:
    @tool(name="add")
    def other(a: int, b: int = 1) -> int:
        """Add two numbers."""
        return a - b  # what it does is nobody's business

    @tool(name="add")
    def documented(a: int, b: int = 1) -> int:
        """Add two numbers, carefully."""
        return a + b

    digest = ToolRegistry.of([add]).digest
    assert digest == ToolRegistry.of([add]).digest == ToolRegistry.of([other]).digest
    assert digest != ToolRegistry.of([documented]).digest
    assert ToolRegistry.of([add, confirm]).digest != ToolRegistry.of([confirm, add]).digest


# -- where it stands ----------------------------------------------------------------------------------------


async def digests(store: MemoryStore, thread: str = "t") -> list[str]:
    bodies = [e.body for e in await store.read(thread)]
    return [b.digest for b in bodies if isinstance(b, Outcome) and b.step_id.node == "think"]


async def test_every_answer_has_its_fingerprint() -> None:
    store = MemoryStore()
    agent = made(store, call("add", a=1), '{"n": 2}', system_prompt="Add.", output_schema=Answer)
    await agent.run("x", thread_id="t", model_settings=ModelSettings(temperature=0.0))
    one, two = await digests(store)
    assert (bare(one), bare(two)) == ("scripted:model:2", "scripted:model:4")
    assert parts_of(one) == parts_of(two)
    assert list(parts_of(one) or {}) == ["p", "t", "s", "o"]


async def test_without_a_history_nothing_is_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> str:
        raise AssertionError("somebody wanted a fingerprint")

    monkeypatch.setattr("locus.loop.segment.request_fingerprint", never)
    for store in (None, MemoryStore(history=False)):
        result = await made(store, "hi").run("x", termination=MaxIterations(3))
        assert result.text == "hi"


async def test_an_answer_is_accepted_though_the_next_question_will_be_another() -> None:
    """An upgrade that documents a tool otherwise does not lose a run that crashed with an answer on record."""
    crash = [True]

    class Dies(Strict):
        @hookimpl
        def locus_review_answer(self, answer: Message) -> None:
            return None

    class DiesLater(Hook):
        name = "later"

        @hookimpl
        def locus_review_answer(self, answer: Message) -> None:
            if crash.pop():
                raise Crash

    @tool(name="add")
    def documented(a: int, b: int = 1) -> int:
        """Add two numbers, carefully."""
        return a + b

    store = MemoryStore()
    with pytest.raises(Crash):
        await made(store, "the answer", hooks=[Dies(), DiesLater()]).run("x", thread_id="t")
    assert len(await digests(store)) == 1
    upgraded = made(store, tools=[documented, confirm], hooks=[Dies()], model_settings=ModelSettings(seed=1))
    assert (await upgraded.resume("t")).text == "the answer"


async def test_another_conversation_is_still_another_question() -> None:
    store = MemoryStore()

    class Dies(Hook):
        @hookimpl
        def locus_review_answer(self, answer: Message) -> None:
            raise Crash

    class Passes(Hook):
        @hookimpl
        def locus_review_answer(self, answer: Message) -> None:
            return None

    with pytest.raises(Crash):
        await made(store, "the answer", hooks=[Passes(), Dies()]).run("x", thread_id="t")
    other = Agent(ScriptedModel(name="other:model"), tools=[add, confirm], checkpointer=store, hooks=[Passes()])
    with pytest.raises(StepMismatch):
        await other.resume("t")


# -- limits of one run ----------------------------------------------------------------------------------------


async def notes(store: MemoryStore, thread: str = "t") -> dict[str, Any]:
    bodies = [e.body for e in await store.read(thread)]
    return {str(b.step_id): b.value for b in bodies if isinstance(b, Outcome) and b.step_id.name == "limits"}


async def test_the_limits_of_one_run_are_written_with_its_beginning() -> None:
    store = MemoryStore()
    agent = made(store, call("confirm", what="go"), "gone", "hi")
    await agent.run("x", thread_id="t", termination=MaxIterations(5))
    await agent.resume("t", "yes", termination=MaxIterations(4))
    await agent.run("y", thread_id="t")
    assert {name: [c["n"] for c in value] for name, value in (await notes(store)).items()} == {
        "0/segment/0:limits": [5],
        "0/segment/1:limits": [4],
    }
    # In one write with what they belong to: no entry stands between.
    bodies = [type(e.body).__name__ for e in await store.read("t")]
    assert bodies[:2] == ["Outcome", "Transition"]
    assert bodies[bodies.index("Resumed") - 1] == "Outcome"


async def test_a_limit_without_a_form_leaves_a_trace() -> None:
    store = MemoryStore()
    await made(store, "hi").run("x", thread_id="t", termination=CustomCondition(lambda state: False, name="Never"))
    assert await notes(store) == {"0/segment/0:limits": ()}


async def test_the_limits_of_a_child_are_written_in_its_journal() -> None:
    store = MemoryStore()
    child = made(None, "42", name="child")

    @tool
    async def consult(ctx: ToolContext[Any]) -> str:
        """Ask."""
        return str((await ctx.run_child(child, "?")).text)

    await made(store, call("consult"), "done", tools=[consult], termination=TokenLimit(100), max_iterations=7).run(
        "x", thread_id="t"
    )
    (thread,) = [t.thread_id for t in await store.threads() if t.thread_id != "t"]
    found = await notes(store, thread)
    assert [(c["type"], c["n"]) for c in found["0/segment/0:limits"]] == [("TokenLimit", 85)]
    assert await notes(store) == {}


async def test_a_note_is_not_a_step_of_the_run() -> None:
    """What is noted does not stand in the way of what the node under way has on record."""
    store = MemoryStore()
    agent = made(store, [call("add", a=1), call("confirm", what="go")], "gone")
    await agent.run("x", thread_id="t", termination=MaxIterations(5))
    for n in range(3):
        result = await agent.resume("t", termination=MaxIterations(5 + n))
        assert len(result.interrupts) == 1
    result = await agent.resume("t", "yes", termination=MaxIterations(9))
    assert result.text == "gone"
    assert list(await notes(store)) == [f"0/segment/{n}:limits" for n in range(5)]
    assert await timetravel.replay(agent, "t")
