"""A run that kills its worker each time is given up by workers after so many attempts, and by nobody else."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

import locus_plugin_timetravel as timetravel
from locus import Agent, ToolContext, tool
from locus.core.errors import ConfigError, DeadLetter, StoreError
from locus.core.journal import Body, Outcome, Paused, Resumed
from locus.core.termination import MaxIterations
from locus.journal import MemoryStore
from locus.journal.store import Appended, Claim, JournalStore
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Dying:
    """A store whose process dies right before a certain step of the run is written."""

    def __init__(self, store: Any, step: str = "0/execute/0") -> None:
        self._store, self.step = store, step

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        if any(isinstance(body, Outcome) and str(body.step_id) == self.step for body in bodies):
            raise OSError("killed")
        got: Appended = await self._store.append(claim, bodies)
        return got


@pytest.fixture(params=[MemoryStore, partial(MemoryStore, history=False)])
def dying(request: pytest.FixtureRequest) -> Dying:
    return Dying(request.param())


ENTERED: list[str] = []


@tool(effect="pure")
async def poison() -> str:
    """Kills whoever calls it."""
    ENTERED.append("poison")
    return "survived"


@tool(effect="pure")
async def harmless() -> str:
    """Kills nobody."""
    return "fine"


def agent(store: Any, *answers: Any) -> Agent[None, str]:
    ENTERED.clear()
    script = answers or (call("poison"), "done")
    return Agent(ScriptedModel(*script), tools=[poison, harmless], checkpointer=store, tool_execution="sequential")


async def dies(run: Any) -> None:
    with pytest.raises(StoreError, match="killed"):
        await run


async def test_after_so_many_attempts_a_worker_sets_the_run_aside_with_the_cause(dying: Dying) -> None:
    one = agent(dying)
    await dies(one.run("x", thread_id="t"))
    for _ in range(2):
        await dies(one.resume("t", max_attempts=3))

    with pytest.raises(DeadLetter) as caught:
        await one.resume("t", max_attempts=3)

    assert caught.value.thread_id == "t"
    assert caught.value.cause == "3 attempts in a row broke off in execute of iteration 1, calling poison"
    assert "is set aside: 3 attempts in a row" in str(caught.value)
    assert len(ENTERED) == 3
    newest = (await dying.read("t"))[-1].body
    assert isinstance(newest, Paused)
    assert (newest.kind, newest.reason) == ("dead_letter", caught.value.cause)


async def test_it_stays_set_aside_for_workers_and_nothing_more_is_written(dying: Dying) -> None:
    one = agent(dying)
    await dies(one.run("x", thread_id="t"))
    for _ in range(3):
        with pytest.raises(DeadLetter, match="the attempt broke off in execute"):
            await one.resume("t", max_attempts=1)

    (told,) = [entry for entry in await dying.read("t") if isinstance(entry.body, Paused)]
    assert told == (await dying.read("t"))[-1]


async def test_a_person_can_continue_it_nevertheless(dying: Dying) -> None:
    one = agent(dying)
    await dies(one.run("x", thread_id="t"))
    with pytest.raises(DeadLetter):
        await one.resume("t", max_attempts=1)

    dying.step = "mended"
    result = await one.resume("t")

    assert (result.text, result.stop_reason) == ("done", "NoToolCalls")


async def test_a_person_is_never_refused(dying: Dying) -> None:
    one = agent(dying)
    await dies(one.run("x", thread_id="t"))
    for _ in range(7):
        await dies(one.resume("t"))
    assert not any(isinstance(entry.body, Paused) for entry in await dying.read("t"))


async def test_workers_begin_to_count_anew_once_a_person_went_on(dying: Dying) -> None:
    one = agent(dying)
    await dies(one.run("x", thread_id="t"))
    with pytest.raises(DeadLetter):
        await one.resume("t", max_attempts=1)
    await dies(one.resume("t"))

    await dies(one.resume("t", max_attempts=2))
    with pytest.raises(DeadLetter, match="2 attempts in a row"):
        await one.resume("t", max_attempts=2)


async def test_attempts_at_different_places_are_not_added_up() -> None:
    dying = Dying(MemoryStore())
    one = agent(dying, [call("harmless"), call("poison")], "done")
    await dies(one.run("x", thread_id="t"))
    await dies(one.resume("t", max_attempts=2))
    dying.step = "0/execute/1"  # the first call is on record now
    await dies(one.resume("t"))

    await dies(one.resume("t", max_attempts=2))
    with pytest.raises(DeadLetter, match="2 attempts in a row broke off in execute of iteration 1, calling poison"):
        await one.resume("t", max_attempts=2)


async def test_what_waited_for_a_person_or_was_cancelled_is_not_an_attempt() -> None:
    store = MemoryStore()

    @tool
    def confirm(ctx: ToolContext[None]) -> str:
        """Ask."""
        return str(ctx.interrupt("Sure?"))

    one = Agent(ScriptedModel(call("confirm"), "done"), tools=[confirm], checkpointer=store)
    await one.run("x", thread_id="t")
    for _ in range(3):
        assert (await one.resume("t", max_attempts=1)).stop_reason == "Interrupted"
    assert (await one.resume("t", "yes", max_attempts=1)).text == "done"


async def test_what_was_forked_has_not_been_tried_yet() -> None:
    dying = Dying(MemoryStore())
    one = agent(dying)
    await dies(one.run("x", thread_id="t"))
    await timetravel.fork(one, "t", into="fork")
    dying.step = "mended"
    assert (await one.resume("fork", max_attempts=1)).text == "done"


async def test_a_limit_of_the_segment_is_not_progress() -> None:
    """It is written anew by each attempt."""
    dying = Dying(MemoryStore())
    one = agent(dying)
    limit = MaxIterations(9)
    await dies(one.run("x", thread_id="t", termination=limit))
    await dies(one.resume("t", max_attempts=2, termination=limit))
    with pytest.raises(DeadLetter, match="2 attempts"):
        await one.resume("t", max_attempts=2, termination=limit)


async def test_a_model_that_kills_is_found_too() -> None:
    dying = Dying(MemoryStore(), "0/think/0")
    one = agent(dying, *["x"] * 9)
    await dies(one.run("x", thread_id="t"))
    await dies(one.resume("t", max_attempts=2))
    with pytest.raises(DeadLetter, match=r"2 attempts in a row broke off in think of iteration 1; fix the cause"):
        await one.resume("t", max_attempts=2)


async def test_no_worker_is_offered_it_any_more() -> None:
    store = MemoryStore()
    dying = Dying(store)
    one = agent(dying)
    await dies(one.run("x", thread_id="t"))
    await store.release(await store.claim("t", "an engine"), NOON)
    assert await store.next_ready(NOON) == "t"

    with pytest.raises(DeadLetter):
        await one.resume("t", max_attempts=1)

    assert await store.next_ready(NOON) is None


async def test_each_attempt_counts_whether_it_wrote_anything_new_or_not() -> None:
    """The first attempt leaves a transition, each later one the entry that it begins with."""
    dying = Dying(MemoryStore())
    one = agent(dying)
    await dies(one.run("x", thread_id="t"))
    for _ in range(4):
        await dies(one.resume("t", max_attempts=5))
    with pytest.raises(DeadLetter, match="5 attempts"):
        await one.resume("t", max_attempts=5)
    bodies = [entry.body for entry in await dying.read("t")]
    assert [body.segment for body in bodies if isinstance(body, Resumed)] == [1, 2, 3, 4]


@pytest.mark.parametrize("wrong", [0, -1, True, 2.0, "3"])
async def test_an_invalid_number_of_attempts_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="max_attempts must be an integer of at least 1, or None for no limit, got"):
        agent(MemoryStore()).resume("t", max_attempts=wrong)


@pytest.mark.parametrize("make", [MemoryStore, partial(MemoryStore, history=False)])
async def test_threads_are_listed_by_what_was_done_last(make: Any) -> None:
    """Not by who took his thread last: a long run is at work all the time."""
    store: JournalStore = make()
    order: list[list[str]] = []

    @tool
    async def meanwhile() -> str:
        """Another run, from its beginning to its end, and the list after the next step of this one."""
        await Agent(ScriptedModel("done"), checkpointer=store).run("x", thread_id="short")
        return "ok"

    @tool
    async def look() -> str:
        """The list."""
        order.append([info.thread_id for info in await store.threads()])
        return "ok"

    model = ScriptedModel(call("meanwhile"), call("look"), "done")
    await Agent(model, tools=[meanwhile, look], checkpointer=store).run("x", thread_id="long")
    order.append([info.thread_id for info in await store.threads()])

    assert order == [["long", "short"], ["long", "short"]]
