"""What a run writes, and when: all that came before an effect stands before it, and nothing is written twice over."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio import wait_all_tasks_blocked

from locus import Agent, Hook, tool
from locus.core.errors import Fenced, NotSerialisable, StoreError
from locus.core.events import CheckpointEvent, IterationEvent, TerminateEvent, ToolCompleteEvent
from locus.core.journal import BLANK, Body, StepId, Transition, entry_to_json, fold
from locus.core.state import AgentState
from locus.journal import MemoryStore
from locus.journal.host import JournalHost
from locus.journal.store import Appended, Claim, Posted
from locus.models.protocol import ModelRequest
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


class Watched(MemoryStore):
    """Tells what was written, and stands for the disk: what happens in between asks it."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[list[str]] = []

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        for body in bodies:
            entry_to_json(body)  # as a file does: a value without a JSON form is refused
        self.writes.append([_named(body) for body in bodies])
        return await super().append(claim, bodies)


def _named(body: Body) -> str:
    if isinstance(body, Transition):
        return f"{body.node} > {body.next_node}"
    return f"{type(body).__name__} {getattr(body, 'step_id', '')}"


@pytest.mark.parametrize("effect", ["once", "keyed", "pure"])
async def test_an_iteration_is_written_before_its_effect_and_after_it(effect: Any) -> None:
    store = Watched()
    before: list[list[str]] = []

    @tool(effect=effect)
    async def act(n: int) -> str:
        """Act."""
        before.append(store.writes[-1])
        return "acted"

    await Agent(ScriptedModel(call("act", n=1), "done"), tools=[act], checkpointer=store).run("x")
    intent = [] if effect == "pure" else ["Intent 0/execute/0"]
    assert before == [["Outcome 0/think/0", "think > execute", *intent]]
    assert store.writes == [
        ["start > think"],
        *before,
        ["Outcome 0/execute/0", "execute > think"],
        ["Outcome 1/think/0", "think > terminate", "terminate > end"],
    ]


async def test_calls_of_one_turn_find_what_came_before_them_written() -> None:
    store = Watched()
    before: list[bool] = []

    @tool(effect="pure")
    async def act(n: int) -> str:
        """Act."""
        before.append(any("think > execute" in write for write in store.writes))
        return "acted"

    turn = [call("act", n=1), call("act", n=2)]
    await Agent(ScriptedModel(turn, "done"), tools=[act], checkpointer=store).run("x")
    assert before == [True, True]
    assert sorted(write for write in store.writes if write[0].startswith("Outcome 0/execute")) == [
        ["Outcome 0/execute/0"],
        ["Outcome 0/execute/1"],
    ], "each by itself"


async def test_nothing_is_emitted_before_it_is_written() -> None:
    store = Watched()
    told: list[tuple[str, list[str]]] = []

    class Listener(Hook):
        async def on_checkpoint(self, event: CheckpointEvent) -> None:
            told.append((f"{event.node} > {event.next_node}", store.writes[-1]))

        async def on_tool_complete(self, event: ToolCompleteEvent) -> None:
            told.append(("Outcome 0/execute/0", store.writes[-1]))

    @tool
    async def act(n: int) -> str:
        """Act."""
        return "acted"

    model = ScriptedModel(call("act", n=1), "done")
    await Agent(model, tools=[act], checkpointer=store, hooks=[Listener()]).run("x")
    assert len(told) == 6
    assert all(write[-1] == what for what, write in told)


async def test_a_result_that_no_journal_can_hold_is_the_next_ones_to_bear_and_takes_nothing_with_it() -> None:
    store = Watched()

    @tool(effect="pure")
    async def act(n: int) -> str:
        """Act."""
        return "acted"

    class Strange(Hook):
        async def on_tool_call(self, call: Any, run: Any) -> None:
            with pytest.raises(NotSerialisable):
                await run.step("strange", _strange, effect="pure")

    model = ScriptedModel(call("act", n=1), "done")
    result = await Agent(model, tools=[act], checkpointer=store, hooks=[Strange()]).run("x")
    assert result.message == "done"
    assert ["Outcome 0/think/0", "think > execute"] in store.writes


async def _strange() -> object:
    return object()


# -- a store that begins to write, and goes on ---------------------------------------------------------------


class Begun:
    """An append that was begun."""

    def __init__(self, store: Beginning, claim: Claim, bodies: Sequence[Body], after: Posted | None) -> None:
        self._store, self.claim, self.bodies, self.after = store, claim, bodies, after
        self.got: Appended | None = None
        self.error: Exception | None = None

    async def wait(self) -> Appended:
        try:
            await self._store.may_write.wait()
            await anyio.lowlevel.checkpoint()
        finally:
            with anyio.CancelScope(shield=True):
                await self._store.catch_up()
        assert self.got is not None
        if self.error is not None:
            raise self.error
        return self.got


class Beginning(Watched):
    """Writes what was begun when somebody waits for it, which is as late as it may be.

    Args:
        fails: how its posts end, from a post on: ``"full"``, ``"fenced"``, or not at all.
        at: which post that is, from 1.
    """

    def __init__(self, fails: str = "", at: int = 0) -> None:
        super().__init__()
        self.fails, self.at, self.posts = fails, at, 0
        self.begun: list[Begun] = []
        #: Until it is set, nobody is told what came of a post.
        self.may_write = anyio.Event()
        self.may_write.set()

    def post(self, claim: Claim, bodies: Sequence[Body], after: Posted | None = None) -> Posted:
        for body in bodies:
            entry_to_json(body)
        made = Begun(self, claim, bodies, after)
        self.posts += 1
        self.begun.append(made)
        if self.posts == self.at:
            made.got = Appended.FENCED
            made.error = OSError(28, "no space left on device") if self.fails == "full" else None
        return made

    async def catch_up(self) -> None:
        while self.begun:
            each = self.begun.pop(0)
            refused = isinstance(each.after, Begun) and each.after.got is not Appended.OK
            each.got = each.got or (Appended.FENCED if refused else await super().append(each.claim, each.bodies))

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        await self.catch_up()
        return await super().append(claim, bodies)

    async def release(self, claim: Claim, not_before: datetime | None = None) -> None:
        await self.catch_up()
        await super().release(claim, not_before)


@tool
async def note(n: int) -> str:
    """Note."""
    return f"noted {n}"


def noting(store: MemoryStore, **options: Any) -> Agent[Any, Any]:
    script: list[Any] = [call("note", n=1), call("note", n=2), "done"]
    return Agent(ScriptedModel(script=lambda request: script), tools=[note], checkpointer=store, **options)


class Ends(Hook):
    """Hears how a segment ended, and what its state was then."""

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.seen: list[int] = []

    async def on_terminate(self, event: TerminateEvent, run: Any) -> None:
        self.reasons.append(event.reason)
        self.seen.append(len(run.state.messages))


def _entries(writes: list[list[str]]) -> list[str]:
    return [each for write in writes for each in write]


async def test_the_model_is_asked_while_a_turn_is_written_and_nothing_else_is_done() -> None:
    store, plain = Beginning(), Watched()
    asked: list[list[str]] = []
    acted: list[list[str]] = []

    @tool
    async def act(n: int) -> str:
        """Act, once."""
        assert not store.begun
        acted.append(store.writes[-1])
        return "acted"

    def script(_: ModelRequest) -> Any:
        asked.append([_named(body) for each in store.begun for body in each.bodies])
        return call("act", n=len(asked)) if len(asked) < 3 else "done"

    await Agent(ScriptedModel(script, after="repeat"), tools=[act], checkpointer=store).run("x")
    assert asked == [
        ["start > think"],
        ["Outcome 0/execute/0", "execute > think"],
        ["Outcome 1/execute/0", "execute > think"],
    ]
    assert [write[-1] for write in acted] == ["Intent 0/execute/0", "Intent 1/execute/0"]
    await noting(plain).run("x")
    assert _entries(store.writes) == _entries(plain.writes), "what is written, and its order, are the same"


@pytest.mark.parametrize("at", range(1, 7))
@pytest.mark.parametrize(("fails", "raised"), [("full", StoreError), ("fenced", Fenced)])
async def test_nothing_is_stored_or_done_behind_a_post_that_was_not_stored(at: int, fails: str, raised: Any) -> None:
    # given
    store, ends, untouched = Beginning(fails, at), Ends(), Beginning()
    await noting(untouched).run("x", thread_id="t")
    assert untouched.posts == 6
    assert untouched.writes[-1] == ["Outcome 2/think/0", "think > terminate", "terminate > end"]
    # when
    with pytest.raises(raised) as caught:
        await noting(store).run("x", thread_id="t")
    # then what was refused is named, and all that stands is what came before it
    if fails == "full":
        assert str(caught.value).startswith("thread 't': Beginning could not save ")
        assert isinstance(caught.value.__cause__, OSError)
    stored = _entries(store.writes)
    assert stored == _entries(untouched.writes)[: len(stored)]
    assert "terminate > end" not in stored
    # and it goes on to the same end
    again = "call resume(thread_id)" in str(caught.value)
    assert again == bool(stored) or fails == "fenced"
    agent = noting(store, hooks=[ends])
    result = await (agent.resume("t") if stored else agent.run("x", thread_id="t"))
    assert result.message == "done"
    assert [e for e in _entries(store.writes) if not e.startswith("Resumed")] == _entries(untouched.writes)


@pytest.mark.parametrize("at", [2, 3, 4])
async def test_a_hook_sees_what_is_stored_when_a_post_is_not(at: int) -> None:
    store, ends = Beginning("full", at), Ends()
    with pytest.raises(StoreError):
        await noting(store, hooks=[ends]).run("x", thread_id="t")
    held = await store.peek("t")
    assert held is not None
    assert ends.reasons == ["JournalError"]
    assert ends.seen == [len(fold(BLANK, [entry.body for entry in held.entries]).messages)]


async def test_a_run_that_is_cancelled_while_it_is_written_loses_nothing() -> None:
    store = Beginning()
    async with anyio.create_task_group() as group:
        asked = 0

        def script(_: ModelRequest) -> Any:
            nonlocal asked
            asked += 1
            if asked == 2:
                store.may_write = anyio.Event()
                group.start_soon(cancel)
            return call("note", n=asked)

        async def cancel() -> None:
            await wait_all_tasks_blocked()
            group.cancel_scope.cancel()
            store.may_write.set()

        await Agent(ScriptedModel(script, after="repeat"), tools=[note], checkpointer=store).run("x", thread_id="t")
    assert [each for each in _entries(store.writes) if each.startswith("Outcome")] == [
        "Outcome 0/think/0",
        "Outcome 0/execute/0",
        "Outcome 1/think/0",
    ]
    assert _entries(store.writes)[-1] == "Paused "
    result = await noting(store).resume("t")
    assert result.message == "done"


async def test_steps_beside_each_other_come_after_what_is_being_written() -> None:
    store = Beginning("full", 1)
    done: list[int] = []

    class Two(Hook):
        async def on_iteration(self, event: IterationEvent, run: Any) -> None:
            async def step(n: int) -> None:
                async def body() -> int:
                    done.append(n)
                    return n

                with contextlib.suppress(StoreError, Fenced):
                    await run.step(f"step {n}", body)

            async with anyio.create_task_group() as group:
                for n in range(3):
                    group.start_soon(step, n)

    with pytest.raises(StoreError, match=r"could not save .*start -> think"):
        await noting(store, hooks=[Two()]).run("x", thread_id="t")
    assert (done, store.writes) == ([], [])


@pytest.mark.parametrize("following", ["think", "end"])
async def test_no_model_is_asked_before_what_the_one_before_it_said_is_stored(following: str) -> None:
    # given a transition behind an answer of a model that waits for it
    store = Beginning()
    host = await JournalHost.open(store, "t", "w")
    host.begin("run")
    state = AgentState(agent_id="a", run_id="run")
    state = await host.commit(BLANK, state, node="start", next_node="think")
    await host.step(StepId(0, "call", name="judge"), _judged, "model")
    # when
    await host.commit(state, state, node="reflect", next_node=following, when="meanwhile")
    # then only what no model is asked behind is still being written
    assert [_named(body) for each in store.begun for body in each.bodies] == (
        ["Outcome 0/call/0:judge", "reflect > end"] if following == "end" else []
    )
    await host.flush()
    assert _entries(store.writes) == ["start > think", "Outcome 0/call/0:judge", f"reflect > {following}"]


async def _judged() -> str:
    return "well done"
