"""`agent.fork`: another line of the same beginning, with a run, and keys, of its own."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

import locus_plugin_timetravel as timetravel
from locus import Agent, InterruptEvent, Message, Role, ToolContext, tool
from locus.core.errors import InputError, JournalError, NothingToResume
from locus.core.journal import FORK, Transition
from locus.core.messages import TextBlock
from locus.core.termination import MaxIterations
from locus.journal import MemoryStore
from locus_testkit import ScriptedModel, assert_valid_history, call

from .kit import add, confirm, results

pytestmark = pytest.mark.anyio


class Service:
    """What stands behind a tool: it does a thing once for each key, and answers a known key as it did before."""

    def __init__(self) -> None:
        self.done: dict[str, str] = {}
        self.keys: list[str] = []

    def tool(self, **options: Any) -> Any:
        @tool(name="send", **options)
        async def send(text: str, ctx: ToolContext[Any]) -> str:
            """Send a text."""
            self.keys.append(ctx.idempotency_key)
            return self.done.setdefault(ctx.idempotency_key, f"sent {text}")

        return send


def agent(store: Any, *script: Any, **options: Any) -> Agent[Any, Any]:
    return Agent(ScriptedModel(*script), **{"tools": [add, confirm], "checkpointer": store, **options})


# -- ended runs ---------------------------------------------------------------------------------------


async def test_a_fork_of_an_ended_run_at_its_end_equals_it() -> None:
    store = MemoryStore()
    a = agent(store, call("add", a=1), "2")
    result = await a.run("1 + 1?", thread_id="t")
    fork = await timetravel.fork(a, "t")
    assert await store.read(fork) == await store.read("t")
    assert (await timetravel.history(a, fork)).state == result.state
    assert list(await timetravel.history(a, fork)) == list(await timetravel.history(a, "t"))
    with pytest.raises(NothingToResume, match="ended with NoToolCalls"):
        await a.resume(fork)


async def test_a_conversation_goes_on_twice() -> None:
    store = MemoryStore()
    a = agent(store, "one", "two", "another two")
    first = await a.run("1", thread_id="t")
    fork = await timetravel.fork(a, "t", into="f")
    assert fork == "f"
    here, there = await a.run("2", thread_id="t"), await a.run("2 or so", thread_id="f")
    assert [m.text for m in here.state.messages] == ["1", "one", "2", "two"]
    assert [m.text for m in there.state.messages] == ["1", "one", "2 or so", "another two"]
    assert len({first.run_id, here.run_id, there.run_id}) == 3


async def test_an_earlier_turn_is_a_place_to_fork() -> None:
    store = MemoryStore()
    a = agent(store, "one", "two", "another two")
    await a.run("1", thread_id="t")
    await a.run("2", thread_id="t")
    past = await timetravel.history(a, "t")
    end_of_first = next(m.n for m in past if m.next_node == "end")
    fork = await timetravel.fork(a, "t", at=end_of_first)
    assert list(await timetravel.history(a, fork)) == list(past[:end_of_first])
    result = await a.run("2 again", thread_id=fork)
    assert [m.text for m in result.state.messages] == ["1", "one", "2 again", "another two"]


# -- open runs ----------------------------------------------------------------------------------------


async def test_a_fork_of_an_open_run_is_another_run() -> None:
    store = MemoryStore()
    a = agent(store, call("add", a=1), "2", "3")
    result = await a.run("1 + 1?", thread_id="t")
    fork = await timetravel.fork(a, "t", at=3)
    last = (await store.read(fork))[-1].body
    assert isinstance(last, Transition)
    assert (last.node, last.next_node) == (FORK, "think")
    assert last.why == "forked from 't' at 3"
    other = await a.resume(fork)
    assert other.text == "3"
    assert other.run_id != result.run_id
    assert other.run_id == last.run_id == other.state.run_id
    # What was before the fork counts: the budgets are those of one run.
    assert other.usage == result.usage
    assert other.iterations == result.iterations == 2
    assert {m.run_id for m in (await timetravel.history(a, "t"))} == {result.run_id}


async def test_a_new_effect_of_a_fork_has_a_key_of_its_own() -> None:
    store, service = MemoryStore(), Service()
    model = ScriptedModel(call("send", text="yes"), "sent", call("send", text="no"), "sent")
    a = Agent(model, tools=[service.tool(effect="keyed")], checkpointer=store)
    await a.run("Answer them.", thread_id="t")
    # The model is asked again and decides otherwise: with the key of the first, the service would not send it.
    fork = await timetravel.fork(a, "t", at=1)
    result = await a.resume(fork)
    assert results(result) == ["sent no"]
    assert sorted(service.done.values()) == ["sent no", "sent yes"]


async def test_what_was_done_before_the_fork_is_not_done_again() -> None:
    store, service = MemoryStore(), Service()
    send = call("send", text="x")
    a = Agent(ScriptedModel(send, "first", send, "second"), tools=[service.tool(idempotent=True)], checkpointer=store)
    await a.run("x", thread_id="t")
    fork = await timetravel.fork(a, "t", at=3)
    result = await a.resume(fork)
    assert [e.cache_hit for e in result.state.tool_executions] == [False, True]
    assert len(service.keys) == 1


async def test_the_node_under_way_runs_anew_in_a_fork() -> None:
    store, service = MemoryStore(), Service()
    model = ScriptedModel([call("send", text="x"), call("confirm", what="go")], "done", "done there")
    a = Agent(model, tools=[service.tool(), confirm], checkpointer=store)
    waiting = await a.run("x", thread_id="t")
    assert len(waiting.interrupts) == 1
    fork = await timetravel.fork(a, "t")
    there = await a.resume(fork)
    # The question is asked there too, and what stood beside it is another effect.
    assert [q.question for q in there.interrupts] == ["Shall I go?"]
    assert len(set(service.keys)) == 2
    there = await a.resume(fork, "no")
    here = await a.resume("t", "yes")
    assert (results(here)[1], results(there)[1]) == ("go: yes", "go: no")
    assert_valid_history(here.state.messages)
    assert_valid_history(there.state.messages)


async def test_a_fork_on_its_way_out_ends_for_the_same_reason() -> None:
    store = MemoryStore()
    a = agent(store, call("add", a=1), termination=MaxIterations(1))
    result = await a.run("x", thread_id="t")
    past = await timetravel.history(a, "t")
    turned = next(m.n for m in past if m.next_node == "terminate")
    fork = await timetravel.fork(a, "t", at=turned)
    there = await a.resume(fork)
    assert (
        (there.stop_reason, there.satisfied)
        == (result.stop_reason, result.satisfied)
        == (
            "MaxIterations",
            ("MaxIterations",),
        )
    )
    assert there.state.messages == result.state.messages


async def test_every_transition_is_a_place_to_fork_and_go_on() -> None:
    store = MemoryStore()
    script: list[Any] = [[call("add", a=1), call("add", a=2)], call("add", a=3), "done"]
    a = Agent(ScriptedModel(script=lambda _: script, ids="per_turn"), tools=[add], checkpointer=store)
    result = await a.run("x", thread_id="t")
    past = await timetravel.history(a, "t")
    for entry in past:
        fork = await timetravel.fork(a, "t", at=entry.n)
        assert (await timetravel.history(a, fork)).at(entry.n).state == entry.state
        if entry.next_node != "end":
            there = await a.resume(fork)
            assert there.text == "done"
            assert there.state.messages == result.state.messages
        assert await timetravel.replay(a, fork)


async def test_a_fork_can_be_forked() -> None:
    store = MemoryStore()
    a = agent(store, call("add", a=1), "2", "3", "4")
    await a.run("x", thread_id="t")
    one = await timetravel.fork(a, "t", at=3)
    two = await timetravel.fork(a, one)
    first, second = await a.resume(one), await a.resume(two)
    assert (first.text, second.text) == ("3", "4")
    assert len({first.run_id, second.run_id, (await timetravel.history(a, "t"))[0].run_id}) == 3
    assert [m.node for m in await timetravel.history(a, two)][:5] == ["start", "think", "execute", "fork", "fork"]


# -- edit and continue ------------------------------------------------------------------------------------


async def test_a_state_is_edited_and_goes_on_in_a_fork() -> None:
    store = MemoryStore()
    model = ScriptedModel(call("add", a=1), "2", "zwei")
    a = Agent(model, tools=[add], checkpointer=store)
    await a.run("1 + 1?", thread_id="t")
    fork = await timetravel.fork(a, "t", at=3)
    state = await timetravel.state_at(a, fork, 3)
    result = await a.run(state.with_message(Message(Role.USER, "In German, please.")), thread_id=fork)
    assert result.text == "zwei"
    assert [m.text for m in model.requests[-1].messages][-1] == "In German, please."
    assert_valid_history(result.state.messages)
    assert (await timetravel.history(a, "t")).state.last_assistant == Message(Role.ASSISTANT, "2")
    assert await timetravel.replay(a, fork)


async def test_what_was_said_can_be_edited() -> None:
    store = MemoryStore()
    model = ScriptedModel(call("add", a=1), "2", "5")
    a = Agent(model, tools=[add], checkpointer=store)
    await a.run("1 + 1?", thread_id="t")
    fork = await timetravel.fork(a, "t", at=3)
    state = await timetravel.state_at(a, fork, 3)
    result_message = state.messages[-1]
    edited = evolve(result_message, content=(evolve(result_message.tool_results[0], content="5"),))
    result = await a.run(evolve(state, messages=(*state.messages[:-1], edited)), thread_id=fork)
    assert result.text == "5"
    assert [r.content for m in model.requests[-1].messages for r in m.tool_results] == ["5"]
    assert (await timetravel.history(a, "t"))[2].messages == (result_message,)


async def test_calls_that_an_edit_leaves_behind_get_an_answer() -> None:
    store = MemoryStore()
    model = ScriptedModel(call("add", a=1), "2", "as you like")
    a = Agent(model, tools=[add], checkpointer=store)
    await a.run("1 + 1?", thread_id="t")
    state = await timetravel.state_at(a, "t", 2)
    assert state.unanswered
    fork = await timetravel.fork(a, "t", at=2)
    result = await a.run(state.with_message(Message(Role.USER, TextBlock("Never mind."))), thread_id=fork)
    assert results(result) == ["Error: not run: the user went on with something else"]
    assert_valid_history(result.state.messages)
    assert result.text == "as you like"


async def test_another_prompt_may_follow_a_fork_of_an_open_run() -> None:
    store = MemoryStore()
    a = agent(store, call("add", a=1), "2", "something else")
    await a.run("1 + 1?", thread_id="t")
    fork = await timetravel.fork(a, "t", at=2)
    result = await a.run("Something else.", thread_id=fork)
    assert result.text == "something else"
    assert_valid_history(result.state.messages)
    assert await timetravel.replay(a, fork)


# -- mistakes -----------------------------------------------------------------------------------------


async def test_what_cannot_be_forked_is_said() -> None:
    store = MemoryStore()
    a = agent(store, "one")
    await a.run("x", thread_id="t")
    with pytest.raises(NothingToResume, match="thread 'nowhere' does not exist"):
        await timetravel.fork(a, "nowhere")
    for wrong in (0, 4, -1):
        with pytest.raises(JournalError, match="has the transitions 1 to 3"):
            await timetravel.fork(a, "t", at=wrong)
    with pytest.raises(JournalError, match="that thread exists already"):
        await timetravel.fork(a, "t", into="t")
    with pytest.raises(InputError, match="thread_id must be a str that names the conversation, got ''"):
        await timetravel.fork(a, "t", into="")
    with pytest.raises(JournalError, match="no history"):
        await timetravel.fork(agent(MemoryStore(history=False), "one"), "t")
    assert [t.thread_id for t in await store.threads()] == ["t"]


async def test_forks_that_are_not_named_get_names_of_their_own() -> None:
    store = MemoryStore()
    a = agent(store, "one")
    await a.run("x", thread_id="t")
    names = {await timetravel.fork(a, "t") for _ in range(20)}
    assert len(names) == 20
    assert all(name.startswith("t~") for name in names)


async def test_a_fork_leaves_its_origin_to_go_on() -> None:
    """A thread may be forked while a run holds it."""
    store = MemoryStore()
    a = agent(store, call("add", a=1), call("confirm", what="go"), "done", "done there")
    forks = []
    async for event in a.run("x", thread_id="t"):
        if isinstance(event, InterruptEvent):
            forks.append(await timetravel.fork(a, "t"))
    here = await a.resume("t", "yes")
    assert here.text == "done"
    there = await a.resume(forks[0])
    assert len(there.interrupts) == 1
