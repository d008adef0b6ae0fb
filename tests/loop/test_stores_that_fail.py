"""A store that fails: the run leaves as an error of the journal, stays open, and nobody hears an untruth."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import anyio
import pytest
from tests.loop.hook_kit import Crash
from tests.loop.kit import Recorder, add, answers, collect, confirm, kinds, of, results

from locus import Agent, Hook, HookFailedEvent, Role, ToolCall, ToolContext, tool
from locus.core.errors import Fenced, JournalError, OutcomeUnknown, StoreError, ThreadBusy
from locus.core.journal import Body, Intent, Outcome, Paused, StepId, Transition
from locus.core.state import AgentState
from locus.journal import MemoryStore
from locus.journal.store import Appended, Claim
from locus.plugin import hookimpl
from locus_kit.snapshots import SnapshotAdapter
from locus_testkit import FullStore, InterceptedStore, ScriptedModel, call

pytestmark = pytest.mark.anyio

FULL = "no space left on device"


def full() -> OSError:
    return OSError(28, FULL)


done: Counter[str] = Counter()


@tool
async def charge(n: int, ctx: ToolContext[Any]) -> str:
    """May happen once only, in two parts."""

    async def pay() -> int:
        done[f"paid {n}"] += 1
        return n

    done[f"charge {n}"] += 1
    await ctx.step("pay", pay)
    return f"charged {n}"


@tool(effect="pure")
async def look(n: int) -> str:
    """May happen again."""
    await anyio.lowlevel.checkpoint()
    return f"saw {n}"


def shop(store: Any, mode: Any = "concurrent", **options: Any) -> Agent[Any, Any]:
    script: list[Any] = [
        [call("charge", n=1), call("look", n=1), call("charge", n=2)],
        [call("confirm", what="pay"), call("look", n=2)],
        "done",
    ]
    model = ScriptedModel(script=lambda request: script)
    return Agent(model, tools=[charge, look, confirm], checkpointer=store, tool_execution=mode, **options)


async def attempted(agent: Agent[Any, Any]) -> tuple[Any, StoreError | None]:
    """The run, as far as its store lets it get."""
    try:
        await agent.run("x", thread_id="t")
        return await agent.resume("t", "yes"), None
    except StoreError as e:
        return None, e


async def whole(agent: Agent[Any, Any], store: Any) -> Any:
    """The run to its end, going on after the store was mended."""
    result, error = await attempted(agent)
    if error is None:
        return result
    assert store.writes == store.at, "it went on writing after a write had failed"
    assert str(error).startswith(f"thread 't': {type(store).__name__} could not save ")
    assert FULL in str(error)
    assert error.store == type(store).__name__
    assert isinstance(error.__cause__, OSError)
    store.mend()
    if "call resume(thread_id)" in str(error):
        result = await agent.resume("t")
    else:
        assert await store.peek("t") is None
        result = await agent.run("x", thread_id="t")
    return await agent.resume("t", "yes") if result.interrupts else result


@pytest.mark.parametrize("mode", ["concurrent", "sequential"])
@pytest.mark.parametrize("make", [FullStore, partial(FullStore, history=False)])
async def test_a_run_whose_store_fails_at_any_write_continues_to_the_same_end(make: Any, mode: Any) -> None:
    untouched = make()
    wanted = await whole(shop(untouched, mode), untouched)
    for at in range(1, untouched.writes + 1):
        done.clear()
        store = make(at)
        result = await whole(shop(store, mode), store)
        assert store.at == 0, "the store did not fail"
        assert max(done.values()) == 1
        assert (result.stop_reason, result.message) == ("NoToolCalls", "done")
        for got, expected in zip(results(result), results(wanted), strict=True):
            assert got == expected or got.startswith("Error: outcome unknown")
        assert len(result.state.errors) == sum(r.startswith("Error") for r in results(result))
    assert untouched.writes > 10


def shelf(every: int, refused: list[str]) -> InterceptedStore:
    """Has room for entries and none for snapshots; notes where the run was at each."""

    def refuse(claim: Claim, at: int, state: AgentState, last: Transition) -> None:
        refused.append(last.next_node)
        raise full()

    store = InterceptedStore({"snapshot": refuse})
    store.snapshot_every = every  # type: ignore[assignment]
    return store


@pytest.mark.parametrize(("every", "last"), [(1, "end"), (2, "end"), (4, "think"), (7, "think")])
async def test_a_snapshot_that_cannot_be_made_is_done_without(every: int, last: str) -> None:
    # given a store that has room for entries and none for what caches them
    refused: list[str] = []
    store = shelf(every, refused)
    agent = Agent(ScriptedModel(call("add", a=1), call("add", a=2), "done", "again"), tools=[add], checkpointer=store)
    # when
    result = await agent.run("x", thread_id="t")
    # then nothing is missing but the cache
    assert refused[-1] == last
    assert (result.message, results(result)) == ("done", ["2", "3"])
    claim = await store.claim("t", "w")
    assert claim.snapshot is None
    assert len(claim.entries) == claim.head
    await store.release(claim)
    store.before.clear()
    result = await agent.run("y", thread_id="t")
    assert [m.text for m in result.state.messages if m.text and m.role is not Role.TOOL] == ["x", "done", "y", "again"]
    assert (await store.claim("t", "w")).snapshot is not None


def door(method: Literal["claim", "peek", "release"], error: Exception | None = None) -> InterceptedStore:
    """Fails at claims, at looking, or, when that is done, at giving back."""

    def fail(*_: object) -> None:
        raise error or ConnectionError("the line is dead")

    return InterceptedStore(after={"release": fail}) if method == "release" else InterceptedStore({method: fail})


async def test_a_thread_that_cannot_be_taken_is_an_error_of_the_store_and_no_segment() -> None:
    store, recorder = door("claim"), Recorder()
    agent = Agent(ScriptedModel("hi"), hooks=[recorder], checkpointer=store)
    with pytest.raises(
        StoreError, match=r"'t': InterceptedStore could not take the thread: ConnectionError.*try again"
    ) as caught:
        await agent.run("x", thread_id="t")
    assert isinstance(caught.value.__cause__, ConnectionError)
    assert recorder.events == []
    store.before.clear()
    assert (await agent.run("x", thread_id="t")).message == "hi"


async def test_a_thread_that_cannot_be_given_back_is_an_error_of_the_store_behind_the_end() -> None:
    store, recorder = door("release"), Recorder()
    agent = Agent(ScriptedModel("hi", "again"), hooks=[recorder], checkpointer=store)
    with pytest.raises(
        StoreError, match=r"'t': InterceptedStore could not give the thread back.*what the run did is saved"
    ):
        await agent.run("x", thread_id="t")
    assert kinds(recorder.events)[-1] == "terminate"
    store.after.clear()
    assert len((await agent.run("y", thread_id="t")).state.messages) == 4


async def test_what_was_wrong_first_is_raised_and_the_other_noted() -> None:
    store = door("release")

    class Dies(Hook):
        def on_think(self, event: Any) -> None:
            raise SystemExit

    with pytest.raises(SystemExit) as caught:
        await collect(Agent(ScriptedModel("hi"), hooks=[Dies()], checkpointer=store).run("x", thread_id="t"))
    assert "could not give the thread back" in caught.value.__notes__[0]


@pytest.mark.parametrize("error", [StoreError("the file is damaged", store="mine"), Fenced("somebody else")])
async def test_what_the_store_says_of_itself_is_raised_as_it_is(error: JournalError) -> None:
    store = FullStore(3, lambda: error)
    with pytest.raises(type(error)) as caught:
        await shop(store).run("x", thread_id="t")
    assert caught.value is error
    assert store.writes == 3
    for method in ("claim", "release"):
        with pytest.raises(type(error)) as caught:
            await Agent(ScriptedModel("hi"), checkpointer=door(method, error)).run("x", thread_id="t")
        assert caught.value is error


async def test_the_error_is_one_and_keeps_its_cause_also_where_calls_run_side_by_side() -> None:
    class Meeting(FullStore):
        """Both writes are under way before either fails."""

        def __init__(self) -> None:
            super().__init__()
            self.waiting, self.both = 0, anyio.Event()

        async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
            if any(isinstance(b, Outcome) and b.step_id.node == "execute" for b in bodies):
                self.waiting += 1
                if self.waiting == 2:
                    self.both.set()
                await self.both.wait()
                raise full()
            return await super().append(claim, bodies)

    agent = Agent(ScriptedModel([call("add", a=1), call("add", a=2)]), tools=[add], checkpointer=Meeting())
    with anyio.fail_after(5), pytest.raises(StoreError) as caught:
        await agent.run("x", thread_id="t")
    assert isinstance(caught.value.__cause__, OSError)


# -- who might have kept it to himself -----------------------------------------------------------------


class Steps(FullStore):
    """Cannot keep the steps of bodies and hooks."""

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        if self.at and any(isinstance(b, Intent | Outcome) and b.step_id.name == "mine" for b in bodies):
            raise full()
        self.writes += 1
        return await MemoryStore.append(self, claim, bodies)


async def nothing() -> None:
    done["step"] += 1


@pytest.mark.parametrize("catches", [False, True])
@pytest.mark.parametrize("calls", [["stepping"], ["stepping", "waits"]], ids=["alone", "beside another"])
async def test_a_failure_in_a_step_of_a_body_is_not_the_errors_of_the_body(calls: list[str], catches: bool) -> None:
    store, recorder = Steps(1), Recorder()

    @tool(effect="pure")
    async def stepping(ctx: ToolContext[Any]) -> str:
        """Does something that is to be recorded."""
        if not catches:
            await ctx.step("mine", nothing)
            return "kept"
        try:
            await ctx.step("mine", nothing)
        except Exception:  # noqa: BLE001  as careless programs do
            return "never mind"
        return "kept"

    @tool(effect="pure")
    async def waits() -> str:
        """Takes as long as it is let."""
        if store.at:
            await anyio.sleep_forever()
        return "waited"

    model = ScriptedModel([call(name) for name in calls], "done")
    agent = Agent(model, tools=[stepping, waits], hooks=[recorder], checkpointer=store)
    done.clear()
    with anyio.fail_after(5), pytest.raises(StoreError, match=r"Intent 0/execute/0/step/0:mine.*no space left"):
        await agent.run("x", thread_id="t")
    assert done["step"] == 0
    assert "tool_complete" not in kinds(recorder.events)
    assert len(model.requests) == 1
    last = (await store.read("t"))[-1].body
    assert isinstance(last, Transition)
    store.mend()
    result = await agent.resume("t")
    assert results(result)[0] == "kept"
    assert (done["step"], result.state.errors) == (1, ())


WHERE = ("iteration", "decide", "tool_start", "review", "wrap_tool", "wrap_model", "wrap_node", "reflect")


class Stepping(Hook):
    """Makes a recorded step at one place, and may say nothing of its failure."""

    name = "stepping"

    def __init__(self, where: str, *, catches: bool) -> None:
        self.where, self.catches = where, catches

    async def _step(self, where: str, run: Any) -> None:
        if where != self.where:
            return
        try:
            await run.step("mine", nothing)
        except Exception:
            if not self.catches:
                raise

    async def on_iteration(self, event: Any, run: Any) -> None:
        await self._step("iteration", run)

    async def on_tool_start(self, event: Any, run: Any) -> None:
        await self._step("tool_start", run)

    async def on_tool_call(self, call: ToolCall, run: Any) -> None:
        await self._step("decide", run)

    @hookimpl
    async def locus_review_answer(self, answer: Any, run: Any) -> None:
        await self._step("review", run)

    @hookimpl
    async def locus_wrap_tool_call(self, call_next: Any, call: ToolCall, run: Any) -> Any:
        await self._step("wrap_tool", run)
        return await call_next(call)

    @hookimpl
    async def locus_wrap_model_call(self, call_next: Any, request: Any, run: Any) -> Any:
        await self._step("wrap_model", run)
        return await call_next(request)

    @hookimpl
    async def locus_wrap_node(self, call_next: Any, node: str, state: Any, run: Any) -> Any:
        if node == "think":
            await self._step("wrap_node", run)
        return await call_next(state)

    @hookimpl
    def locus_register_reflect_policies(self) -> Any:
        return [lambda state: "always"]

    @hookimpl
    async def locus_reflect(self, state: Any, run: Any) -> None:
        await self._step("reflect", run)


@pytest.mark.parametrize("catches", [False, True])
@pytest.mark.parametrize("where", WHERE)
async def test_a_failure_in_a_step_of_a_hook_is_not_a_failure_of_the_hook(where: str, catches: bool) -> None:
    store, recorder = Steps(1), Recorder()
    script: list[Any] = [call("add", a=1), "done"]
    agent = Agent(
        ScriptedModel(script=lambda request: script),
        tools=[add],
        hooks=[Stepping(where, catches=catches), recorder],
        checkpointer=store,
    )
    with pytest.raises(StoreError, match=FULL):
        await agent.run("x", thread_id="t")
    assert of(recorder.events, HookFailedEvent) == []
    assert not any(isinstance(e.body, Transition) and e.body.next_node == "end" for e in await store.read("t"))
    store.mend()
    result = await agent.resume("t")
    assert (result.stop_reason, result.message) == ("NoToolCalls", "done")
    [told] = results(result)
    assert told == "2" or told.startswith("Error: outcome unknown")


async def test_a_question_that_cannot_be_kept_leaves_the_run_open() -> None:
    class Forgets(FullStore):
        async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
            if self.at and any(isinstance(b, Paused) for b in bodies):
                raise full()
            return await MemoryStore.append(self, claim, bodies)

    store = Forgets(1)
    agent = Agent(ScriptedModel(call("confirm", what="pay"), "paid"), tools=[confirm], checkpointer=store)
    with pytest.raises(StoreError, match="could not save Paused"):
        await agent.run("x", thread_id="t")
    store.mend()
    asked = await agent.resume("t")
    assert asked.stop_reason == "Interrupted"
    assert (await agent.resume("t", "yes")).message == "paid"


# -- children and strangers ----------------------------------------------------------------------------


def delegating(child: Agent[Any, Any], *, run_child: bool, effect: Any = "keyed") -> Any:
    @tool(effect=effect)
    async def delegate(ctx: ToolContext[Any]) -> str:
        """Have somebody else do it."""
        if run_child:
            return str((await ctx.run_child(child, "y")).message)
        return str((await child.run("y", thread_id="own")).message)

    return delegate


@pytest.mark.parametrize("doors", ["peek", "claim", "append"])
async def test_a_child_whose_store_fails_stays_open_and_so_does_its_parent(doors: Any) -> None:
    theirs: Any = FullStore(3) if doors == "append" else door(doors)
    child = Agent(ScriptedModel(call("add", a=1), "two"), tools=[add], checkpointer=theirs)
    store = MemoryStore()
    model = ScriptedModel(call("delegate"), "it is two")
    agent = Agent(model, tools=[delegating(child, run_child=True)], checkpointer=store)
    with pytest.raises(StoreError):
        await agent.run("x", thread_id="t")
    assert len(model.requests) == 1
    theirs.mend() if doors == "append" else theirs.before.clear()
    result = await agent.resume("t")
    assert (results(result), result.message) == (["two"], "it is two")


async def test_the_store_of_a_run_that_is_not_part_of_this_one_is_an_ordinary_error_of_the_body() -> None:
    stranger = Agent(ScriptedModel("hi"), checkpointer=FullStore(1))
    model = ScriptedModel(call("delegate"), "sorry")
    agent = Agent(model, tools=[delegating(stranger, run_child=False)], checkpointer=MemoryStore())
    result = await agent.run("x", thread_id="t")
    assert result.message == "sorry"
    assert results(result)[0].startswith("Error: StoreError: thread 'own'")


async def test_a_child_that_an_overtaken_worker_still_holds_stays_open_and_so_does_its_parent() -> None:
    held: list[Claim] = []

    async def take(thread_id: str) -> None:
        if not held:
            held.append(await theirs.claim(thread_id, "somebody"))

    theirs = InterceptedStore({"peek": take})
    child = Agent(ScriptedModel("two"), checkpointer=theirs)
    model = ScriptedModel(call("delegate"), "it is two")
    agent = Agent(model, tools=[delegating(child, run_child=True)], checkpointer=MemoryStore())
    with pytest.raises(ThreadBusy, match="somebody"):
        await agent.run("x", thread_id="t")
    await theirs.release(held[0])
    result = await agent.resume("t")
    assert (results(result), result.message) == (["two"], "it is two")


# -- what is no failure of the store -------------------------------------------------------------------


class Odd:
    """Has no JSON form."""


class Disk:
    """Keeps JSON, and may have no room for it."""

    def __init__(self) -> None:
        self.saved: dict[str, str] = {}
        self.full = False

    def store(self) -> SnapshotAdapter:
        return SnapshotAdapter(self._save, lambda thread_id: json.loads(self.saved.get(thread_id, "null")))

    async def _save(self, thread_id: str, data: Any) -> None:
        await anyio.lowlevel.checkpoint()
        if self.full:
            raise full()
        self.saved[thread_id] = json.dumps(data)


async def test_a_result_without_a_json_form_is_an_error_of_its_author() -> None:
    @tool
    async def stepping(ctx: ToolContext[Any]) -> str:
        """Makes something that cannot be kept."""

        async def make() -> Any:
            return Odd()

        await ctx.step("odd", make, effect="pure")
        return "kept"

    agent = Agent(ScriptedModel(call("stepping"), "sorry"), tools=[stepping], checkpointer=Disk().store())
    result = await agent.run("x", thread_id="t")
    assert result.message == "sorry"
    assert results(result)[0].startswith("Error: NotSerialisable: ")
    assert "Odd has no JSON form" in results(result)[0]


async def test_a_model_answer_is_kept_although_a_step_after_it_had_no_json_form() -> None:
    def check(claim: Claim, bodies: Sequence[Body]) -> None:
        for body in bodies:
            AgentState().with_metadata("x", getattr(body, "value", None))

    class Stores(Hook):
        async def on_think(self, event: Any, run: Any) -> None:
            async def make() -> Any:
                return Odd()

            await run.step("odd", make, effect="pure")

    store = InterceptedStore({"append": check})
    result = await Agent(ScriptedModel("hi"), hooks=[Stores()], checkpointer=store).run("x", thread_id="t")
    assert result.message == "hi"
    steps = [str(e.body.step_id) for e in await store.read("t") if isinstance(e.body, Outcome)]
    assert steps == ["0/think/0"]


async def test_what_an_adapter_could_not_save_is_not_there_for_the_next_claim() -> None:
    disk = Disk()
    store = disk.store()
    agent = Agent(ScriptedModel("hi", "hi"), checkpointer=store)
    disk.full = True
    with pytest.raises(StoreError, match="nothing of this run was saved; fix the cause, then run it again"):
        await agent.run("x", thread_id="t")
    assert await store.peek("t") is None
    disk.full = False
    result = await agent.run("y", thread_id="t")
    assert [m.text for m in result.state.messages] == ["y", "hi"]


async def test_an_adapter_forgets_a_step_that_it_could_not_save() -> None:
    disk = Disk()
    store = disk.store()
    agent = Agent(ScriptedModel(call("confirm", what="pay")), tools=[confirm], checkpointer=store)
    await agent.run("x", thread_id="t")
    claim = await store.claim("t", "w")
    disk.full = True
    with pytest.raises(OSError, match=FULL):
        await store.append(claim, [Outcome(run_id="r", step_id=StepId(0, "lost"))])
    disk.full = False
    await store.append(claim, [Outcome(run_id="r", step_id=StepId(0, "kept"))])
    await store.release(claim)
    steps = [str(e.body.step_id) for e in (await disk.store().claim("t", "w")).entries if isinstance(e.body, Outcome)]
    assert steps[-1] == "0/kept/0"
    assert "0/lost/0" not in steps


async def test_an_unknown_outcome_of_a_step_is_that_of_the_call_whose_body_does_not_handle_it() -> None:
    seen: list[type] = []

    @tool(effect="pure")
    async def stepping(ctx: ToolContext[Any]) -> str:
        """Has an effect that may happen once only."""

        async def die() -> None:
            if not seen:
                seen.append(Crash)
                raise Crash

        try:
            await ctx.step("pay", die)
        except OutcomeUnknown as e:
            seen.append(type(e))
            raise
        return "paid"

    agent = Agent(ScriptedModel(call("stepping"), "sorry"), tools=[stepping], checkpointer=MemoryStore())
    with pytest.raises(Crash):
        await agent.run("x", thread_id="t")
    result = await agent.resume("t")
    assert seen == [Crash, OutcomeUnknown]
    assert result.message == "sorry"
    [told] = answers(result.state)
    assert told.is_error
    assert str(told.content).startswith("Error: outcome unknown: ")


async def test_nothing_is_written_after_an_append_that_nobody_knows_of() -> None:
    class Vague(FullStore):
        async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
            got = await super().append(claim, bodies)
            return Appended.UNKNOWN if self.writes == 4 else got

    @tool(effect="pure")
    async def careless(ctx: ToolContext[Any]) -> str:
        """Goes on whatever happens."""
        for n in range(3):
            try:
                await ctx.step(f"{n}", nothing)
            except JournalError:
                continue
        return "fine"

    store = Vague()
    agent = Agent(ScriptedModel(call("careless"), "done"), tools=[careless], checkpointer=store)
    with pytest.raises(Fenced, match="unknown"):
        await agent.run("x", thread_id="t")
    assert store.writes == 4
    assert (await agent.resume("t")).message == "done"
