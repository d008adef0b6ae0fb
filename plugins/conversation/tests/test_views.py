"""What managers have shown is found again in the journal: each request of a run is one of the recorded views."""

from __future__ import annotations

from typing import Any

import pytest

from locus import Agent
from locus.core.journal import BLANK, Fold, Outcome, Transition
from locus.journal import MemoryStore
from locus_plugin_conversation import recorded_views
from locus_testkit import call

from .test_agents import MANAGERS, SYSTEM, Talker, read, requests_for

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("name", MANAGERS)
async def test_every_request_is_a_recorded_view(name: str) -> None:
    turns = [call("read", page=n) for n in range(8)]
    model = Talker(*turns, "read", *turns[:3], "again").model()
    store = MemoryStore()
    agent = Agent[Any, Any](
        model, tools=[read], system_prompt=SYSTEM, checkpointer=store, conversation_manager=MANAGERS[name]
    )
    for prompt in ("Read.", "Read again."):
        await agent.run(prompt, thread_id="t")
    sent = iter(requests_for(model))
    fold, asked, acted = Fold(BLANK), False, 0
    before = fold.state()
    for entry in await store.read("t"):
        if isinstance(entry.body, Outcome) and str(entry.body.step_id).endswith("/think/0"):
            asked = True
        if isinstance(entry.body, Transition):
            fold.add(entry.body.delta)
            after = fold.state()
            if asked:
                views = recorded_views(before.messages, after.metadata)
                acted += bool(views)
                assert next(sent).messages in (*views, *(() if views else (before.messages,)))
            before, asked = after, False
    assert acted > 3
    assert next(sent, None) is None


def test_what_was_remembered_of_another_conversation_gives_nothing() -> None:
    assert recorded_views((), {}) == ()
    for made in ({"end": 3}, {"end": 9, "kept": (), "summary": "", "stubs": 0, "anchor": "x"}, 5):
        assert recorded_views((), {"locus.summary": made, "locus.window": made}) == ()
