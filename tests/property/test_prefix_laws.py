"""What prompt caches depend on: the system prompt, the tools and every earlier turn go out as they went before.

Each request is encoded as a provider would encode it, message by message. The encoded messages of a request are a
prefix of those of the next one, over iterations, over the turns of a thread, over a question to a person and over a
restart; what a model said comes back to it verbatim.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import anyio
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from tests.loop.kit import confirm
from tests.property.loop_world import World, awkward_scripts, calls, polite_scripts

from locus import Agent, AgentState, Hook, Message, ModelRequest, Retry, Revise, Role, ThinkEvent
from locus.core.codec import encode
from locus.core.messages import RawBlock, TextBlock, ThinkingBlock, ToolCall
from locus.journal import MemoryStore
from locus.journal.store import JournalStore
from locus.plugin import RunContext, hookimpl
from locus_kit.snapshots import SnapshotAdapter
from locus_plugin_conversation import SlidingWindowManager
from locus_testkit import ScriptedModel, Turn, call
from locus_testkit import strategies as values

both_backends = pytest.mark.parametrize("backend", ["asyncio", "trio"])
systems = st.none() | values.texts().filter(str.strip)


def sent(request: ModelRequest) -> list[str]:
    """The messages as they go over the wire, one text each."""
    return [json.dumps(encode(message), sort_keys=False) for message in request.messages]


def head(request: ModelRequest) -> str:
    """What stands before the messages: the tools, and how the model is to answer."""
    tools = [[t.name, t.description, json.dumps(t.parameters, sort_keys=False)] for t in request.tools]
    return json.dumps([tools, encode(request.settings), encode(request.output)])


def assert_prefixes(requests: Sequence[ModelRequest]) -> None:
    for earlier, later in pairwise(requests):
        assert head(later) == head(earlier)
        before, after = sent(earlier), sent(later)
        assert after[: len(before)] == before


def agent(model: ScriptedModel, system: str | None, *hooks: Hook, **options: Any) -> Agent[Any, Any]:
    return Agent[Any, Any](
        model, tools=[*World().tools(), confirm], system_prompt=system, hooks=hooks, max_iterations=6, **options
    )


@both_backends
@given(script=awkward_scripts(), system=systems, mode=st.sampled_from(["concurrent", "sequential"]))
def test_each_request_begins_with_the_one_before(
    backend: str, script: list[Turn], system: str | None, mode: Any
) -> None:
    model = ScriptedModel(*script, after="repeat")

    async def main() -> None:
        await agent(model, system, tool_execution=mode).run("x")

    anyio.run(main, backend=backend)
    assert_prefixes(model.requests)
    for request in model.requests:
        first = request.messages[0]
        assert (first.role is Role.SYSTEM and first.text == system) if system else first.role is Role.USER
        assert sum(m.role is Role.SYSTEM for m in request.messages) == (1 if system else 0)


@both_backends
@given(scripts=st.lists(polite_scripts(max_turns=2), min_size=2, max_size=3), system=systems, saved=st.booleans())
def test_each_turn_of_a_thread_begins_with_the_turns_before(
    backend: str, scripts: list[list[Turn]], system: str | None, saved: bool
) -> None:
    kept: dict[str, str] = {}
    memory = MemoryStore()

    def store() -> JournalStore:
        if not saved:
            return memory
        return SnapshotAdapter(
            lambda thread_id, data: kept.__setitem__(thread_id, json.dumps(data)),
            lambda thread_id: json.loads(kept.get(thread_id, "null")),
        )

    asked: list[ModelRequest] = []

    async def main() -> None:
        for script in scripts:
            # A new agent and a new store each time, as after a restart.
            model = ScriptedModel(*script, after="repeat")
            await agent(model, system, checkpointer=store()).run("go on", thread_id="t")
            asked.extend(model.requests)

    anyio.run(main, backend=backend)
    assert_prefixes(asked)


@both_backends
@given(before=st.lists(calls(), max_size=2), after=polite_scripts(max_turns=1), system=systems)
def test_a_question_to_a_person_leaves_no_mark_on_what_was_sent(
    backend: str, before: list[ToolCall], after: list[Turn], system: str | None
) -> None:
    model = ScriptedModel([*before, call("confirm", what="ship")], *after, after="repeat")

    async def main() -> None:
        one = agent(model, system)
        await one.resume(await one.run("x"), "yes")

    anyio.run(main, backend=backend)
    assert len(model.requests) > 1
    assert_prefixes(model.requests)


blocks = st.one_of(
    st.builds(
        ThinkingBlock, values.texts(), st.none() | values.texts(), extras=values.json_values().map(lambda v: {"k": v})
    ),
    st.builds(RawBlock, st.just("acme"), values.json_values().map(lambda v: {"type": "x", "v": v})),
    st.builds(TextBlock, values.texts(), extras=values.json_values().map(lambda v: {"k": v})),
)
turns = st.builds(
    lambda around, calls_, extras, name: Message(
        Role.ASSISTANT,
        (*around, *(evolve(c, id=f"c{i}") for i, c in enumerate(calls_))),
        name=name,
        extras=extras,
    ),
    st.lists(blocks, max_size=3),
    st.lists(calls(), min_size=1, max_size=3),
    values.json_values().map(lambda v: {"response_id": v}),
    st.none() | values.texts(),
)


@both_backends
@given(said=st.lists(turns, min_size=1, max_size=3))
def test_a_turn_goes_back_to_its_model_verbatim(backend: str, said: list[Message]) -> None:
    model = ScriptedModel(*said, "done")
    states: list[AgentState] = []

    async def main() -> None:
        states.append((await agent(model, None).run("x")).state)

    anyio.run(main, backend=backend)
    for request in model.requests:
        came_back = [m for m in request.messages if m.role is Role.ASSISTANT]
        assert came_back == said[: len(came_back)]
        # The very object: nothing has taken it apart and put it together again.
        assert all(mine is theirs for mine, theirs in zip(came_back, said, strict=False))
    again = AgentState.from_checkpoint(json.loads(json.dumps(states[0].to_checkpoint())))
    assert [encode(m) for m in again.messages] == [encode(m) for m in states[0].messages]


class Again(Hook):
    """Has the first answers thrown away, or sent back."""

    def __init__(self, thrown: int) -> None:
        self.thrown = thrown

    def on_think(self, event: ThinkEvent) -> Retry | None:
        self.thrown -= 1
        return Retry() if self.thrown >= 0 else None

    @hookimpl
    async def locus_review_answer(self, answer: Message, state: AgentState, run: RunContext) -> Revise | None:
        return Revise("once more") if not state.revisions else None


@both_backends
@given(script=polite_scripts(), thrown=st.integers(0, 2))
def test_another_try_and_a_revision_change_nothing_that_was_sent(backend: str, script: list[Turn], thrown: int) -> None:
    model = ScriptedModel(*script, after="repeat")

    async def main() -> None:
        await agent(model, "Be brief.", Again(thrown)).run("x")

    anyio.run(main, backend=backend)
    assert_prefixes(model.requests)


@given(script=polite_scripts(max_turns=4))
def test_a_conversation_manager_that_has_nothing_to_do_changes_nothing(script: list[Turn]) -> None:
    plain, managed = ScriptedModel(*script, after="repeat"), ScriptedModel(*script, after="repeat")

    async def main() -> None:
        await agent(plain, "Be brief.", tool_execution="sequential").run("x")
        manager = SlidingWindowManager(max_messages=1000)
        await agent(managed, "Be brief.", tool_execution="sequential", conversation_manager=manager).run("x")

    anyio.run(main)
    assert [sent(r) for r in managed.requests] == [sent(r) for r in plain.requests]


def test_the_tools_of_two_agents_that_are_built_alike_are_reported_alike() -> None:
    one, two = ScriptedModel("a"), ScriptedModel("b")

    async def main() -> None:
        await agent(one, "Be brief.").run("x")
        await agent(two, "Be brief.").run("x")

    anyio.run(main)
    assert head(one.requests[0]) == head(two.requests[0])
