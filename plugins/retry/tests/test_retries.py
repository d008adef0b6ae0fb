"""What is asked again and what is not, how long is waited, and what a run is charged."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

import locus_plugin_timetravel as timetravel
from locus import Agent, ConfigError, Hook, Usage, tool
from locus.core.errors import ContextOverflow, ModelError
from locus.core.events import ModelChunkEvent, ModelCompleteEvent, ModelRestartEvent, event_from_json, event_to_json
from locus.core.messages import Message, Role, ThinkingBlock
from locus.core.termination import MaxIterations, TimeLimit, TokenLimit
from locus.hooks.builtin import ModelRetryHook as FromTheWindow
from locus.journal import MemoryStore
from locus.models import ModelResponse
from locus_plugin_retry import ModelFallbackEvent, ModelRetryEvent, ModelRetryHook, RetryReport, RetrySettings
from locus_testkit import ScriptedModel, SimulatedCrash, call, every_crash

from .kit import Waits, busy, collected, hook, model

pytestmark = pytest.mark.anyio


def empty(stop_reason: Any = "stop") -> ModelResponse:
    message = Message(Role.ASSISTANT, ThinkingBlock("hm"))
    return ModelResponse(message=message, usage=Usage(prompt_tokens=10, completion_tokens=5), stop_reason=stop_reason)


TRANSIENT = [
    busy(429),
    busy(500),
    busy(503),
    busy(529),
    busy(400, retryable=True),
    TimeoutError("late"),
    ConnectionResetError("reset"),
    "",
    "  \n",
    empty(),
]
PERMANENT = [
    busy(400),
    busy(401),
    busy(404),
    busy(501),
    busy(503, retryable=False),
    ContextOverflow("too long"),
    ValueError("a bug"),
    FileNotFoundError("no key file"),
]


@pytest.mark.parametrize("failure", TRANSIENT, ids=map(str, range(len(TRANSIENT))))
async def test_what_may_pass_is_asked_again(failure: Any) -> None:
    waits, asked = Waits(), model(failure, "Hi.")
    result, _ = await collected(Agent(asked, hooks=[hook(waits)]))
    assert result.text == "Hi."
    assert len(asked.requests) == 2
    assert asked.requests[0] == asked.requests[1]
    assert result.reports["retry"].retries == 1


@pytest.mark.parametrize("failure", PERMANENT, ids=map(str, range(len(PERMANENT))))
async def test_what_does_not_pass_is_asked_once(failure: Any) -> None:
    waits, asked = Waits(), model(failure, "Hi.")
    result, _ = await collected(Agent(asked, hooks=[hook(waits, fallback=[model("B", name="b:b")])]))
    assert result.stop_reason == "ModelError"
    assert len(asked.requests) == 1
    assert waits.total == 0
    assert "retry" not in result.reports


@pytest.mark.parametrize("reason", ["length", "filter", "refusal"])
async def test_an_answer_that_was_cut_off_or_filtered_is_not_an_empty_answer(reason: str) -> None:
    asked = model(empty(reason), "Hi.")
    await collected(Agent(asked, hooks=[hook(Waits())]))
    assert len(asked.requests) == 1


async def test_an_answer_of_tool_calls_alone_is_not_an_empty_answer_and_empty_ones_may_be_left_alone() -> None:
    @tool
    def look() -> str:
        """Look."""
        return "seen"

    asked = model(call("look"), "")
    settings = RetrySettings(retry_empty=False)
    result, _ = await collected(Agent(asked, tools=[look], hooks=[ModelRetryHook(settings, sleep=Waits())]))
    assert (len(asked.requests), result.stop_reason) == (2, "EmptyAnswer")


@pytest.mark.parametrize("retries", [0, 1, 3])
async def test_no_more_than_so_often(retries: int) -> None:
    asked = model(busy(), after="repeat")
    result, events = await collected(Agent(asked, hooks=[hook(Waits(), max_retries=retries)]))
    assert len(asked.requests) == retries + 1
    assert result.stop_reason == "ModelError"
    assert isinstance(result.error, ModelError)
    assert result.error.status == 503
    assert not [e for e in events if e.type == "hook_failed"], "a provider's bad day is not the plugin's"


async def test_an_answer_that_stays_empty_is_the_end() -> None:
    result, _ = await collected(Agent(model("", after="repeat"), hooks=[hook(Waits(), max_retries=2)]))
    assert (result.stop_reason, result.text) == ("EmptyAnswer", "")
    assert result.reports["retry"].empty == 3


async def test_a_limit_ends_the_attempts() -> None:
    paid, limit = busy(usage=Usage(prompt_tokens=10)), TokenLimit(15) | MaxIterations(9)
    asked, other = model(paid, after="repeat"), model("Hi.", name="acme:other")
    result, events = await collected(
        Agent(asked, hooks=[hook(Waits(), max_retries=9, fallback=[other])], termination=limit)
    )
    assert (len(asked.requests), len(other.requests), result.usage.prompt_tokens) == (2, 0, 20)
    assert result.stop_reason == "TokenLimit"
    assert not [e for e in events if isinstance(e, ModelFallbackEvent)]


async def test_an_empty_answer_is_accepted_when_a_limit_leaves_no_further_attempt() -> None:
    asked, other = model("", after="repeat"), model("Hi.", name="acme:other")
    limit = TokenLimit(20) | MaxIterations(9)
    for settings in ({"max_retries": 9}, {"max_retries": 1}):
        before = len(asked.requests)
        result, _ = await collected(
            Agent(asked, hooks=[hook(Waits(), fallback=[other], **settings)], termination=limit)
        )
        assert (len(asked.requests) - before, len(other.requests), result.usage.total_tokens) == (2, 0, 30)
        assert (result.stop_reason, result.text) == ("TokenLimit", "")


async def test_every_attempt_is_charged() -> None:
    failed = busy(usage=Usage(prompt_tokens=7, completion_tokens=2))
    result, events = await collected(Agent(model(failed, "", busy(), "Hi."), hooks=[hook(Waits())]))
    assert result.usage.total_tokens == 9 + 15 + 15
    (complete,) = [e for e in events if isinstance(e, ModelCompleteEvent)]
    assert (complete.attempts, complete.usage.total_tokens) == (4, 39)


async def test_what_a_failed_attempt_streamed_is_void() -> None:
    class Breaks:
        name = "acme:big"
        times = 0

        async def complete(self, request: Any, on_chunk: Any = None) -> ModelResponse:
            self.times += 1
            inner = ScriptedModel("one two", chunks=True)
            response = await inner.complete(request, on_chunk)
            if self.times == 1:
                raise ConnectionResetError
            return response

    _, events = await collected(Agent(Breaks(), hooks=[hook(Waits())]))
    told = [e for e in events if isinstance(e, ModelChunkEvent | ModelRestartEvent)]
    restart = next(n for n, e in enumerate(told) if isinstance(e, ModelRestartEvent))
    assert {e.attempt for e in told[:restart]} == {0}
    assert {e.attempt for e in told[restart + 1 :]} == {1}
    assert len(told[:restart]) == len(told[restart + 1 :])


# -- waiting ------------------------------------------------------------------------------------------


async def test_waits_are_random_and_at_most_double_each_time() -> None:
    waits = Waits()
    _, events = await collected(
        Agent(model(busy(), after="repeat"), hooks=[hook(waits, max_retries=6, backoff=1.0, max_backoff=8.0)])
    )
    told = [e.wait for e in events if isinstance(e, ModelRetryEvent)]
    assert len(told) == 6
    assert all(0 <= wait <= most for wait, most in zip(told, (1, 2, 4, 8, 8, 8), strict=True))
    assert len(set(told)) == 6
    assert waits.total == pytest.approx(sum(told))


async def test_the_providers_own_wait_is_kept() -> None:
    waits = Waits()
    result, _ = await collected(Agent(model(busy(429, retry_after=42.0), "Hi."), hooks=[hook(waits)]))
    assert result.text == "Hi."
    assert waits.total == pytest.approx(42.0)
    assert result.reports["retry"].waited == pytest.approx(42.0)


@pytest.mark.parametrize("odd", [-5.0, float("nan"), 0.0])
async def test_an_invalid_wait_is_ignored(odd: float) -> None:
    waits = Waits()
    result, _ = await collected(Agent(model(busy(429, retry_after=odd), "Hi."), hooks=[hook(waits, backoff=0.5)]))
    assert result.text == "Hi."
    assert waits.total <= 0.5


async def test_a_provider_that_asks_for_too_long_a_wait_is_given_up() -> None:
    waits, asked = Waits(), model(busy(429, retry_after=3600.0), "Hi.")
    result, _ = await collected(Agent(asked, hooks=[hook(waits)]))
    assert (result.stop_reason, waits.total, len(asked.requests)) == ("ModelError", 0, 1)


async def test_a_wait_that_the_deadline_does_not_leave_is_not_begun() -> None:
    waits, asked = Waits(), model(busy(429, retry_after=60.0), "Hi.")
    agent = Agent(asked, clock=waits.clock, hooks=[hook(waits)], termination=TimeLimit(30))
    result, _ = await collected(agent)
    assert (result.stop_reason, waits.total, len(asked.requests)) == ("ModelError", 0, 1)


async def test_a_cancel_ends_a_wait() -> None:
    class Impatient(Waits):
        async def __call__(self, seconds: float) -> None:
            await super().__call__(seconds)
            if self.total > 3:
                agent.cancel("enough")

    waits, asked = Impatient(), model(busy(429, retry_after=60.0), "Hi.")
    agent = Agent(asked, hooks=[hook(waits, fallback=[model("B", name="b:b")])])
    result, _ = await collected(agent)
    assert result.stop_reason == "Cancelled: enough"
    assert 3 < waits.total <= 3.5
    assert len(asked.requests) == 1


async def test_a_cancel_in_a_wait_after_an_empty_answer_asks_nobody_else() -> None:
    class Impatient(Waits):
        async def __call__(self, seconds: float) -> None:
            agent.cancel("enough")

    other = model("B", name="b:b")
    agent = Agent(model("", after="repeat"), hooks=[hook(Impatient(), fallback=[other])])
    result, _ = await collected(agent)
    assert result.stop_reason == "Cancelled: enough"
    assert not other.requests


async def test_cancelling_the_task_ends_a_wait_at_once() -> None:
    agent = Agent(model(busy(429, retry_after=100.0), "Hi."), hooks=[ModelRetryHook()])
    with anyio.move_on_after(0.05) as scope:
        await agent.run("Hi.")
    assert scope.cancelled_caught


# -- the record ---------------------------------------------------------------------------------------


async def test_events_say_what_is_tried_again_without_the_providers_words() -> None:
    asked = model(busy(503), "", ConnectionResetError("secret host"), "Hi.")
    _, events = await collected(Agent(asked, hooks=[hook(Waits())]))
    told = [e for e in events if isinstance(e, ModelRetryEvent)]
    assert [(e.model, e.attempt, e.error_type, e.status) for e in told] == [
        ("acme:big", 1, "ModelError", 503),
        ("acme:big", 2, "", None),
        ("acme:big", 3, "ConnectionResetError", None),
    ]
    assert [event_from_json(event_to_json(e)) for e in told] == told
    assert "secret" not in repr([event_to_json(e) for e in told])


async def test_wherever_a_run_dies_one_call_at_most_is_repeated_and_a_replay_shows_no_difference() -> None:
    @tool(effect="pure")
    def look() -> str:
        """Look."""
        return "seen"

    for store in every_crash(least=10):
        failures: dict[int, list[Any]] = {1: [busy()], 3: [busy(), ""]}

        def answer(request: Any, failures: dict[int, list[Any]] = failures) -> Any:
            waiting = failures.get(len(request.messages))
            if waiting:
                return waiting.pop(0)
            return call("look") if len(request.messages) == 1 else "Done."

        asked = model(answer, after="repeat")
        agent = Agent(asked, tools=[look], checkpointer=store, hooks=[hook(Waits())])
        result = await store.outlive(agent, "Look.")
        if result is None:
            continue
        assert result.text == "Done."
        assert len(asked.requests) <= 2 + 3 + 1
        (await timetravel.replay(agent, "t")).raise_for_difference()
        assert len(asked.requests) <= 2 + 3 + 1, "a replay asks nobody"


async def test_a_call_that_dies_in_a_wait_begins_again() -> None:
    class Dies(Waits):
        async def __call__(self, seconds: float) -> None:
            raise SimulatedCrash

    store, asked = MemoryStore(), model(busy(), "Hi.")
    with pytest.raises(SimulatedCrash):
        await Agent(asked, checkpointer=store, hooks=[hook(Dies())]).run("Hi.", thread_id="t")
    result = await Agent(asked, checkpointer=store, hooks=[hook(Waits())]).resume("t")
    assert (result.text, len(asked.requests)) == ("Hi.", 2)


async def test_parallel_runs_of_one_agent_count_for_themselves() -> None:
    tried = set[str]()

    def flaky(request: Any) -> Any:
        prompt = request.messages[0].text
        if prompt == "two" and prompt not in tried:
            tried.add(prompt)
            return busy()
        return prompt

    agent, results = Agent(model(flaky, after="repeat"), hooks=[hook(Waits())]), {}

    async def one(prompt: str) -> None:
        results[prompt] = await agent.run(prompt)

    async with anyio.create_task_group() as group:
        group.start_soon(one, "one")
        group.start_soon(one, "two")
    assert results["two"].reports["retry"].retries == 1
    assert "retry" not in results["one"].reports


# -- ways to use it -----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["keyword", "dict", "settings", "plugins", "hook"])
async def test_every_way_to_switch_it_on_works(how: str) -> None:
    quick = RetrySettings(backoff=0.0)
    options: dict[str, dict[str, Any]] = {
        "keyword": {"retry": True},
        "dict": {"retry": {"backoff": 0.0, "model_breaker": {"failures": 9}}},
        "settings": {"retry": quick},
        "plugins": {"plugins": ["retry"]},
        "hook": {"hooks": [ModelRetryHook(quick)]},
    }
    failure = "" if how in ("keyword", "plugins") else busy()
    asked = model(failure, "Hi.")
    if how in ("keyword", "plugins"):
        asked = model(busy(400), "Hi.")  # the default waits are real ones
    result = await Agent(asked, **options[how]).run("Hi.")
    assert [p.status for p in result.reports["plugins"].plugins if p.name == "retry"] == ["active"]
    if failure != "":
        assert result.reports["retry"] == RetryReport(retries=1)


def test_the_window_of_the_built_in_hooks_shows_it() -> None:
    assert FromTheWindow is ModelRetryHook


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"max_retries": -1}, "0 or more"),
        ({"backoff": float("inf")}, "finite"),
        ({"max_backoff": -1.0}, "0 or more"),
        ({"max_retry_after": float("nan")}, "0 or more, got nan"),
        ({"fallback": [3]}, "fallback"),
        ({"fallback": [ScriptedModel]}, "fallback"),
        ({"model_breaker": {"failures": 0}}, "1 or more"),
        ({"max_retires": 1}, "max_retries"),
    ],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Agent(ScriptedModel(), retry=wrong)


async def test_other_hooks_of_the_agent_hear_the_plugins_events() -> None:
    heard = list[float]()

    class Hears(Hook):
        def on_model_retry(self, event: Any) -> None:
            heard.append(event.wait)

    await Agent(model(busy(429, retry_after=2.0), "Hi."), hooks=[hook(Waits()), Hears()]).run("Hi.")
    assert heard == [2.0]
