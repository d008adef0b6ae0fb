"""Law 6: a transition costs what it added, and no size is special."""

from __future__ import annotations

import json

from locus import Agent
from locus.core.journal import Answered, Asked, Body, Outcome, StepId, entry_to_json
from locus.core.messages import MediaBlock, Message, Role
from locus.journal import JournalStore
from locus_testkit.contracts._runs import Case, Talk, World, crash_each_write, results_by_tool
from locus_testkit.contracts._samples import bodies_of, fold_claim, steps_since, story, texts
from locus_testkit.contracts._store import OpenStore, StoreContract, add, claim_and_release, tell, write
from locus_testkit.contracts.features import needs
from locus_testkit.scripted_model import call

__all__ = ["SizeLaws"]

#: Where columns, messages and the place of a value change: at 64 KB, 256 KB, and the megabytes of streams.
_SIZES = (65_535, 65_536, 262_143, 262_144, 262_145, 1_000_000, 1_048_577)


class SizeLaws(StoreContract):
    """Large payloads come back equal, also when others hold the same; an entry holds only what is new."""

    async def test_law_6_large_values_come_back_equal(self, store: JournalStore) -> None:
        """A megabyte in one value is stored like any other."""
        await write(store, "t", *texts(2, size=1_000_000))
        assert bodies_of((await claim_and_release(store, "t")).entries) == list(texts(2, size=1_000_000))

    async def test_law_6_no_size_is_special(self, store: JournalStore) -> None:
        """Texts and bytes of any size survive in a step, a question, an answer, a message and the state's metadata."""
        for size in _SIZES:
            thread = f"thread-{size}"
            long = "\u00e9" + "x" * (size - 1)
            claim = await store.claim(thread, "w")
            told = story(size=1)
            picture = MediaBlock("image", "image/png", data=b"\x00" * size)
            state = told.end.with_messages([Message(Role.USER, long), Message(Role.USER, [picture])])
            told = told.grow(state.with_metadata("long", long))
            await tell(store, claim, told)
            bodies: tuple[Body, ...] = (
                Outcome(run_id="long", step_id=StepId(0, "text"), value=long),
                Outcome(run_id="long", step_id=StepId(0, "bytes"), value=[b"\x01" * size]),
                Asked(run_id="long", interrupt_id="i", step_id=StepId(0, "s"), question=long),
                Answered(run_id="long", interrupt_id="i", answer={long: long}),
            )
            await add(store, claim, *bodies)
            await store.release(claim)
            again = await claim_and_release(store, thread)
            assert steps_since(again) == list(bodies), size
            assert fold_claim(again) == told.end, size

    @needs("delete")
    async def test_law_6_equal_large_values_are_kept_apart(self, store: JournalStore) -> None:
        """Two threads hold the same large value; one is forgotten, and the other still has it."""
        for thread in ("a", "b", "c"):
            await write(store, thread, *texts(2, size=300_000))
        assert await store.delete("b")
        await write(store, "c", *texts(2, size=300_000))
        assert await store.delete("a")
        assert bodies_of(await store.read("c")) == [*texts(2, size=300_000)] * 2

    async def test_law_6_large_result_survives_a_crash(self, open_store: OpenStore) -> None:
        """A resumed run has the whole result of a tool."""
        place = await self.place(open_store)
        large = "0123456789" * 30_000

        def make(thread_id: str) -> Case:
            talk, world = Talk([call("act", n=1), call("next", n=1)], "done"), World()
            tools = [world.effect("act", "pure", result=large), world.effect("next", "pure")]
            return Case(place, thread_id, lambda store: Agent(talk.model, tools=tools, checkpointer=store))

        for case in await crash_each_write(make):
            assert results_by_tool(await case.state())["act"] == large, case.dead_process.crash

    @needs("history")
    async def test_law_6_entry_holds_what_was_added(self, open_store: OpenStore) -> None:
        """The twentieth iteration of a run writes entries as small as the second."""
        (store, _), world = (await self.place(open_store)).stores, World()
        talk = Talk(*[call("act", n=n) for n in range(20)], "done")
        agent: Agent[object, object] = Agent(talk.model, tools=[world.effect("act", "once")], checkpointer=store)
        await agent.run("x" * 20_000, thread_id="t")
        sizes = [len(json.dumps(entry_to_json(entry.body))) for entry in await store.read("t")]
        assert max(sizes[1:]) < sizes[0] / 4, "the user's long turn is in an entry that did not add it"
        assert max(sizes[-41:]) <= 1.5 * max(sizes[1:41])
