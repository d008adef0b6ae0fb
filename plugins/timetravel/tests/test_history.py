"""`agent.history`: every transition of a thread, with its time, its calls, what it spent and its state."""

from __future__ import annotations

from datetime import timedelta

import pytest

import locus_plugin_timetravel as timetravel
from locus import Agent, AgentState, Message, Role, ToolContext, Usage, tool
from locus.core.errors import ConfigError, JournalError, NothingToResume
from locus.core.journal import BLANK, Intent, StepId, fold
from locus.journal import MemoryStore
from locus.models.protocol import Price
from locus_plugin_timetravel import History, HistoryEntry, history, state_at
from locus_testkit import FakeClock, ScriptedModel, call

from .kit import add, confirm

pytestmark = pytest.mark.anyio


async def told(store: MemoryStore, *script: object, clock: FakeClock | None = None) -> Agent:
    model = ScriptedModel(*script, price=Price(prompt=1.0, completion=2.0))  # type: ignore[arg-type]
    return Agent(model, tools=[add, confirm], checkpointer=store, clock=clock)


async def test_each_transition_is_an_entry_of_the_history() -> None:
    store, clock = MemoryStore(), FakeClock()

    @tool
    def wait(seconds: int) -> str:
        """Take time."""
        clock.advance(seconds)
        return "waited"

    agent = Agent(ScriptedModel(call("wait", seconds=60), "Done."), tools=[wait], checkpointer=store, clock=clock)
    result = await agent.run("Wait.", thread_id="t")
    past = await timetravel.history(agent, "t")

    assert [m.n for m in past] == [1, 2, 3, 4, 5]
    assert [(m.node, m.next_node) for m in past] == [
        ("start", "think"),
        ("think", "execute"),
        ("execute", "think"),
        ("think", "terminate"),
        ("terminate", "end"),
    ]
    assert [m.iteration for m in past] == [0, 0, 0, 1, 1]
    assert {m.run_id for m in past} == {result.run_id}
    assert past[-1].why == "NoToolCalls"
    assert past[-1].satisfied == ("NoToolCalls",)
    start = past[0].at
    assert [m.at - start for m in past] == [timedelta(seconds=s) for s in (0, 0, 60, 60, 60)]
    assert [[e.tool_name for e in m.calls] for m in past] == [[], [], ["wait"], [], []]
    assert [[m.role for m in entry.messages] for entry in past] == [
        [Role.USER],
        [Role.ASSISTANT],
        [Role.TOOL],
        [Role.ASSISTANT],
        [],
    ]


async def test_what_was_spent_is_listed_by_transition_and_in_all() -> None:
    store = MemoryStore()
    agent = await told(store, call("add", a=1), "2", "hello")
    await agent.run("x", thread_id="t")
    await agent.run("y", thread_id="t")
    past = await timetravel.history(agent, "t")
    once = Usage(prompt_tokens=10, completion_tokens=5, cost=20 / 1_000_000)
    assert [m.usage.total_tokens for m in past] == [0, 15, 0, 15, 0, 0, 15, 0]
    assert past[1].usage == once
    assert [m.so_far.total_tokens for m in past] == [0, 15, 15, 30, 30, 30, 45, 45]
    assert past.usage.cost == pytest.approx(60 / 1_000_000)
    # The state counts its own run, the history its thread.
    assert past[-1].state.total_tokens_used == 15


async def test_a_state_that_was_brought_along_was_paid_for_elsewhere() -> None:
    store = MemoryStore()
    agent = await told(store, "hello")
    seed = AgentState(messages=[Message(Role.USER, "hi")], prompt_tokens_used=1000)
    await agent.run(seed, thread_id="t")
    past = await timetravel.history(agent, "t")
    assert [m.usage.total_tokens for m in past] == [0, 15, 0]
    assert past.state.total_tokens_used == 1015


async def test_an_entry_has_its_state() -> None:
    store = MemoryStore()
    agent = await told(store, call("add", a=1), "2", "hello")
    await agent.run("x", thread_id="t")
    result = await agent.run("y", thread_id="t")
    past = await timetravel.history(agent, "t")
    bodies = [e.body for e in await store.read("t")]
    assert past.state == past[-1].state == result.state == fold(BLANK, bodies)
    for entry in (past[4], past[0], past[6], past[2], *past, *reversed(past)):
        assert entry.state == fold(BLANK, bodies[: entry.entry])
        assert entry.state == await timetravel.state_at(agent, "t", entry.n)
        assert entry.state.updated_at == entry.at


async def test_going_back_and_forth_in_a_long_thread_finds_the_same_states() -> None:
    store = MemoryStore()
    script = [call("add", a=n) for n in range(120)]
    agent = Agent(ScriptedModel(*script, "done"), tools=[add], checkpointer=store, max_iterations=200)
    await agent.run("x", thread_id="t")
    past = await timetravel.history(agent, "t")
    forward = [m.state for m in past]
    assert len(forward) == 243
    for n in (243, 1, 64, 65, 63, 128, 200, 127, 129, 192, 2, 243):
        assert past.at(n).state == forward[n - 1]
    fresh = await timetravel.history(agent, "t")
    assert fresh.at(200).state == forward[199]
    assert fresh.at(199).state == forward[198]


async def test_a_history_is_a_sequence() -> None:
    store = MemoryStore()
    agent = await told(store, "hello")
    await agent.run("x", thread_id="t")
    past = await timetravel.history(agent, "t")
    assert isinstance(past, History)
    assert len(past) == 3
    assert past[0] is past.at(1)
    assert past[-1] is past.at(3)
    assert past[1:] == tuple(past)[1:]
    assert isinstance(past[0], HistoryEntry)
    assert past == await history(store, "t")
    for wrong in (0, 4, -1, True, "1"):
        with pytest.raises(JournalError, match="transitions 1 to 3"):
            past.at(wrong)  # type: ignore[arg-type]
    with pytest.raises(JournalError, match="transitions 1 to 3"):
        await state_at(store, "t", 4)


async def test_runs_are_kept_apart() -> None:
    store = MemoryStore()
    agent = await told(store, "one", call("confirm", what="go"), "two")
    first = await agent.run("x", thread_id="t")
    second = await agent.run("y", thread_id="t")
    await agent.resume("t", "yes")
    past = await timetravel.history(agent, "t")
    assert [{m.run_id for m in run} for run in past.runs] == [{first.run_id}, {second.run_id}]
    assert [m.segment for m in past] == [0, 0, 0, 0, 0, 1, 1, 1]


async def test_what_the_node_under_way_has_done_is_pending() -> None:
    store = MemoryStore()
    agent = await told(store, [call("add", a=1), call("confirm", what="go")], "done")
    await agent.run("x", thread_id="t")
    past = await timetravel.history(agent, "t")
    assert past.open_node == "execute"
    assert [type(b).__name__ for b in past.pending][-1] == "Paused"
    await agent.resume("t", "yes")
    past = await timetravel.history(agent, "t")
    assert past.open_node is None
    assert past.pending == ()


async def test_children_are_linked() -> None:
    store = MemoryStore()
    child = Agent(ScriptedModel("42", after="repeat"), name="child", checkpointer=store)

    @tool
    async def consult(ctx: ToolContext[None]) -> str:
        """Ask."""
        answer = await ctx.run_child(child, "?")
        return str(answer.text)

    agent = Agent(ScriptedModel([call("consult"), call("consult")], "done"), tools=[consult], checkpointer=store)
    await agent.run("x", thread_id="t")
    past = await timetravel.history(agent, "t")
    linked = [m.children for m in past if m.children]
    assert len(linked) == 1
    assert len(linked[0]) == 2
    for thread in linked[0]:
        inner = await timetravel.history(agent, thread)
        assert inner.state.last_assistant == Message(Role.ASSISTANT, "42")
    assert past[2].usage.total_tokens == 30


async def test_a_person_can_read_it() -> None:
    store = MemoryStore()
    agent = await told(store, [call("add", a=1, b=2), call("add", a="x")], "It is\n3.")
    await agent.run("1 + 2?", thread_id="t")
    lines = timetravel.format_history(await timetravel.history(agent, "t")).splitlines()
    assert lines[0] == "thread t"
    assert lines[2].split() == ["1", "1", "start", "think", "'1", "+", "2?'"]
    assert "add(a=1, b=2), add(a='x')" in lines[3]
    assert "add(a=1, b=2) = '3'; add(a='x') = error: " in lines[4]
    assert lines[5].endswith("'It is 3.'")
    assert lines[-1] == "ended: NoToolCalls; 30 tokens, $4e-05 spent"


async def test_a_thread_whose_first_turn_never_began_has_an_empty_history() -> None:
    store = MemoryStore()
    claim = await store.claim("t", "w")
    await store.append(claim, [Intent(run_id="r", step_id=StepId(0, "step", name="x"))])
    await store.release(claim)
    past = await history(store, "t")
    assert (len(past), past.open_node, past.usage, past.runs) == (0, None, Usage(), ())
    assert "nothing was committed yet" in timetravel.format_history(past)
    with pytest.raises(JournalError, match="none was committed yet"):
        _ = past.state


async def test_there_must_be_something_to_tell() -> None:
    agent = await told(MemoryStore(), "hello")
    with pytest.raises(NothingToResume, match="thread 'nowhere' does not exist"):
        await timetravel.history(agent, "nowhere")
    with pytest.raises(JournalError, match="MemoryStore keeps the newest state of a thread and no history"):
        await history(MemoryStore(history=False), "t")
    with pytest.raises(ConfigError, match="checkpointer="):
        await timetravel.history(Agent(ScriptedModel()), "t")
