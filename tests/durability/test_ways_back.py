"""An intent on record without an outcome wins over whatever the code says now, on every way back to a thread."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from locus import Agent, Hook, Retry, ToolContext, tool
from locus.core import decode, encode
from locus.core.errors import RetryableToolError
from locus.core.events import RunStartEvent, ToolCompleteEvent
from locus.core.journal import Intent
from locus.core.state import ToolExecution
from locus.journal import JournalStore, MemoryStore
from locus_plugin_sqlite import SqliteStore
from locus_plugin_timetravel import export_thread, fork, import_thread
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio

UNKNOWN = "outcome unknown"


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[JournalStore]:
    if request.param == "memory":
        yield MemoryStore()
    else:
        async with SqliteStore(tmp_path / "runs.db") as kept:
            yield kept


class Paid:
    """Counts payments; the first one hangs when it has been made."""

    def __init__(self) -> None:
        self.times, self.keys, self.hangs = 0, list[str](), anyio.Event()

    async def pay(self, ctx: ToolContext[Any]) -> str:
        self.times += 1
        self.keys.append(ctx.idempotency_key)
        if self.times == 1:
            self.hangs.set()
            await anyio.sleep_forever()
        return "paid"

    def tool(self, effect: Any = "once", **options: Any) -> Any:
        @tool(name="pay", effect=effect, **options)
        async def pay(amount: int, ctx: ToolContext[Any]) -> str:
            """Pay."""
            return await self.pay(ctx)

        return pay


def agent(store: JournalStore, *tools: Any, script: tuple[Any, ...] = ("done",), hooks: tuple[Any, ...] = ()) -> Any:
    return Agent[Any, Any](ScriptedModel(*script), tools=list(tools), hooks=list(hooks), checkpointer=store)


async def cancel_when(reached: anyio.Event, run: Callable[[], Any]) -> None:
    """Start a run, and cancel it when it got somewhere."""
    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await reached.wait()
        group.cancel_scope.cancel()


async def left_in_the_middle(store: JournalStore, paid: Paid, **options: Any) -> None:
    """A run whose caller's time ends inside the body."""
    first = agent(store, paid.tool(**options), script=(call("pay", amount=5),))
    await cancel_when(paid.hangs, lambda: first.run("Pay.", thread_id="t"))
    assert paid.times == 1
    assert any(isinstance(entry.body, Intent) for entry in await store.read("t"))


def told(result: Any) -> list[str]:
    return [str(r.content) for m in result.state.messages for r in m.tool_results]


async def test_a_new_turn_reads_that_the_outcome_is_unknown(store: JournalStore) -> None:
    paid = Paid()
    await left_in_the_middle(store, paid)
    result = await agent(store, paid.tool()).run("And now?", thread_id="t")
    assert [UNKNOWN in text for text in told(result)] == [True]
    assert paid.times == 1


class CancelsAt(Hook):
    def __init__(self, run: Callable[[], Any]) -> None:
        self.run = run

    def on_run_start(self, event: RunStartEvent) -> None:
        self.run()


async def test_a_resume_that_is_cancelled_at_its_start_keeps_that_it_is_unknown(
    store: JournalStore,
) -> None:
    paid = Paid()
    await left_in_the_middle(store, paid)
    going: list[Any] = []
    again = agent(store, paid.tool(), hooks=(CancelsAt(lambda: going[0].cancel()),))
    going.append(again)
    result = await again.resume("t")
    assert result.stop_reason == "Cancelled"
    assert [UNKNOWN in text for text in told(result)] == [True]
    assert paid.times == 1


async def test_a_renamed_parameter_does_not_make_it_an_argument_error(store: JournalStore) -> None:
    paid = Paid()
    await left_in_the_middle(store, paid)

    @tool(name="pay")
    async def renamed(cents: int, ctx: ToolContext[Any]) -> str:
        """Pay."""
        return await paid.pay(ctx)

    result = await agent(store, renamed).resume("t")
    assert [UNKNOWN in text for text in told(result)] == [True]
    assert paid.times == 1


async def test_a_removed_tool_does_not_make_it_an_unknown_tool(store: JournalStore) -> None:
    paid = Paid()
    await left_in_the_middle(store, paid)
    result = await agent(store).resume("t")
    assert [UNKNOWN in text for text in told(result)] == [True]


async def test_the_recorded_effect_counts(store: JournalStore) -> None:
    paid = Paid()
    await left_in_the_middle(store, paid)
    result = await agent(store, paid.tool("pure")).resume("t")
    assert [UNKNOWN in text for text in told(result)] == [True]
    assert paid.times == 1


class RetriesCalls(Hook):
    def on_tool_complete(self, event: ToolCompleteEvent) -> Retry | None:
        return Retry("again") if event.error else None


async def test_that_an_outcome_is_unknown_is_on_record_and_a_retry_does_not_pay_again(store: JournalStore) -> None:
    paid = Paid()
    await left_in_the_middle(store, paid)
    result = await agent(store, paid.tool("pure"), hooks=(RetriesCalls(),)).resume("t")
    [execution] = result.state.tool_executions
    assert execution.outcome_unknown
    assert ToolExecution(tool_name="pay") != execution == decode(encode(execution), ToolExecution)
    assert paid.times == 1


@pytest.mark.parametrize("effect", ["once", "pure"])
async def test_a_call_of_the_thread_whose_outcome_is_unknown_stays_so_for_later_turns(
    store: JournalStore, effect: Any
) -> None:
    paid = Paid()
    await left_in_the_middle(store, paid, idempotent="thread")
    await agent(store, paid.tool("once", idempotent="thread")).resume("t")
    again = agent(
        store,
        paid.tool(effect, idempotent="thread"),
        script=(call("pay", amount=5), "done"),
        hooks=(RetriesCalls(),),
    )
    result = await again.run("And again.", thread_id="t")
    assert [execution.outcome_unknown for execution in result.state.tool_executions] == [True]
    assert paid.times == 1


async def test_a_call_that_failed_in_its_body_has_an_outcome(store: JournalStore) -> None:
    @tool(name="pay")
    def pay() -> str:
        """Pay."""
        raise ValueError(f"{UNKNOWN}: says the tool itself")

    result = await agent(store, pay, script=(call("pay"), "done")).run("Pay.", thread_id="t")
    assert [execution.outcome_unknown for execution in result.state.tool_executions] == [False]


async def test_a_second_attempt_in_flight_is_unknown_though_its_hook_is_gone(store: JournalStore) -> None:
    entered: list[int] = []
    hangs = anyio.Event()

    @tool(name="pay")
    async def pay(amount: int) -> str:
        """Pay; the first time nothing happens."""
        entered.append(amount)
        if len(entered) == 1:
            raise RetryableToolError("busy")
        hangs.set()
        await anyio.sleep_forever()
        raise AssertionError

    first = agent(store, pay, script=(call("pay", amount=5),), hooks=(RetriesCalls(),))
    await cancel_when(hangs, lambda: first.run("Pay.", thread_id="t"))
    assert len(entered) == 2
    result = await agent(store, pay).resume("t")
    assert [UNKNOWN in text for text in told(result)] == [True]
    assert len(entered) == 2


async def test_a_second_attempt_in_flight_is_unknown_though_its_tool_is_gone(store: JournalStore) -> None:
    """The hook asks for the second attempt again, and there is nothing that it could run."""
    entered = anyio.Event()
    tries: list[int] = []

    @tool(name="pay", effect="keyed")
    async def pay(amount: int) -> str:
        """Pay; the first time nothing happens."""
        tries.append(amount)
        if len(tries) == 1:
            raise RetryableToolError("busy")
        entered.set()
        await anyio.sleep_forever()
        raise AssertionError

    first = agent(store, pay, script=(call("pay", amount=5),), hooks=(RetriesCalls(),))
    await cancel_when(entered, lambda: first.run("Pay.", thread_id="t"))
    result = await agent(store, hooks=(RetriesCalls(),)).resume("t")
    assert result.error is None
    assert [UNKNOWN in text for text in told(result)] == [True]


async def test_a_new_turn_after_a_second_attempt_in_flight(store: JournalStore) -> None:
    entered: list[int] = []
    hangs = anyio.Event()

    @tool(name="pay")
    async def pay(amount: int) -> str:
        """Pay; the first time nothing happens."""
        entered.append(amount)
        if len(entered) == 1:
            raise RetryableToolError("busy")
        hangs.set()
        await anyio.sleep_forever()
        raise AssertionError

    first = agent(store, pay, script=(call("pay", amount=5),), hooks=(RetriesCalls(),))
    await cancel_when(hangs, lambda: first.run("Pay.", thread_id="t"))
    result = await agent(store, pay).run("And now?", thread_id="t")
    assert [UNKNOWN in text for text in told(result)] == [True]


@pytest.mark.parametrize("effect", ["once", "keyed"])
async def test_a_fork_inherits_that_the_outcome_is_unknown(store: JournalStore, effect: str) -> None:
    paid = Paid()
    await left_in_the_middle(store, paid, effect=effect)
    name = await fork(store, "t", into="fork")
    result = await agent(store, paid.tool(effect)).resume(name)
    assert [UNKNOWN in text for text in told(result)] == [True]
    assert paid.times == 1


async def test_an_import_keeps_that_the_outcome_is_unknown(store: JournalStore) -> None:
    paid, elsewhere = Paid(), MemoryStore()
    await left_in_the_middle(store, paid)
    await import_thread(elsewhere, list(await export_thread(store, "t")))
    result = await agent(elsewhere, paid.tool()).resume("t")
    assert [UNKNOWN in text for text in told(result)] == [True]
    assert paid.times == 1


async def test_a_keyed_body_that_asked_is_not_told_as_not_run_in_a_new_turn(store: JournalStore) -> None:
    done: list[str] = []

    @tool(name="pay", effect="keyed")
    async def pay(amount: int, ctx: ToolContext[Any]) -> str:
        """Reserve, then ask."""
        done.append(ctx.idempotency_key)
        return f"said {ctx.interrupt('Sure?')}"

    asked = await agent(store, pay, script=(call("pay", amount=5),)).run("Pay.", thread_id="t")
    assert asked.interrupts
    result = await agent(store, pay).run("And now?", thread_id="t")
    assert [UNKNOWN in text for text in told(result)] == [True]


async def test_a_keyed_call_runs_again_with_the_key_that_was_recorded(store: JournalStore) -> None:
    """Also where an optional parameter was added, which makes its arguments another text."""
    paid = Paid()
    await left_in_the_middle(store, paid, effect="keyed", idempotent=True)

    @tool(name="pay", effect="keyed", idempotent=True)
    async def changed(amount: int, ctx: ToolContext[Any], currency: str = "EUR") -> str:
        """Pay."""
        return await paid.pay(ctx)

    result = await agent(store, changed).resume("t")
    assert told(result) == ["paid"]
    assert paid.keys[0] == paid.keys[1]
