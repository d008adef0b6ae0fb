"""`diff`: two runs side by side, and where they part."""

from __future__ import annotations

from typing import Any

import pytest

import locus_plugin_timetravel as timetravel
from locus import Agent, Usage
from locus.core.errors import InputError, NothingToResume
from locus.core.termination import MaxIterations
from locus.journal import MemoryStore
from locus_testkit import call

from .kit import made

pytestmark = pytest.mark.anyio

SCRIPT: list[Any] = [call("add", a=1), [call("add", a=2), call("add", a="x")], "done"]


async def ran(store: MemoryStore, thread: str, *script: Any, **options: Any) -> Any:
    return await made(store, *script, **options).run("Add.", thread_id=thread)


async def test_two_runs_that_did_the_same_are_the_same() -> None:
    store = MemoryStore()
    a, b = await ran(store, "a", *SCRIPT), await ran(store, "b", *SCRIPT)
    agent = made(store)
    assert a.run_id != b.run_id
    for found in (
        await timetravel.diff_threads(agent, "a", "b"),
        timetravel.diff(a, b),
        timetravel.diff(await timetravel.history(agent, "a"), b),
    ):
        assert found.same
        assert found.first is None
        assert str(found).endswith("no difference")
    found = await timetravel.diff_threads(agent, "a", "b")
    assert len(found.rows) == 7
    assert all(row.same for row in found.rows)
    assert found.usage_a == found.usage_b == Usage(prompt_tokens=30, completion_tokens=15)


async def test_the_order_of_arguments_makes_no_difference_and_the_end_of_a_long_one_does() -> None:
    store, long = MemoryStore(), "x" * 100
    await ran(store, "a", call("add", a=1, b=2), "done")
    await ran(store, "b", call("add", b=2, a=1), "done")
    await ran(store, "c", call("add", a=f"{long}c"), "done")
    await ran(store, "d", call("add", a=f"{long}d"), "done")

    agent = made(store)

    assert (await timetravel.diff_threads(agent, "a", "b")).same
    found = (await timetravel.diff_threads(agent, "c", "d")).first
    assert found is not None
    assert found.a is not None
    assert found.a.node == "think"


async def test_the_first_difference_is_marked() -> None:
    store = MemoryStore()
    await ran(store, "a", *SCRIPT)
    await ran(store, "b", SCRIPT[0], call("add", a=3), "done, too")
    found = await timetravel.diff_threads(made(store), "a", "b")
    assert not found.same
    assert [row.same for row in found.rows] == [True, True, True, False, False, False, True]
    first = found.first
    assert first is found.rows[3]
    assert first.a is not None
    assert first.b is not None
    assert (first.a.node, first.a.n, first.a.asked) == ("think", 4, ("add(a=2)", "add(a='x')"))
    assert (first.b.node, first.b.n, first.b.asked) == ("think", 4, ("add(a=3)",))
    lines = str(found).splitlines()
    assert lines[0].split() == ["thread", "a", "thread", "b"]
    assert [line[0] for line in lines[2:-1]] == [" ", " ", " ", ">", "*", "*", " "]
    assert "(the same)" in lines[2]
    assert "add(a=3, b=1) = '4'" in lines[6]
    assert lines[-1] == "> is where they part"


async def test_one_run_may_be_longer() -> None:
    store = MemoryStore()
    await ran(store, "a", *SCRIPT)
    await ran(store, "b", *SCRIPT, termination=MaxIterations(1))
    found = await timetravel.diff_threads(made(store), "a", "b")
    assert [(row.a is None, row.b is None) for row in found.rows] == [(False, False)] * 4 + [(False, True)] * 3
    first = found.first
    assert first is not None
    # Both ran the same calls; where they went from there is not the same.
    assert first is found.rows[2]
    assert first.a is not None
    assert first.b is not None
    assert (first.a.calls, first.a.next_node) == (first.b.calls, "think")
    assert first.b.next_node == "terminate"
    assert str(found).splitlines()[-2].endswith("  -")


async def test_a_fork_parts_from_its_origin_where_it_does_something_else() -> None:
    store = MemoryStore()
    agent = made(store, call("add", a=1), call("add", a=2), "done", call("add", a=2), "done otherwise")
    await agent.run("x", thread_id="t")
    fork = await timetravel.fork(agent, "t", at=3)
    same = await timetravel.diff_threads(agent, "t", fork)
    # It has not gone on yet: nothing of what it has differs.
    assert all(row.same for row in same.rows[:3])
    await agent.resume(fork)
    found = await timetravel.diff_threads(agent, "t", fork)
    first = found.first
    assert first is not None
    assert first.a is not None
    assert first.b is not None
    assert (first.a.n, first.b.n) == (6, 7)
    assert (first.a.said, first.b.said) == (("done",), ("done otherwise",))


async def test_results_are_compared_by_their_last_run() -> None:
    store = MemoryStore()
    await ran(store, "a", "hello")
    a = await made(store, *SCRIPT).run("Add.", thread_id="a")
    b = await made(None, SCRIPT[0], "done").run("Add.")
    found = timetravel.diff(a, b)
    # What one of them did in between stands by itself; both come to the same answer.
    assert [(row.same, row.b is None) for row in found.rows] == [
        (True, False),
        (True, False),
        (True, False),
        (False, True),
        (False, True),
        (True, False),
    ]
    assert found.a == f"run {a.run_id[:8]} on a"
    assert (found.usage_a.total_tokens, found.usage_b.total_tokens) == (45, 30)
    assert timetravel.diff(b, b).same


async def test_ids_times_and_what_was_counted_are_not_differences() -> None:
    store = MemoryStore()
    await ran(store, "a", *SCRIPT)
    model = Agent(
        made(store, *SCRIPT).runtime.model, tools=made(store).runtime.tools, checkpointer=store, name="another"
    )
    await model.run("Add.", thread_id="b")
    assert (await timetravel.diff_threads(model, "a", "b")).same


async def test_only_runs_can_be_compared() -> None:
    store = MemoryStore()
    result = await ran(store, "a", "hello")
    with pytest.raises(InputError, match=r"await diff_threads\(agent, thread_a, thread_b\)"):
        timetravel.diff(result, "a")  # type: ignore[arg-type]
    with pytest.raises(NothingToResume):
        await timetravel.diff_threads(made(store), "a", "nowhere")


async def test_long_lines_are_cut_for_people_only() -> None:
    store = MemoryStore()
    await ran(store, "a", "x" * 500)
    await ran(store, "b", "x" * 500 + "y")
    found = await timetravel.diff_threads(made(store), "a", "b")
    assert not found.same
    assert max(map(len, str(found).splitlines())) < 140
