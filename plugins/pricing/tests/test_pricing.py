"""Dollars: whose word counts, what is not known, and what a limit makes of it."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

import locus_plugin_timetravel as timetravel
from locus import Agent, ConfigError, ToolContext, Usage, tool
from locus.core.events import event_from_json, event_to_json
from locus.core.termination import CostLimit, MaxIterations
from locus.hooks.builtin import PricingHook as FromTheWindow
from locus.journal import MemoryStore
from locus.models import ModelRequest, Price
from locus.plugin import Hook
from locus_plugin_pricing import PricePerMillion, PricingHook, PricingReport, PricingSettings, Tables, UnknownPriceEvent
from locus_testkit import FakeClock, ScriptedModel, SimulatedCrash, call

pytestmark = pytest.mark.anyio

THEN = datetime(2025, 11, 1, tzinfo=UTC)
SONNET = "anthropic:claude-sonnet-4-5"  # 3 dollars in, 15 out, 0.30 from the cache, 3.75 to it
THOUSAND = Usage(prompt_tokens=1000, completion_tokens=1000)
MINE = PricingSettings(prices={"acme:*": {"input": 1.0, "output": 2.0}}, table=False)


@tool
def look() -> str:
    """Look."""
    return "seen"


async def run(model: ScriptedModel, **options: Any) -> tuple[Any, list[Any]]:
    one = Agent(model, tools=[look], **options).run("Hi.", thread_id="t")
    events = [event async for event in one]
    return one.result, events


def price_of(name: str, usage: Usage = THOUSAND, *, at: datetime = THEN, answered: str = "", **settings: Any) -> Any:
    return Tables(PricingSettings(**settings)).dollars(ScriptedModel(name=name), answered, usage, at)


# -- the table ----------------------------------------------------------------------------------------


async def test_the_table_knows_public_prices_and_those_of_the_cache() -> None:
    usage = Usage(prompt_tokens=1000, completion_tokens=100, cached_tokens=500, cache_write_tokens=100)
    result, events = await run(ScriptedModel("Hi.", name=SONNET, usage=usage), pricing=True, clock=FakeClock(THEN))
    assert result.cost == pytest.approx((400 * 3 + 500 * 0.3 + 100 * 3.75 + 100 * 15) / 1e6)
    assert result.reports["pricing"] == PricingReport(cost=result.cost, priced=1)
    assert result.reports["pricing"].complete
    assert not [e for e in events if isinstance(e, UnknownPriceEvent)]


def test_the_price_is_that_of_the_day_of_the_call() -> None:
    long = Usage(prompt_tokens=300_000, completion_tokens=1000)
    before = price_of("anthropic:claude-opus-4-6", long, at=datetime(2026, 3, 12, tzinfo=UTC))
    after = price_of("anthropic:claude-opus-4-6", long, at=datetime(2026, 3, 14, tzinfo=UTC))
    assert before == pytest.approx((300_000 * 10 + 1000 * 37.5) / 1e6)
    assert after == pytest.approx((300_000 * 5 + 1000 * 25) / 1e6)


def test_the_model_that_answered_counts_before_the_one_that_was_asked() -> None:
    small, large = price_of("openai:gpt-4o-mini"), price_of("openai:gpt-4o")
    assert small < large
    assert price_of("openai:gpt-4o", answered="gpt-4o-mini") == small
    assert price_of("openai:gpt-4o", answered="nobody knows this one") == large
    assert price_of("openai:gpt-4o", answered="openai:gpt-4o") == large


def test_schemes_that_are_called_otherwise_in_the_table_are_translated() -> None:
    assert price_of("gemini:gemini-2.5-flash") == price_of("google:gemini-2.5-flash") is not None
    assert price_of("mine:gpt-4o", providers={"mine": "openai"}) == price_of("openai:gpt-4o")


@pytest.mark.parametrize("name", ["openai:nosuch-model", "nosuch:gpt-4o", "llamacpp:qwen2.5", "gpt-4o", "openai:", ""])
def test_what_is_not_in_the_table_is_not_guessed(name: str) -> None:
    assert price_of(name) is None


# -- one's own prices ---------------------------------------------------------------------------------


def test_own_prices_are_globs_of_which_the_longest_counts() -> None:
    prices = {"*": PricePerMillion(input=1.0, output=1.0), "acme:b*": PricePerMillion(input=9.0, output=0.0)}
    assert price_of("acme:big", prices=prices) == pytest.approx(0.009)
    assert price_of("acme:small", prices=prices) == pytest.approx(0.002)


async def test_own_prices_come_before_the_models_and_the_table_and_those_before_nothing() -> None:
    own = {"prices": {SONNET: {"input": 1, "output": 1}}}
    dear = Price(prompt=1e6, completion=1e6)
    assert (await run(ScriptedModel("Hi.", name=SONNET, price=dear), pricing=own))[0].cost == pytest.approx(15e-6)
    assert (await run(ScriptedModel("Hi.", name=SONNET, price=dear), pricing=True))[0].cost == 15


async def test_what_the_provider_says_itself_counts_before_all_prices() -> None:
    told = ScriptedModel("Hi.", name="acme:big", usage=Usage(prompt_tokens=10, cost=0.5))
    result, _ = await run(told, pricing=MINE)
    assert (result.cost, result.reports["pricing"]) == (0.5, PricingReport(cost=0.5, priced=1))


async def test_local_models_are_free_when_the_user_says_so_and_that_is_known() -> None:
    free = PricingSettings(prices={"acme:*": {"input": 0, "output": 0}}, table=False)
    model = ScriptedModel(call("look"), "Done.", name="acme:local")
    result, _ = await run(model, pricing=free, termination=CostLimit(0.01) | MaxIterations(9))
    assert result.stop_reason == "NoToolCalls"
    assert result.reports["pricing"] == PricingReport(cost=0.0, priced=2)


async def test_a_known_zero_is_zero_in_all_totals() -> None:
    """Given a free model, then result, usage, a child's usage, a resume and a new turn say 0.0, and not "unknown"."""
    free = Price(prompt=0.0, completion=0.0)

    @tool
    async def ask(ctx: ToolContext) -> str:
        """Ask a child."""
        child: Agent[Any, Any] = Agent(ScriptedModel("Hm.", price=free))
        return str((await ctx.run_child(child, "?")).usage.cost)

    store = MemoryStore()
    agent: Agent[Any, Any] = Agent(
        ScriptedModel(call("ask"), "Done.", "Again.", price=free), tools=[ask], checkpointer=store
    )
    result = await agent.run("Hi.", thread_id="t")
    assert result.state.tool_executions[0].result == "0.0"
    assert (result.cost, result.usage.cost) == (0.0, 0.0)
    assert "$0" in str(result)
    assert (await agent.run("And?", thread_id="t")).cost == 0.0
    unknown: Agent[Any, Any] = Agent(ScriptedModel("Hi."))
    assert (await unknown.run("Hi.")).cost is None


# -- what is not known --------------------------------------------------------------------------------


async def test_an_unknown_price_stays_unknown_and_is_said() -> None:
    result, events = await run(ScriptedModel(call("look"), "Done.", name="nosuch:model"), pricing=True)
    assert result.cost is None
    assert result.reports["pricing"] == PricingReport(unknown=2, unknown_models=("nosuch:model",))
    assert not result.reports["pricing"].complete
    said = [e for e in events if isinstance(e, UnknownPriceEvent)]
    assert [(e.model, e.tokens) for e in said] == [("nosuch:model", 15)] * 2
    assert [event_from_json(event_to_json(e)) for e in said] == said


async def test_known_and_unknown_calls_of_one_run_are_distinguished() -> None:
    class Asks(Hook):
        async def on_think(self, event: Any, run: Any) -> None:
            other = ScriptedModel("no", name="nosuch:model")
            await run.call_model(ModelRequest(messages=run.state.messages), model=other, purpose="asking")

    result, _ = await run(ScriptedModel("Hi.", name="acme:big"), pricing=MINE, hooks=[Asks()])
    assert result.cost == pytest.approx(20e-6)
    assert result.reports["pricing"] == PricingReport(
        cost=result.cost, priced=1, unknown=1, unknown_models=("nosuch:model",)
    )


async def test_what_a_limit_assumes_is_not_taken_for_a_price() -> None:
    limit = CostLimit(1.0, unknown_price=1_000.0) | MaxIterations(9)
    result, events = await run(ScriptedModel("Hi.", name="nosuch:model"), pricing=True, termination=limit)
    assert result.cost == pytest.approx(0.015)
    assert result.reports["pricing"] == PricingReport(unknown=1, assumed=result.cost, unknown_models=("nosuch:model",))
    assert [e for e in events if isinstance(e, UnknownPriceEvent)]


# -- limits -------------------------------------------------------------------------------------------


async def test_a_limit_of_dollars_stops_before_the_next_call_and_is_refused_without_a_price() -> None:
    model = ScriptedModel(call("look"), after="repeat", name="acme:big", usage=Usage(prompt_tokens=400_000))
    result, _ = await run(model, pricing=MINE, termination=CostLimit(1.0) | MaxIterations(9))
    assert (result.stop_reason, len(model.requests)) == ("CostLimit", 3)
    with pytest.raises(ConfigError, match="price"):
        Agent(ScriptedModel(name="nosuch:model"), pricing=MINE, termination=CostLimit(1.0) | MaxIterations(9))
    with pytest.raises(ConfigError, match="price"):
        Agent(ScriptedModel(name="acme:big"), termination=CostLimit(1.0) | MaxIterations(9))


# -- the record ---------------------------------------------------------------------------------------


async def test_a_resumed_run_keeps_what_calls_cost_then_and_a_replay_shows_no_difference() -> None:
    store, dying = MemoryStore(), [True]

    @tool(effect="pure")
    async def shaky() -> str:
        """Shaky."""
        if dying.pop() if dying else False:
            raise SimulatedCrash
        return "done"

    def agent(price: float) -> Agent[Any, Any]:
        own = PricingSettings(prices={"*": {"input": price, "output": price}}, table=False)
        return Agent(model, tools=[shaky], checkpointer=store, pricing=own)

    model = ScriptedModel(call("shaky"), "Done.", name="acme:big")
    with pytest.raises(SimulatedCrash):
        await agent(1.0).run("Hi.", thread_id="t")
    result = await agent(1_000.0).resume("t")
    assert result.cost == pytest.approx(15e-6 + 15e-3)
    assert result.reports["pricing"].priced == 1
    (await timetravel.replay(agent(5.0), "t")).raise_for_difference()


async def test_a_call_that_is_on_record_is_not_counted_by_the_segment_that_continues() -> None:
    class Exits(Hook):
        async def on_think(self, event: Any, run: Any) -> None:
            if leaving:
                raise leaving.pop()

    store, leaving = MemoryStore(), [SystemExit()]  # unlike a crash, an exit writes what waits
    model = ScriptedModel(call("look"), "Done.", name="acme:big")
    agent: Agent[Any, Any] = Agent(model, tools=[look], checkpointer=store, pricing=MINE, hooks=[Exits()])
    with pytest.raises(SystemExit):
        await agent.run("Hi.", thread_id="t")
    result = await agent.resume("t")
    assert len(model.requests) == 2
    assert result.cost == pytest.approx(40e-6)
    assert (result.reports["pricing"].priced, result.reports["pricing"].unknown) == (1, 0)
    assert result.reports["pricing"].cost == pytest.approx(20e-6)


async def test_parallel_runs_of_one_agent_count_for_themselves() -> None:
    agent = Agent(
        ScriptedModel(
            script=lambda r: [call("look"), "Done."] if "two" in r.messages[0].text else ["Done."], name="acme:b"
        ),
        tools=[look],
        pricing=MINE,
    )
    results = {}

    async def one(prompt: str) -> None:
        results[prompt] = await agent.run(prompt)

    async with anyio.create_task_group() as group:
        group.start_soon(one, "one")
        group.start_soon(one, "two")
    assert {p: r.reports["pricing"].priced for p, r in results.items()} == {"one": 1, "two": 2}


@given(
    st.integers(0, 10**7),
    st.integers(0, 10**7),
    st.integers(0, 10**7),
    st.integers(0, 10**7),
    st.integers(1, 10**6),
)
def test_law_more_tokens_never_cost_less_and_never_less_than_nothing(
    fresh: int, cached: int, write: int, out: int, more: int
) -> None:
    price = PricePerMillion(input=3.0, output=15.0, cached=0.3, cache_write=3.75)

    def cost(fresh: int, out: int) -> float:
        prompt = fresh + cached + write
        return price.of(
            Usage(prompt_tokens=prompt, completion_tokens=out, cached_tokens=cached, cache_write_tokens=write)
        )

    assert 0 <= cost(fresh, out) <= cost(fresh + more, out)
    assert cost(fresh, out) < cost(fresh, out + more)


# -- ways to use it -----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["keyword", "dict", "settings", "plugins", "hook"])
async def test_every_way_to_switch_it_on_works(how: str) -> None:
    options: dict[str, dict[str, Any]] = {
        "keyword": {"pricing": True},
        "dict": {"pricing": {"prices": {"anthropic:*": {"input": 3, "output": 15.0}}, "table": False}},
        "settings": {"pricing": PricingSettings(prices={"anthropic:*": PricePerMillion(input=3.0, output=15.0)})},
        "plugins": {"plugins": ["pricing"]},
        "hook": {"hooks": [PricingHook(prices={"anthropic:*": {"input": 3, "output": 15}})]},
    }
    result, _ = await run(ScriptedModel("Hi.", name=SONNET), clock=FakeClock(THEN), **options[how])
    assert result.cost == pytest.approx((10 * 3 + 5 * 15) / 1e6)


def test_the_window_of_the_built_in_hooks_shows_it() -> None:
    assert FromTheWindow is PricingHook


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"prices": {"a:*": {"input": -1, "output": 0}}}, "0 or more"),
        ({"prices": {"a:*": {"input": float("nan"), "output": 0}}}, "dollars per million tokens, 0 or more, got nan"),
        ({"prices": {"a:*": {"input": 1}}}, "output"),
        ({"prices": {"a:*": {"input": 1, "output": 1, "cache": 1}}}, "cache"),
        ({"table": "yes"}, "true or false"),
    ],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Agent(ScriptedModel(), pricing=wrong)


def test_the_table_is_not_imported_before_it_is_wanted() -> None:
    program = (
        "import sys, locus_plugin_pricing.manifest, locus_plugin_pricing.hook as h\n"
        "h.PricingHook(h.PricingSettings(table=False))\n"
        "assert 'genai_prices' not in sys.modules\n"
        "h.PricingHook()\n"
        "assert 'genai_prices' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
