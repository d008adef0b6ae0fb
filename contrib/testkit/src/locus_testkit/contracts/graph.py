"""`GraphContract`: what graphs need of the store that keeps their threads, one test a promise.

A store that keeps `JournalStoreContract` keeps these; here they are shown with the writes that a graph makes: several
tasks at the same time, a sub-graph with a thread of its own, failures and questions that leave a super-step half done.
"""

from __future__ import annotations

import operator
from collections import Counter
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from locus.core.errors import NothingToResume
from locus.journal import JournalStore
from locus.plugin import Lazy
from locus_testkit.contracts.base import Contract
from locus_testkit.crashes import CrashingStore, is_crash

__all__ = ["GraphContract"]

graphs: Any = Lazy("locus.multiagent.graph")

#: How often a run is answered, at the most, about the step in which its process died.
_ANSWERS = 4

#: What the graph of the promises comes to.
_WANTED = {"log": ["in", "plan", "work2", "work1", "work0", "inner", "inner"], "turns": 2}


@pytest.mark.anyio
class GraphContract(Contract):
    """The promises of a store to graphs. Subclass it and say how yours is opened; ``locus-plugin-graph`` must be there.

    Example::

        class TestGraphs(GraphContract):
            def open_store(self, folder):
                return MyStore(folder / "journal.db")
    """

    def open_store(self, folder: Path) -> AbstractAsyncContextManager[JournalStore]:
        """A store for one test, empty.

        Args:
            folder: an empty folder of the test's own.
        """
        raise NotImplementedError

    def make_graph(self) -> Any:
        """An empty `StateGraph`, whose lists under ``log`` are appended."""
        return graphs.StateGraph(reducers={"log": operator.add}, effect="pure")

    def _build(self, ran: Counter[str], fails: Counter[str] | None = None, *, asks: bool = False) -> Any:
        """Sends that finish in reverse, and a cycle through a sub-graph; what ran is counted."""

        async def plan(values: dict[str, Any]) -> dict[str, Any]:
            ran["plan"] += 1
            return {"log": ["plan"]}

        async def work(values: dict[str, Any], ctx: Any) -> dict[str, Any]:
            for _ in range(values["n"]):
                await anyio.lowlevel.checkpoint()

            async def count() -> str:
                ran[f"work{values['n']}"] += 1
                return f"work{values['n']}"

            if fails and fails[f"work{values['n']}"]:
                fails[f"work{values['n']}"] -= 1
                raise OSError("not now")
            return {"log": [ctx.interrupt(f"{values['n']}?") if asks else await ctx.step("count", count)]}

        async def inner(values: dict[str, Any]) -> dict[str, Any]:
            ran["inner"] += 1
            return {"log": ["inner"], "turns": values.get("turns", 0) + 1}

        start, end = graphs.START, graphs.END
        sub = self.make_graph().add_node("inner", inner).add_edge(start, "inner", end).compile()
        graph = self.make_graph().add_node("plan", plan).add_node("work", work).add_node("sub", sub)
        graph.add_edge(start, "plan").add_edge("work", "sub")
        graph.add_conditional_edges("plan", lambda values: [graphs.Send("work", {"n": n}) for n in (2, 1, 0)], ["work"])
        return graph.add_conditional_edges("sub", lambda values: end if values["turns"] > 1 else "sub", ["sub", end])

    # -- the promises -----------------------------------------------------------------------------

    async def test_values_come_back_in_the_order_of_the_frontier(self, tmp_path: Path) -> None:
        """Updates are merged in the order in which tasks were due, whatever finished first, and are read back."""
        async with self.open_store(tmp_path) as store:
            app = self._build(Counter()).compile(checkpointer=store)
            result = await app.run({"log": ["in"]}, thread_id="t")
            assert result.stop_reason == "GraphEnd"
            assert result.values == _WANTED
            assert await app.state_at("t", len(await app.history("t"))) == _WANTED

    async def test_crash_at_any_write_changes_nothing(self, tmp_path: Path) -> None:
        """A process that dies before or after any of its writes is followed by one that comes to the same values."""
        at, deaths = 0, 1
        while deaths:
            at, deaths = at + 1, 0
            for stored in (False, True):
                folder = tmp_path / f"{at}-{stored}"
                folder.mkdir()
                async with self.open_store(folder) as opened:
                    store, ran = CrashingStore(at, stored=stored, store=opened), Counter[str]()
                    values = await self._outlive(self._build(ran).compile(checkpointer=store), store)
                assert values == _WANTED, f"write {at}, {'stored' if stored else 'lost'}"
                # A step in which the process died is made again, for the person who was asked said so.
                assert max(ran[f"work{n}"] for n in range(3)) <= 1 + store.crashes
                deaths += store.crashes

    async def _outlive(self, app: Any, store: CrashingStore) -> Any:
        try:
            return (await app.run({"log": ["in"]}, thread_id="t")).values
        except BaseException as error:
            if not is_crash(error):
                raise
        await store.revive()
        try:
            result = await app.resume("t")
            for _ in range(_ANSWERS):  # the outcome of a step in which it died is unknown
                if not result.interrupts:
                    break
                result = await app.resume("t", {asked.interrupt_id: "run again" for asked in result.interrupts})
            return result.values
        except NothingToResume:
            if await store.read("t"):
                return await app.state_at("t", len(await app.history("t")))
        return (await app.run({"log": ["in"]}, thread_id="t")).values

    async def test_finished_tasks_do_not_run_again_after_a_failure(self, tmp_path: Path) -> None:
        """A task that fails leaves the run open; those beside it have their results on record."""
        ran: Counter[str] = Counter()
        async with self.open_store(tmp_path) as store:
            app = self._build(ran, Counter(work1=2)).compile(checkpointer=store)
            result = await app.run({"log": ["in"]}, thread_id="t")
            tries = 1
            while result.is_open and tries < 9:
                tries, result = tries + 1, await app.resume("t")
        assert (tries, result.values) == (3, _WANTED)
        assert ran == {"plan": 1, "work0": 1, "work1": 1, "work2": 1, "inner": 2}

    async def test_questions_are_answered_in_any_order(self, tmp_path: Path) -> None:
        """Each task has its own question, and an answer for one of them is kept while others wait."""
        async with self.open_store(tmp_path) as store:
            app = self._build(Counter(), asks=True).compile(checkpointer=store)
            result = await app.run({"log": ["in"]}, thread_id="t")
            assert sorted(asked.question for asked in result.interrupts) == ["0?", "1?", "2?"]
            for asked in (result.interrupts[1], result.interrupts[2], result.interrupts[0]):
                result = await app.resume("t", {asked.interrupt_id: f"work{asked.question[0]}"})
        assert (result.values, result.stop_reason) == (_WANTED, "GraphEnd")

    async def test_fork_goes_on_by_itself_and_a_replay_finds_no_difference(self, tmp_path: Path) -> None:
        """A thread that begins like another one comes to its own end; a replay reads what was recorded."""
        ran: Counter[str] = Counter()
        async with self.open_store(tmp_path) as store:
            app = self._build(ran).compile(checkpointer=store)
            await app.run({"log": ["in"]}, thread_id="t")
            other = await app.fork("t", at=2)
            before = ran.copy()
            assert (await app.resume(other)).values == _WANTED
            assert ran - before == {"work0": 1, "work1": 1, "work2": 1, "inner": 2}
            again = ran.copy()
            assert (await app.replay("t")).difference is None
            assert ran == again
