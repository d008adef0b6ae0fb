"""What a call costs: whose word counts, and what happens where nobody knows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from locus import Agent, ConfigError, Hook, HookFailedEvent, Usage, tool
from locus.core.errors import HookSpecError
from locus.core.events import ModelCompleteEvent
from locus.core.termination import CostLimit, MaxIterations
from locus.models import ModelRequest, Price
from locus.plugin import hookimpl
from locus_testkit import FakeClock, ScriptedModel, call

pytestmark = pytest.mark.anyio

OWN = Price(prompt=1_000_000, completion=1_000_000)


class Says(Hook):
    """Knows prices.

    Args:
        cost: of a call, or what to do about it.
    """

    def __init__(self, cost: Any) -> None:
        self.cost = cost
        self.asked: list[tuple[str, str, int, datetime]] = []

    def price(self, model: Any, answered: str, usage: Usage, at: datetime) -> Any:
        self.asked.append((model.name, answered, usage.total_tokens, at))
        return self.cost() if callable(self.cost) else self.cost

    @hookimpl
    def locus_register_prices(self) -> list[Any]:
        return [self.price]


def fails() -> None:
    raise RuntimeError("boom")


async def run(model: ScriptedModel, *hooks: Any, **options: Any) -> tuple[Any, list[Any]]:
    one = Agent(model, hooks=list(hooks), **options).run("Hi.")
    events = [event async for event in one]
    return one.result, events


async def test_a_price_source_gets_the_model_the_usage_and_the_time() -> None:
    says = Says(0.25)
    result, events = await run(ScriptedModel("Hi."), says, clock=FakeClock())
    assert result.cost == 0.25
    assert says.asked == [("scripted:model", "scripted:model", 15, datetime(2030, 1, 1, tzinfo=UTC))]
    assert [e.usage.cost for e in events if isinstance(e, ModelCompleteEvent)] == [0.25]


async def test_the_providers_own_word_comes_first_then_sources_in_order_then_the_models_price() -> None:
    told = ScriptedModel("Hi.", usage=Usage(prompt_tokens=1, cost=0.5), price=OWN)
    assert (await run(told, Says(0.25)))[0].cost == 0.5
    assert (await run(ScriptedModel("Hi.", price=OWN), Says(None), Says(0.25), Says(7)))[0].cost == 0.25
    assert (await run(ScriptedModel("Hi.", price=OWN), Says(None)))[0].cost == 15
    assert (await run(ScriptedModel("Hi."), Says(None)))[0].cost is None
    _, events = await run(ScriptedModel("Hi.", price=OWN), Says(0))
    assert [e.usage.cost for e in events if isinstance(e, ModelCompleteEvent)] == [0.0], "free is a price"


@pytest.mark.parametrize("wrong", [fails, -1.0, float("nan"), float("inf"), "1", True])
async def test_a_source_that_fails_knows_nothing_and_is_reported(wrong: Any) -> None:
    result, events = await run(ScriptedModel("Hi."), Says(wrong), Says(0.25))
    assert (result.cost, result.stop_reason) == (0.25, "NoToolCalls")
    (failed,) = [e for e in events if isinstance(e, HookFailedEvent)]
    assert (failed.plugin, failed.hook) == ("Says", "locus_register_prices")


async def test_one_that_failed_three_times_is_not_asked_any_more() -> None:
    @tool
    def look(n: int) -> str:
        """Look."""
        return "seen"

    says = Says(fails)
    model = ScriptedModel(*(call("look", n=n) for n in range(5)), "Done.")
    _, events = await run(model, says, tools=[look])
    assert len(says.asked) == 3
    assert [e.quarantined for e in events if isinstance(e, HookFailedEvent)] == [False, False, True]


async def test_a_limit_of_dollars_works_with_a_price_that_a_plugin_knows() -> None:
    @tool
    def look() -> str:
        """Look."""
        return "seen"

    model = ScriptedModel(call("look"), after="repeat")
    limit = CostLimit(1.0) | MaxIterations(9)
    result, _ = await run(model, Says(0.4), tools=[look], termination=limit)
    assert (result.stop_reason, len(model.requests), result.cost) == ("CostLimit", 3, pytest.approx(1.2))
    for source in (Says(None), Says(fails)):
        with pytest.raises(ConfigError, match="a plugin that knows it"):
            Agent(ScriptedModel(), hooks=[source], termination=limit)


async def test_a_limit_given_for_one_run_is_checked_with_it_too() -> None:
    known = Agent(ScriptedModel("Hi."), hooks=[Says(0.5)])
    assert (await known.run("Hi.", termination=CostLimit(1.0))).cost == 0.5
    with pytest.raises(ConfigError, match="price"):
        Agent(ScriptedModel("Hi."), hooks=[Says(None)]).run("Hi.", termination=CostLimit(1.0))


async def test_calls_of_plugins_are_priced_like_those_of_the_loop() -> None:
    other = ScriptedModel("no", name="other:model")

    class Asks(Hook):
        async def on_think(self, event: Any, run: Any) -> None:
            await run.call_model(ModelRequest(messages=run.state.messages), model=other, purpose="asking")

    says = Says(0.25)
    result, _ = await run(ScriptedModel("Hi."), says, Asks())
    assert result.cost == 0.5
    assert [name for name, *_ in says.asked] == ["scripted:model", "other:model"]


def test_what_is_not_a_function_is_refused() -> None:
    class Odd(Hook):
        @hookimpl
        def locus_register_prices(self) -> Any:
            return [3]

    with pytest.raises(HookSpecError, match="return functions"):
        Agent(ScriptedModel(), hooks=[Odd()])
