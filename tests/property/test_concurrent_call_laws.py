"""Calls of one turn run side by side, whatever their bodies wait for: in order, within the limit, each on its own."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import anyio
import anyio.lowlevel
from hypothesis import given
from hypothesis import strategies as st

from locus import Agent, tool
from locus_testkit import ScriptedModel, call

mine: ContextVar[int] = ContextVar("mine", default=-1)

#: What a body does: compute without waiting, let others go on, be cut off in itself, wait for tasks of its own, fail.
KINDS = ("compute", "wait", "cut", "group", "fail")


class Bodies:
    """A tool that does what it is asked, and takes note of it."""

    def __init__(self) -> None:
        self.entered: list[int] = []
        self.seen: list[tuple[int, int]] = []
        self.now = self.most = 0

        @tool
        async def work(n: int, kinds: list[str]) -> str:
            """Work."""
            self.entered.append(n)
            self.now += 1
            self.most = max(self.most, self.now)
            self.seen.append((-1, mine.get()))
            mine.set(n)
            try:
                for kind in kinds:
                    await self.do(kind)
                    self.seen.append((n, mine.get()))
            finally:
                self.now -= 1
            return f"{n}"

        self.tool = work

    async def do(self, kind: str) -> None:
        if kind == "wait":
            await anyio.lowlevel.checkpoint()
        elif kind == "cut":
            with anyio.CancelScope() as scope:
                scope.cancel()
                await anyio.sleep_forever()
            assert scope.cancelled_caught
        elif kind == "group":
            async with anyio.create_task_group() as group:
                group.start_soon(self.look, mine.get())
        elif kind == "fail":
            raise ValueError("it failed")

    async def look(self, expected: int) -> None:
        self.seen.append((expected, mine.get()))
        await anyio.lowlevel.checkpoint()


bodies = st.lists(st.lists(st.sampled_from(KINDS), max_size=4), min_size=1, max_size=12)


@given(bodies, st.none() | st.integers(1, 5), st.sampled_from(["asyncio", "trio"]))
def test_each_body_runs_in_order_and_within_the_limit_and_sees_nothing_of_the_others(
    kinds: list[list[str]], at_once: int | None, backend: str
) -> None:
    made = Bodies()

    async def run() -> Any:
        calls = [call("work", n=n, kinds=each) for n, each in enumerate(kinds)]
        return await Agent(ScriptedModel(calls, "done"), tools=[made.tool], max_concurrent_tools=at_once).run("x")

    result = anyio.run(run, backend=backend)

    assert made.entered == list(range(len(kinds)))
    assert made.most <= (at_once or len(kinds))
    assert all(expected == found for expected, found in made.seen)
    executions = result.state.tool_executions
    assert [done.error is not None for done in executions] == ["fail" in each for each in kinds]
    assert [done.result for done in executions if done.error is None] == [
        f"{n}" for n, each in enumerate(kinds) if "fail" not in each
    ]


@given(st.lists(st.sampled_from(["compute", "wait"]), min_size=2, max_size=12), st.sampled_from(["asyncio", "trio"]))
def test_bodies_that_wait_for_the_last_one_are_all_under_way_at_once(kinds: list[str], backend: str) -> None:
    entered: list[int] = []
    all_entered: list[anyio.Event] = []

    @tool
    async def meet(n: int, waits: bool) -> str:
        """Meet the others."""
        entered.append(n)
        if n == len(kinds) - 1:
            all_entered[0].set()
        elif waits:
            await all_entered[0].wait()
        return f"{n}"

    async def run() -> Any:
        all_entered.append(anyio.Event())
        calls = [call("meet", n=n, waits=each == "wait") for n, each in enumerate(kinds)]
        with anyio.fail_after(60):
            return await Agent(ScriptedModel(calls, "done"), tools=[meet], max_concurrent_tools=None).run("x")

    result = anyio.run(run, backend=backend)

    assert entered == list(range(len(kinds)))
    assert [done.result for done in result.state.tool_executions] == [f"{n}" for n in range(len(kinds))]
