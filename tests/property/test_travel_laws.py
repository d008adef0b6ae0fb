"""The laws of time travel: a history is its journal, a fork is a thread, a thread is text, and a rule is a rule."""

from __future__ import annotations

from typing import Any, Literal

import anyio
import pytest
from hypothesis import assume, given
from hypothesis import event as note
from hypothesis import strategies as st
from tests.loop.kit import assert_valid_history
from tests.property.breaks import breaks
from tests.property.loaded_world import Load, Loaded, loads
from tests.property.loop_world import awkward_scripts
from tests.property.test_loop_laws import Ran
from tests.property.test_resume_laws import Case, scripts

import locus_plugin_timetravel as timetravel
from locus import Agent, ModelSettings
from locus.core.journal import BLANK, END, FORK, START, Outcome, fold
from locus.core.termination import MaxIterations
from locus.journal import JournalStore, MemoryStore
from locus_plugin_timetravel import diff, export_thread, fork, history, import_thread
from locus_testkit import ScriptedModel, Turn

both_backends = pytest.mark.parametrize("backend", ["asyncio", "trio"])
modes = st.sampled_from(["concurrent", "sequential"])
Mode = Literal["concurrent", "sequential"]


async def ran(load: Load) -> tuple[Loaded, MemoryStore]:
    loaded, store = Loaded(load), MemoryStore()
    await loaded.run(store)
    return loaded, store


# -- histories ------------------------------------------------------------------------------------------


@both_backends
@given(load=loads(), data=st.data())
def test_a_history_is_what_the_journal_folds_to(backend: str, load: Load, data: Any) -> None:
    async def main() -> None:
        _, store = await ran(load)
        past, entries = await history(store, "t"), await store.read("t")
        bodies = [e.body for e in entries]
        for moment in data.draw(st.permutations(list(past))):
            state = moment.state
            assert state == fold(BLANK, bodies[: moment.entry])
            assert (state.updated_at, state.run_id) == (moment.at, moment.run_id)
        assert [m.n for m in past] == list(range(1, len(past) + 1))
        # Every token is spent once, by the transition that the state has it from.
        for run in past.runs:
            spent = sum(m.usage.total_tokens for m in run)
            assert spent == run[-1].state.total_tokens_used
            assert sum((m.calls for m in run), ()) == run[-1].state.tool_executions
        assert past.usage.total_tokens == sum(run[-1].state.total_tokens_used for run in past.runs)
        assert all(m.node == START for m in past if m in [run[0] for run in past.runs])

    anyio.run(main, backend=backend)


# -- forks ----------------------------------------------------------------------------------------------


@both_backends
@given(script=awkward_scripts(max_turns=3), mode=modes)
def test_a_fork_anywhere_continues_to_a_valid_end(backend: str, script: list[Turn], mode: Mode) -> None:
    async def main() -> None:
        case = Ran(script, mode, "unique")
        await case.awaited()
        past = await history(case.store, "t")
        keys = {case.result.run_id}
        for moment in past:
            name = await fork(case.store, "t", at=moment.n)
            forked = await history(case.store, name)
            assert list(forked)[: moment.n] == list(past)[: moment.n]
            assert forked.at(moment.n).state == moment.state
            if moment.next_node == END:
                assert list(forked) == list(past)[: moment.n]
                assert forked.state == case.result.state
                continue
            result = await case.agent.resume(name)
            assert_valid_history(result.state.messages)
            assert result.run_id not in keys
            keys.add(result.run_id)
            assert result.stop_reason in ("NoToolCalls", "EmptyAnswer", "MaxIterations", "ModelError")
            assert await timetravel.replay(case.agent, name)
            assert [m.node for m in await history(case.store, name)].count(FORK) == 1
            # The beginning is shared, and only the beginning.
            apart = await timetravel.diff_threads(case.agent, "t", name)
            kept = [row.same for row in apart.rows[: moment.n]]
            assert all(kept)
        assert list(await history(case.store, "t")) == list(past)
        assert await timetravel.replay(case.agent, "t")

    anyio.run(main, backend=backend)


# -- text -----------------------------------------------------------------------------------------------


async def carried(store: JournalStore) -> MemoryStore:
    other = MemoryStore()
    assert await import_thread(other, await export_thread(store, "t"), trusted=True) == "t"
    return other


@both_backends
@given(load=loads())
def test_a_thread_that_was_text_is_the_same_thread(backend: str, load: Load) -> None:
    async def main() -> None:
        _, store = await ran(load)
        other = await carried(store)
        assert [e.body for e in await other.read("t")] == [e.body for e in await store.read("t")]
        assert await history(other, "t") == await history(store, "t")
        assert (await history(other, "t")).state == (await history(store, "t")).state
        assert diff(await history(store, "t"), await history(other, "t")).same
        assert next(await export_thread(other, "t")) == next(await export_thread(store, "t"))

    anyio.run(main, backend=backend)


class Moved(Case):
    """A run that is carried to another store between any two of its segments."""

    async def segment(self, plan: Any, answers: Any) -> Any:
        result = await super().segment(plan, answers)
        if await self.begun():
            before = await self.store.read("t")
            moved = type(self.store)()
            await import_thread(moved, await export_thread(self.store, "t"), trusted=True)
            assert [e.body for e in await moved.read("t")] == [e.body for e in before]
            self.store = moved
        return result


@both_backends
@given(script=scripts(), mode=modes, plans=st.lists(breaks, max_size=3))
def test_a_run_continues_wherever_it_is_carried(backend: str, script: list[Turn], mode: Mode, plans: list[Any]) -> None:
    async def main() -> None:
        stayed, moved = Case(script, mode), Moved(script, mode)
        wanted, got = await stayed.whole(plans), await moved.whole(plans)
        assert [m.role for m in got.messages] == [m.role for m in wanted.messages]
        # Under the same keys: nothing happens twice because it was carried.
        for name in ("charge", "slow", "book"):
            assert max(moved.world.entered.get(name, {"": 0}).values()) <= 1

    anyio.run(main, backend=backend)


# -- rules ----------------------------------------------------------------------------------------------


@both_backends
@given(load=loads())
def test_a_run_stops_where_its_own_rule_says(backend: str, load: Load) -> None:
    assume(not load.limits and not load.routes)

    async def main() -> None:
        loaded, store = await ran(load)
        agent = loaded.agent(store)
        last = (await history(store, "t")).runs[-1]
        turned = next(m for m in last if m.next_node == "terminate")
        for found in (
            await timetravel.what_if(agent, "t"),
            await timetravel.what_if(agent, "t", termination=agent.condition),
        ):
            note(found.reason)
            assert (found.verdict, found.n, found.reason) == ("same", turned.n, turned.why), f"{found}"
            assert found.satisfied == turned.satisfied
            assert found.usage.total_tokens + found.saved.total_tokens == last[-1].state.total_tokens_used

    anyio.run(main, backend=backend)


@both_backends
@given(script=awkward_scripts(max_turns=4), mode=modes, limit=st.integers(1, 7))
def test_a_rule_stops_a_record_where_it_would_stop_the_run(
    backend: str, script: list[Turn], mode: Mode, limit: int
) -> None:
    async def main() -> None:
        loose, tight = Ran(script, mode, "unique"), Ran(script, mode, "unique", limit=limit)
        await loose.awaited()
        await tight.awaited()
        found = await timetravel.what_if(loose.agent, "t", termination=MaxIterations(limit))
        note(found.verdict)
        if limit > 6:
            assert (found.verdict, found.reason) in (
                ("beyond", "think"),
                ("same", "NoToolCalls"),
                ("same", "ModelError"),
            )
            return
        assert (found.reason, found.usage) == (tight.result.stop_reason, tight.result.usage)
        # And a replay under that rule parts from the record there, if anywhere.
        other = Agent[Any, Any](
            loose.model,
            tools=loose.world.tools(),
            tool_execution=mode,
            max_iterations=limit,
            checkpointer=loose.store,
        )
        replay = await timetravel.replay(other, "t")
        assert replay.ok == (found.verdict == "same" and found.reason == loose.result.stop_reason)
        if replay.difference is not None:
            assert (replay.difference.n, replay.difference.step) == (found.n, "the next node")

    anyio.run(main, backend=backend)


@both_backends
@given(load=loads(), change=st.sampled_from(["prompt", "tools", "model", "settings"]))
def test_what_was_changed_is_found(backend: str, load: Load, change: str) -> None:
    async def main() -> None:
        loaded, store = await ran(load)
        past = await history(store, "t")
        answered = any(isinstance(e.body, Outcome) and e.body.step_id.node == "think" for e in await store.read("t"))
        assume(answered)
        changes: dict[str, dict[str, Any]] = {
            "prompt": {"system_prompt": "Other."},
            "tools": {"tools": []},
            "model": {"model": ScriptedModel(name="a:nother")},
            "settings": {"model_settings": ModelSettings(temperature=0.5)},
        }
        replay = await timetravel.replay(loaded.agent(store, **changes[change]), "t")
        assert not replay
        assert replay.difference is not None
        assert replay.checked < len(past)
        if change == "prompt":
            assert (replay.difference.n, replay.difference.step) == (1, "the system prompt")
        elif change != "tools":
            assert "/think/0" in replay.difference.step

    anyio.run(main, backend=backend)
