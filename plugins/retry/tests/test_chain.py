"""Fallback models, and the breakers of models, tools and the loop."""

from __future__ import annotations

from typing import Any

import pytest

import locus_plugin_timetravel as timetravel
from locus import Agent, tool
from locus.core.errors import ContextOverflow, ModelError
from locus.core.events import ModelCompleteEvent, TerminateEvent, ToolStartEvent, event_from_json, event_to_json
from locus.core.messages import Message, Role, TextBlock, ThinkingBlock, ToolCall
from locus.core.termination import MaxIterations
from locus.journal import MemoryStore
from locus_plugin_retry import BreakerSettings, CircuitBreakerEvent, ModelFallbackEvent, RetryReport
from locus_testkit import call

from .kit import Waits, busy, collected, hook, model

pytestmark = pytest.mark.anyio


@tool(effect="pure")
def look() -> str:
    """Look."""
    return "seen"


def breakers(events: list[Any]) -> list[tuple[str, str, bool]]:
    found = [e for e in events if isinstance(e, CircuitBreakerEvent)]
    assert [event_from_json(event_to_json(e)) for e in found] == found
    return [(e.kind, e.name, e.is_open) for e in found]


# -- fallback models ----------------------------------------------------------------------------------


async def test_the_next_model_is_asked_when_retries_are_used_up() -> None:
    first, second, third = model(busy(), after="repeat"), model("", after="repeat", name="b:b"), model("C", name="c:c")
    result, events = await collected(Agent(first, hooks=[hook(Waits(), max_retries=1, fallback=[second, third])]))
    assert result.text == "C"
    assert [len(m.requests) for m in (first, second, third)] == [2, 2, 1]
    assert [e.model for e in events if isinstance(e, ModelCompleteEvent)] == ["c:c"]
    told = [e for e in events if isinstance(e, ModelFallbackEvent)]
    assert [(e.model, e.fallback, e.reason) for e in told] == [
        ("acme:big", "b:b", "acme:big failed: ModelError with status 503"),
        ("b:b", "c:c", "its answers are empty"),
    ]
    report = result.reports["retry"]
    assert (report.retries, report.empty, report.fallbacks) == (2, 2, ("c:c",))


async def test_when_all_fail_the_last_error_is_kept_and_names_the_others() -> None:
    first, second = model(busy(500), after="repeat"), model(busy(503), after="repeat", name="b:b")
    result, events = await collected(Agent(first, hooks=[hook(Waits(), max_retries=0, fallback=[second])]))
    assert getattr(result.error, "status", None) == 503
    assert "before: acme:big failed: ModelError with status 500" in result.error.__notes__  # type: ignore[union-attr]
    assert not [e for e in events if e.type == "hook_failed"]


@pytest.mark.parametrize("error", [busy(401), ContextOverflow("too long"), ValueError("a bug")], ids=repr)
async def test_a_permanent_error_of_a_fallback_leads_to_the_next_model(error: Exception) -> None:
    chain = [model(error, name="b:b"), model("C", name="c:c")]
    result, events = await collected(Agent(model(busy()), hooks=[hook(Waits(), fallback=chain, max_retries=0)]))
    assert result.text == "C"
    told = [e.reason for e in events if isinstance(e, ModelFallbackEvent)]
    assert told[1] == f"b:b failed: {type(error).__name__}"


async def test_a_permanent_error_of_the_last_fallback_names_the_models_before_it() -> None:
    chain = [model(busy(401), name="b:b"), model(busy(403), name="c:c")]
    result, _ = await collected(Agent(model(busy()), hooks=[hook(Waits(), fallback=chain, max_retries=0)]))
    assert getattr(result.error, "status", None) == 403
    assert isinstance(result.error, ModelError)
    assert [note for note in result.error.__notes__ if note.startswith("before: ")] == [
        "before: acme:big failed: ModelError with status 503",
        "before: b:b failed: ModelError",
    ]


async def test_each_call_begins_with_the_first_model_again_and_nobody_is_sent_what_others_signed() -> None:
    """Given turns of two providers, then each gets its own as they came and the other's without signatures."""
    mine = Message(Role.ASSISTANT, (ThinkingBlock("hm", "acme signed"), ToolCall("1", "look", {})))
    theirs = Message(Role.ASSISTANT, (ThinkingBlock("??", "b signed"), TextBlock("so"), ToolCall("2", "look", {})))
    first, second = model(mine, busy(), "Done."), model(theirs, name="b:b")
    store = MemoryStore()
    agent = Agent(first, tools=[look], checkpointer=store, hooks=[hook(Waits(), max_retries=0, fallback=[second])])
    result, _ = await collected(agent, thread_id="t")
    assert result.text == "Done."
    assert "acme signed" not in repr(second.requests[0].messages)
    assert "acme signed" in repr(first.requests[-1].messages)
    assert "b signed" not in repr(first.requests[-1].messages)
    assert "b signed" in repr(result.state.messages)
    (await timetravel.replay(agent, "t")).raise_for_difference()


async def test_a_later_run_of_the_thread_still_knows_whose_turn_was_whose() -> None:
    store = MemoryStore()
    theirs = Message(Role.ASSISTANT, (ThinkingBlock("??", "b signed"), TextBlock("B")))
    chain = hook(Waits(), max_retries=0, fallback=[model(theirs, name="b:b")])
    await Agent(model(busy()), checkpointer=store, hooks=[chain]).run("Hi.", thread_id="t")
    later = model("Again.")
    await Agent(later, checkpointer=store, hooks=[hook(Waits())]).run("And?", thread_id="t")
    assert [m.text for m in later.requests[0].messages] == ["Hi.", "B", "And?"]
    assert "b signed" not in repr(later.requests[0].messages)


# -- the breaker of a model ---------------------------------------------------------------------------


async def test_a_model_whose_breaker_is_open_is_passed_over_until_the_cooldown_is_over() -> None:
    waits = Waits()
    first, second = model(busy(), busy(), "A"), model("B", after="repeat", name="b:b")
    shared = hook(waits, max_retries=0, fallback=[second], model_breaker=BreakerSettings(failures=2, cooldown=30))
    agent = Agent(first, clock=waits.clock, hooks=[shared])
    texts, told = [], []
    for passed in (0, 0, 0, 29, 1, 0):
        waits.clock.advance(passed)
        result, events = await collected(agent)
        texts.append(result.text)
        told.append(breakers(events))
        if len(texts) == 6:
            break
        if len(texts) == 5:
            first = model("A", after="repeat")
            agent = Agent(first, clock=waits.clock, hooks=[shared])
    assert texts == ["B", "B", "B", "B", "A", "A"]
    assert told == [[], [("model", "acme:big", True)], [], [], [("model", "acme:big", False)], []]


async def test_retries_stop_when_they_open_the_breaker() -> None:
    waits, asked = Waits(), model(busy(), after="repeat")
    one = hook(waits, max_retries=9, model_breaker=BreakerSettings(failures=3))
    result, _ = await collected(Agent(asked, clock=waits.clock, hooks=[one]))
    assert len(asked.requests) == 3
    assert getattr(result.error, "status", None) == 503


async def test_with_every_breaker_open_the_call_fails_at_once_and_says_when_to_come_back() -> None:
    waits, asked = Waits(), model(busy(), after="repeat")
    one = hook(waits, max_retries=0, model_breaker=BreakerSettings(failures=1, cooldown=30))
    agent = Agent(asked, clock=waits.clock, hooks=[one])
    await agent.run("Hi.")
    waits.clock.advance(10)
    result = await agent.run("Hi.")
    assert len(asked.requests) == 1
    assert "circuit breaker of acme:big is open" in str(result.error)
    assert getattr(result.error, "retry_after", None) == pytest.approx(20)
    assert result.reports["retry"] == RetryReport(refused=1)


async def test_permanent_errors_open_no_breaker() -> None:
    asked = model(busy(400), busy(400), "Hi.")
    agent = Agent(asked, hooks=[hook(Waits(), model_breaker=BreakerSettings(failures=1))])
    texts = [(await agent.run("Hi.")).text for _ in range(3)]
    assert texts[-1] == "Hi."


# -- the breaker of a tool ----------------------------------------------------------------------------


async def test_a_tool_that_keeps_failing_is_rejected_and_the_model_reads_why() -> None:
    waits, ran = Waits(), list[str]()
    works = [False]

    @tool
    def shaky() -> str:
        """Shaky."""
        ran.append("shaky")
        if not works[0]:
            raise OSError("down")
        return "up"

    asked = model(call("shaky"), call("shaky"), [call("shaky"), call("look")], "Done.")
    one = hook(waits, tool_breaker=BreakerSettings(failures=2, cooldown=30))
    agent = Agent(asked, tools=[shaky, look], clock=waits.clock, hooks=[one])
    result, events = await collected(agent)
    assert len(ran) == 2
    errors = {e.tool_name: e.error for e in result.state.tool_executions[-2:]}
    assert errors["look"] is None
    assert str(errors["shaky"]).startswith("Rejected: the tool shaky has failed again and again and is not called for")
    assert "another 30 s" in repr(asked.requests[-1].messages)
    assert breakers(events) == [("tool", "shaky", True)]
    assert result.reports["retry"] == RetryReport(refused=1)
    works[0] = True
    waits.clock.advance(30)
    again = Agent(
        model([call("shaky"), call("shaky")], call("shaky"), "Done."),
        tools=[shaky],
        clock=waits.clock,
        hooks=[one],
    )
    result, events = await collected(again)
    assert len(ran) == 4, "one tries, its neighbour is refused, and then it is closed"
    assert breakers(events) == [("tool", "shaky", False)]


async def test_calls_that_were_refused_before_their_body_open_nothing() -> None:
    asked = model(call("look", wrong=1), call("nosuch"), call("look"), "Done.")
    one = hook(Waits(), tool_breaker=BreakerSettings(failures=1))
    _, events = await collected(Agent(asked, tools=[look], hooks=[one]))
    assert len([e for e in events if isinstance(e, ToolStartEvent)]) == 1
    assert breakers(events) == []


# -- the breaker of the loop --------------------------------------------------------------------------


@tool
def broken() -> str:
    """Broken."""
    raise OSError("down")


async def test_iterations_that_fail_in_a_row_cancel_the_run_with_a_named_reason() -> None:
    waits, store = Waits(), MemoryStore()
    one = hook(waits, loop_breaker=BreakerSettings(failures=3, cooldown=60))
    asked = model([call("broken"), call("broken")], after="repeat")
    agent = Agent(asked, tools=[broken], clock=waits.clock, checkpointer=store, hooks=[one])
    result, events = await collected(agent, thread_id="t")
    assert result.stop_reason == ("Cancelled: the circuit breaker of the loop is open; it lets a run try again in 60 s")
    assert (len(asked.requests), breakers(events)) == (3, [("loop", "", True)])
    assert isinstance(events[-1], TerminateEvent)
    (await timetravel.replay(agent, "t")).raise_for_difference()


async def test_the_loops_breaker_is_of_all_runs_and_one_that_succeeds_closes_it() -> None:
    waits = Waits()
    one = hook(waits, max_retries=0, loop_breaker=BreakerSettings(failures=2, cooldown=60))
    sick = Agent(model(busy(400), after="repeat"), clock=waits.clock, hooks=[one])
    well = Agent(model("Hi.", after="repeat"), clock=waits.clock, hooks=[one])
    assert [(await sick.run("?")).stop_reason for _ in range(2)] == ["ModelError", "ModelError"]
    refused = await well.run("?")
    assert refused.stop_reason.startswith("Cancelled: the circuit breaker of the loop")
    waits.clock.advance(60)
    result, events = await collected(well)
    assert (result.text, breakers(events)) == ("Hi.", [("loop", "", False)])
    assert (await well.run("?")).text == "Hi."


async def test_an_iteration_in_which_something_worked_is_not_a_failure() -> None:
    one = hook(Waits(), loop_breaker=BreakerSettings(failures=1))
    asked = model([call("broken"), call("look")], "Done.")
    result, _ = await collected(Agent(asked, tools=[broken, look], hooks=[one]))
    assert result.stop_reason == "NoToolCalls"


async def test_a_limit_of_the_run_holds_beside_the_breaker() -> None:
    one = hook(Waits(), loop_breaker=BreakerSettings(failures=5))
    asked = model(call("broken"), after="repeat")
    result, _ = await collected(Agent(asked, tools=[broken], hooks=[one], termination=MaxIterations(2)))
    assert result.stop_reason == "MaxIterations"
