"""The laws of a replay: the code that made a journal finds no difference in it, and other code does."""

from __future__ import annotations

import json
from typing import Any, Literal

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.breaks import breaks
from tests.property.loaded_world import Load, Loaded, loads
from tests.property.loop_world import awkward_scripts
from tests.property.test_loop_laws import Moody, Ran
from tests.property.test_resume_laws import Case, scripts

import locus_plugin_timetravel as timetravel
from locus import Agent, Cancel, Event, Hook
from locus.core.journal import entry_from_json, entry_to_json
from locus.journal import Appended, JournalStore, MemoryStore
from locus_plugin_timetravel import Replay, history
from locus_testkit import Turn

both_backends = pytest.mark.parametrize("backend", ["asyncio", "trio"])
modes = st.sampled_from(["concurrent", "sequential"])
ids = st.sampled_from(["unique", "per_turn", "same"])
Mode = Literal["concurrent", "sequential"]


async def as_from_disk(store: JournalStore, thread_id: str) -> JournalStore:
    """Another store with the same thread, every entry through its JSON form."""
    bodies = [entry_from_json(json.loads(json.dumps(entry_to_json(e.body)))) for e in await store.read(thread_id)]
    other = MemoryStore()
    claim = await other.claim(thread_id, "w")
    assert await other.append(claim, bodies) is Appended.OK
    await other.release(claim)
    return other


class Whim(Hook):
    """Cancels the run at the event of a generated number."""

    def __init__(self, at: int) -> None:
        self.left = at

    def on_event(self, event: Event) -> Cancel | None:
        self.left -= 1
        return Cancel("a whim") if self.left == 0 else None


async def replayed(ran: Ran) -> Replay:
    """A replay of what ran; it asks nothing of the world."""
    asked, entered, told = len(ran.model.requests), sum(ran.world.entered.values()), len(ran.recorder.events)
    before = await ran.store.read("t")
    found = await timetravel.replay(ran.agent, "t")
    assert len(ran.model.requests) == asked
    assert sum(ran.world.entered.values()) == entered
    assert len(ran.recorder.events) == told
    assert await ran.store.read("t") == before
    return found


def same_agent_other_store(ran: Ran, store: JournalStore, mode: Mode, limit: int = 6) -> Agent[Any, Any]:
    return Agent[Any, Any](
        ran.model, tools=ran.world.tools(), tool_execution=mode, max_iterations=limit, checkpointer=store
    )


@both_backends
@given(
    script=awkward_scripts(max_turns=3),
    mode=modes,
    ids=ids,
    moods=st.lists(st.booleans(), max_size=40),
    whim=st.integers(0, 40),
)
def test_a_replay_of_the_same_agent_finds_nothing(
    backend: str, script: list[Turn], mode: Mode, ids: Any, moods: list[bool], whim: int
) -> None:
    async def main() -> None:
        ran = Ran(script, mode, ids, Moody(moods), Whim(whim))
        await ran.awaited()
        found = await replayed(ran)
        assert found, str(found)
        assert found.checked == len(await timetravel.history(ran.agent, "t"))
        again = await timetravel.replay(same_agent_other_store(ran, await as_from_disk(ran.store, "t"), mode), "t")
        assert again, str(again)

    anyio.run(main, backend=backend)


class Watched(Case):
    """Replays the thread after each of its segments, wherever that broke off."""

    async def segment(self, plan: Any, answers: Any) -> Any:
        result = await super().segment(plan, answers)
        if await self.begun():
            entered = {name: dict(seen) for name, seen in self.world.entered.items()}
            told = len(self.recorder.events)
            found = await timetravel.replay(self.agent(), "t")
            assert found, str(found)
            assert entered == {name: dict(seen) for name, seen in self.world.entered.items()}
            assert told == len(self.recorder.events)
        return result


@both_backends
@given(script=scripts(), mode=modes, plans=st.lists(breaks, max_size=4))
def test_a_run_that_broke_off_anywhere_is_replayed_as_far_as_it_got(
    backend: str, script: list[Turn], mode: Mode, plans: list[Any]
) -> None:
    anyio.run(Watched(script, mode).whole, plans, backend=backend)


@both_backends
@given(load=loads())
def test_whatever_an_agent_has_its_replay_finds_nothing(backend: str, load: Load) -> None:
    async def main() -> None:
        loaded, store = Loaded(load), MemoryStore()
        await loaded.run(store)
        asked = len(loaded.model.requests), len(loaded.judge.requests), sum(loaded.world.entered.values())
        found = await timetravel.replay(loaded.agent(store), "t")
        assert found, f"{found}\n{await history(store, 't')}"
        again = await timetravel.replay(loaded.agent(await as_from_disk(store, "t")), "t")
        assert again, str(again)
        assert asked == (
            len(loaded.model.requests),
            len(loaded.judge.requests),
            sum(loaded.world.entered.values()),
        )

    anyio.run(main, backend=backend)
