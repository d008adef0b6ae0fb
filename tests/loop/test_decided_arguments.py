"""What was decided about is what runs: deciders, observers, conditions and records see the arguments of the body."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from tests.loop.kit import Recorder, bodies, of, results

from locus import Agent, Hook, Reject, ToolCalled, ToolCompleteEvent, ToolStartEvent, tool
from locus.core.events import ToolCacheHitEvent
from locus.core.messages import ToolCall
from locus.journal import MemoryStore
from locus.plugin import Interrupt, hookimpl
from locus_testkit import ScriptedModel, call

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _no_bodies_yet() -> None:
    bodies.clear()


@tool
async def pay(usd: float, to: str = "shop", dry_run: bool = True) -> str:
    """Pay."""
    bodies["pay"] += 1
    return f"{usd!r} to {to}"


class Limit(Hook):
    """Refuses large payments, by comparing numbers only."""

    guard = True

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    def on_tool_call(self, call: ToolCall) -> Reject | None:
        self.seen.append(dict(call.arguments))
        usd = call.arguments["usd"]
        return Reject("too much") if isinstance(usd, int | float) and usd > 500 else None


async def test_a_decider_sees_the_numbers_and_the_defaults_that_the_body_would_get() -> None:
    limit = Limit()
    model = ScriptedModel([call("pay", usd="1000"), call("pay", usd="10", dry_run=False)], "done")
    result = await Agent(model, tools=[pay], hooks=[limit], tool_execution="sequential").run("x")
    assert limit.seen == [
        {"usd": 1000, "to": "shop", "dry_run": True},
        {"usd": 10, "to": "shop", "dry_run": False},
    ]
    assert results(result) == ["Error: Rejected: too much", "10.0 to shop"]
    assert bodies["pay"] == 1


async def test_events_and_executions_have_the_arguments_of_the_body_and_the_message_those_of_the_model() -> None:
    recorder = Recorder()
    result = await Agent(ScriptedModel(call("pay", usd="3"), "done"), tools=[pay], hooks=[recorder]).run("x")
    expected = {"usd": 3.0, "to": "shop", "dry_run": True}
    assert [e.arguments for e in of(recorder.events, ToolStartEvent)] == [expected]
    assert [e.arguments for e in of(recorder.events, ToolCompleteEvent)] == [expected]
    assert [e.arguments for e in result.state.tool_executions] == [expected]
    [said] = [c for m in result.state.messages for c in m.tool_calls]
    assert said.arguments == {"usd": "3"}


async def test_true_stays_true_and_one_stays_one() -> None:
    @tool
    async def take(a: Any, b: bool | int) -> str:
        """Take."""
        return repr((a, b))

    recorder = Recorder()
    model = ScriptedModel(call("take", a=True, b=1), call("take", a=1, b=True), "done")
    result = await Agent(model, tools=[take], hooks=[recorder]).run("x")
    assert results(result) == ["(True, 1)", "(1, True)"]
    seen = [(type(e.arguments["a"]), type(e.arguments["b"])) for e in of(recorder.events, ToolStartEvent)]
    assert seen == [(bool, int), (int, bool)]


async def test_a_predicate_may_read_an_argument_that_the_model_left_out() -> None:
    result = await Agent(
        ScriptedModel(call("pay", usd=1), call("pay", usd=1, dry_run=False), "never"),
        tools=[pay],
        termination=ToolCalled("pay", lambda arguments: not arguments["dry_run"]),
        max_iterations=5,
    ).run("x")
    assert (result.stop_reason, result.error) == ("ToolCalled", None)
    assert bodies["pay"] == 2


async def test_what_a_wrapper_changed_shows_in_the_event_and_the_execution() -> None:
    class Capped(Hook):
        @hookimpl
        async def locus_wrap_tool_call(self, call_next: Any, call: ToolCall) -> Any:
            return await call_next(evolve(call, arguments={**call.arguments, "usd": "5"}))

    recorder, store = Recorder(), MemoryStore()
    agent = Agent(
        ScriptedModel(call("pay", usd=1000), "done"), tools=[pay], hooks=[Capped(), recorder], checkpointer=store
    )
    result = await agent.run("x", thread_id="t")
    assert results(result) == ["5.0 to shop"]
    asked, ran = {"usd": 1000.0, "to": "shop", "dry_run": True}, {"usd": 5.0, "to": "shop", "dry_run": True}
    assert [e.arguments for e in of(recorder.events, ToolStartEvent)] == [asked]
    assert [e.arguments for e in of(recorder.events, ToolCompleteEvent)] == [ran]
    assert [e.arguments for e in result.state.tool_executions] == [ran]
    assert [c.arguments for entry in await agent.threads.show("t") for c in entry.calls] == [ran]


async def test_a_default_without_json_survives_a_wrapper_that_changes_another_argument() -> None:
    nothing = object()

    @tool
    async def take(a: int, b: Any = nothing, c: Path = Path("x")) -> str:
        """Take."""
        return repr((a, b is nothing, str(c)))

    class Doubles(Hook):
        @hookimpl
        async def locus_wrap_tool_call(self, call_next: Any, call: ToolCall) -> Any:
            return await call_next(evolve(call, arguments={**call.arguments, "a": call.arguments["a"] * 2}))

    recorder = Recorder()
    result = await Agent(ScriptedModel(call("take", a=1), "done"), tools=[take], hooks=[Doubles(), recorder]).run("x")
    assert results(result) == ["(2, True, 'x')"]
    assert [e.arguments for e in of(recorder.events, ToolStartEvent)] == [{"a": 1, "c": "x"}]


@pytest.mark.parametrize(
    ("annotation", "forms"),
    [
        (datetime, ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00.000+00:00"]),
        (Decimal, ["1", "1.00", "1E0", 1]),
        (Path, ["a/b", "a//b", "./a/b/"]),
        (set[str], [["a", "b"], ["b", "a"], ["a", "b", "a"]]),
        (float, [0, 0.0, -0.0]),
        (Any, [0, 0.0, -0.0]),
        (Any, [{"a": [1]}, {"a": [1.0]}]),
        (int | float, [1, 1.0]),
        (dict[Decimal, int], [{"1": 2}, {"1.00": 2}]),
        (dict[float, int], [{"0": 2}, {"0.0": 2}, {"-0.0": 2}]),
    ],
)
@pytest.mark.parametrize("together", [True, False])
async def test_equal_values_of_an_idempotent_call_run_once(annotation: Any, forms: list[Any], together: bool) -> None:
    async def book(x: Any) -> str:
        """Book."""
        bodies["book"] += 1
        return "booked"

    book.__annotations__["x"] = annotation
    calls = [call("book", x=form) for form in forms]
    recorder = Recorder()
    model = ScriptedModel(calls, "done") if together else ScriptedModel(*calls, "done")
    result = await Agent(model, tools=[tool(book, idempotent=True)], hooks=[recorder]).run("x")
    assert bodies["book"] == 1
    assert results(result) == ["booked"] * len(forms)
    hits = of(recorder.events, ToolCacheHitEvent)
    assert [e.arguments for e in hits] == [result.state.tool_executions[0].arguments] * (len(forms) - 1)


async def test_the_keys_of_a_mapping_are_numbers_where_the_annotation_says_so() -> None:
    taken: list[Any] = []

    @tool
    async def take(x: dict[int, list[float]], y: dict[float, datetime]) -> str:
        """Take."""
        taken.append((x, y))
        return "taken"

    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    recorder = Recorder()
    model = ScriptedModel(call("take", x={"7": [1]}, y={"0.50": "2026-01-01T12:00:00Z"}), "done")
    result = await Agent(model, tools=[take], hooks=[recorder]).run("x")
    assert results(result) == ["taken"]
    assert taken == [({7: [1.0]}, {0.5: noon})]
    assert result.state.tool_executions[0].arguments["y"] == {"0.5": "2026-01-01T12:00:00Z"}


async def test_true_and_one_are_two_calls() -> None:
    @tool(idempotent=True)
    async def book(x: Any) -> str:
        """Book."""
        bodies["book"] += 1
        return "booked"

    model = ScriptedModel([call("book", x=True), call("book", x=1), call("book", x=[True]), call("book", x=[1.0])], "")
    await Agent(model, tools=[book]).run("x")
    assert bodies["book"] == 4


async def test_each_call_is_converted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    @tool
    async def at(when: datetime, usd: float = 1) -> str:
        """Takes what has several forms."""
        return f"{when:%H:%M} {usd}"

    whole = type(at.parameters)
    convert = whole.convert

    def counted(self: Any, arguments: Any) -> Any:
        bodies["convert"] += 1
        return convert(self, arguments)

    monkeypatch.setattr(whole, "convert", counted)
    recorder = Recorder()
    model = ScriptedModel(call("at", when="2026-01-01T01:00:00+01:00"), "done")
    result = await Agent(model, tools=[at], hooks=[Limitless(), recorder]).run("x")
    assert results(result) == ["01:00 1"]
    assert [e.arguments for e in of(recorder.events, ToolStartEvent)] == [{"when": "2026-01-01T00:00:00Z", "usd": 1}]
    assert bodies["convert"] == 1


class Limitless(Hook):
    def on_tool_call(self, call: ToolCall) -> Interrupt | None:
        return None
