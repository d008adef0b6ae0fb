"""What a run writes, and when: all that came before an effect stands before it, and nothing is written twice over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from locus import Agent, Hook, tool
from locus.core.errors import NotSerialisable
from locus.core.events import CheckpointEvent, ToolCompleteEvent
from locus.core.journal import Body, Transition, entry_to_json
from locus.memory import MemoryStore
from locus.memory.store import Appended, Claim
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
    assert before == [["Outcome 0/think/model", "think > execute", *intent]]
    assert store.writes == [
        ["start > think"],
        *before,
        ["Outcome 0/execute/0", "execute > think"],
        ["Outcome 1/think/model", "think > terminate", "terminate > end"],
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


async def test_nobody_is_told_of_what_is_not_written() -> None:
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
    assert ["Outcome 0/think/model", "think > execute"] in store.writes


async def _strange() -> object:
    return object()
