"""An agent that reflects: when, what comes of it, and what a judge that fails does to the run (nothing)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any

import anyio
import pytest

import locus_plugin_timetravel as timetravel
from locus import Agent, Hook, Role, tool
from locus.config import load_config
from locus.core.errors import Fenced, ModelError, SettingsError, StoreError
from locus.core.events import Event, ReflectEvent, event_from_json, event_to_json
from locus.core.state import AgentState
from locus.core.termination import ConfidenceMet, MaxIterations, TimeLimit, TokenLimit, ToolCalled
from locus.journal import MemoryStore
from locus.models import ModelRequest
from locus.plugin import Plugin, hookimpl
from locus.plugins.discovery import Catalogue
from locus_plugin_reflexion import ReflectionFailedEvent, Reflector, ReflexionHook, ReflexionReport, ReflexionSettings
from locus_plugin_reflexion.manifest import plugin
from locus_testkit import CrashingStore, FailingStore, PluginContract, ScriptedModel, SimulatedCrash, call, never

pytestmark = pytest.mark.anyio

INSTALLED = Catalogue.only(plugin)


class TestPlugin(PluginContract):
    """The manifest keeps its promises."""

    name = "reflexion"


@tool(effect="pure")
def search_flights(origin: str, destination: str, date: str) -> str:
    """Find flights."""
    return "AA-181 11:20, NH-9 13:05"


@tool(idempotent=True)
def book_flight(flight_id: str, customer_id: str) -> str:
    """Book a flight."""
    return f"BK-58291 for {flight_id}"


@tool(effect="pure")
def look(at: int) -> str:
    """Look at something."""
    return f"seen {at}"


@tool
def fail(how: str = "badly") -> str:
    """Fail."""
    raise RuntimeError(how)


def says(confidence: Any, verdict: str = "on_track", judgment: str = "It goes well.", guidance: str = "Go on.") -> str:
    return json.dumps({"verdict": verdict, "judgment": judgment, "confidence": confidence, "guidance": guidance})


def agent(*script: Any, tools: Any = (look, fail), catalogue: Catalogue = INSTALLED, **options: Any) -> Agent[Any, str]:
    return Agent(ScriptedModel(*script), tools=tools, catalogue=catalogue, **options)


async def events_of(run: Any) -> list[Event]:
    return [event async for event in run]


def judge_requests(made: Agent[Any, Any]) -> list[ModelRequest]:
    """What the judge was asked."""
    model: Any = made.runtime.model
    return [request for request in model.requests if request.purpose == "reflexion"]


def record_of(request: ModelRequest) -> Any:
    """The record that a judge was shown."""
    return json.loads(request.messages[1].text.split("\n", 1)[1])


def think_requests(made: Agent[Any, Any]) -> list[ModelRequest]:
    """What Think was asked."""
    model: Any = made.runtime.model
    return [request for request in model.requests if request.purpose == "think"]


# -- the worked example ---------------------------------------------------------------------------


async def test_the_worked_example_of_the_flight_ends_as_its_table_says() -> None:
    search = call("search_flights", origin="JFK", destination="NRT", date="2026-05-04")
    book = call("book_flight", flight_id="AA-181", customer_id="C-42")
    model = ScriptedModel(search, book, says(0.93, judgment="The flight is booked as asked."))
    booking = Agent(
        model,
        tools=[search_flights, book_flight],
        reflexion=True,
        termination=(ToolCalled("book_flight") & ConfidenceMet(0.9)) | MaxIterations(8),
        catalogue=INSTALLED,
    )
    run = booking.run("Book a flight from JFK to NRT on 2026-05-04 for customer C-42.")
    events = await events_of(run)

    told = [(e.iteration, e.type) for e in events if e.type not in ("run_start", "iteration", "model_complete")]
    steps = [each for each in told if each[1] != "checkpoint"]
    assert steps == [
        (1, "think"),
        (1, "tool_start"),
        (1, "tool_complete"),
        (2, "think"),
        (2, "tool_start"),
        (2, "tool_complete"),
        (2, "reflect"),
        (2, "terminate"),
    ]
    nodes = [e.node for e in events if e.type == "checkpoint"]  # type: ignore[attr-defined]
    assert nodes == ["start", "think", "execute", "think", "execute", "reflect", "terminate"]
    (reflect,) = [e for e in events if isinstance(e, ReflectEvent)]
    assert (reflect.confidence, reflect.assessment) == (0.93, "on_track")
    assert reflect.judgment == "The flight is booked as asked."
    result = run.result
    assert (result.stop_reason, result.satisfied) == ("ToolCalled AND ConfidenceMet", ("ToolCalled", "ConfidenceMet"))
    assert [e.tool_name for e in result.state.tool_executions] == ["search_flights", "book_flight"]
    assert (result.iterations, result.state.confidence_history) == (2, (0.93,))
    assert model.remaining == 0
    assert [r.purpose for r in model.requests] == ["think", "think", "reflexion"]


# -- when -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "due"),
    [
        ({"reflexion": True}, [2, 4, 6]),
        ({"reflexion": {}}, [2, 4, 6]),
        ({"reflexion": {"interval": 3}}, [3, 6]),
        ({"reflexion": ReflexionSettings(interval=4)}, [4]),
        ({"reflexion_interval": 3}, [3, 6]),
        ({"reflexion_interval": None}, []),
        ({"reflexion": {"interval": 0}}, []),
        ({"reflexion": ReflexionSettings(interval=None)}, []),
        ({"plugins": ["reflexion"]}, [2, 4, 6]),
        ({"hooks": [ReflexionHook(ReflexionSettings(interval=5))]}, [5]),
        ({"reflexion": False}, []),
        ({}, []),
    ],
)
async def test_the_cadence_is_set_in_every_way_in_which_plugins_are_enabled(
    how: dict[str, Any], due: list[int]
) -> None:
    def turn(request: ModelRequest) -> Any:
        if request.purpose == "reflexion":
            return says(0.1)
        return call("look", at=sum(m.role is Role.ASSISTANT for m in request.messages))

    made = Agent(ScriptedModel(turn, after="repeat"), tools=[look], max_iterations=6, catalogue=INSTALLED, **how)
    events = await events_of(made.run("Look."))
    assert [e.iteration for e in events if isinstance(e, ReflectEvent)] == due


async def test_a_file_configures_it(tmp_path: Any) -> None:
    (tmp_path / "locus.toml").write_text('[plugins]\nenabled = ["reflexion"]\n\n[plugins.reflexion]\ninterval = 1\n')
    made = agent(A, says(0.4), "Done.", config=load_config(tmp_path / "locus.toml"))
    assert (await made.run("Look.")).state.confidence == 0.4


async def test_a_tool_that_failed_is_always_reflected_on_and_one_that_was_refused_is_not() -> None:
    script = [call("fail"), says(0.0, "stuck"), call("look", at="nowhere"), call("nothing"), "I give up."]
    made = agent(*script, reflexion_interval=None)
    result = await made.run("Try.")
    assert result.text == "I give up."
    assert [record_of(request)["why_you_are_asked"] for request in judge_requests(made)] == ["fail failed"]


A, B = call("look", at=1), call("look", at=2)


@pytest.mark.parametrize(
    ("turns", "why"),
    [
        ([A, A, A], "look was called 3 times with the same arguments"),
        ([A, B, A, B], "the last 2 calls repeat the 2 before them"),
        ([[A, B], [A, B], [A, B]], "the same 2 calls were made 3 times"),
        ([[A, A, A]], None),
        ([[A, B, A, B]], None),
        ([call("look", at=n) for n in range(1, 8)], None),
        ([A, B, A], None),
    ],
)
async def test_calls_in_circles_are_reflected_on_and_batches_and_pages_are_not(
    turns: list[Any], why: str | None
) -> None:
    script = [*turns, *([says(0.1, "loop")] if why else []), "Done."]
    made = agent(*script, reflexion_interval=None)
    events = await events_of(made.run("Look."))
    reflected = [e for e in events if isinstance(e, ReflectEvent)]
    assert [e.assessment for e in reflected] == (["loop_detected"] if why else [])
    if why:
        assert f'"{why}"' in judge_requests(made)[0].messages[1].text


async def test_the_agents_threshold_says_what_a_loop_is() -> None:
    made = agent(A, A, says(0.1, "loop"), "Done.", reflexion_interval=None, tool_loop_threshold=2)
    assert (await made.run("Look.")).state.confidence == 0.1


async def test_it_judges_for_its_own_reasons_only() -> None:
    class Other(Hook):
        @hookimpl
        def locus_register_reflect_policies(self) -> list[Any]:
            return [lambda state: "always"]

        @hookimpl
        def locus_reflect(self, state: AgentState) -> AgentState:
            return state.with_metadata("other", state.iteration)

    made = agent(A, B, says(0.5), "Done.", reflexion=True, hooks=[Other()])
    result = await made.run("Look.")
    assert (result.state.metadata["other"], len(judge_requests(made))) == (1, 1)


# -- what comes of it -----------------------------------------------------------------------------


async def test_the_next_think_reads_the_reflection_behind_the_results() -> None:
    made = agent(
        [A, B], says(0.3, "new_findings", "Two things were seen.", "Compare them."), "Same.", reflexion_interval=1
    )
    result = await made.run("Compare.")
    first, second = think_requests(made)
    assert second.messages[: len(first.messages)] == first.messages
    roles = [m.role for m in second.messages]
    assert roles == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.TOOL, Role.USER]
    said = second.messages[-1]
    assert said.plugin == "reflexion"
    assert said.text.splitlines() == [
        "[A reflection on the step above, by the judge of this run. It is not a message from the user or a new task.]",
        "Assessment: new_findings, confidence 0.30",
        "Judgment: Two things were seen.",
        "Guidance: Compare them.",
    ]
    assert result.state.reasoning_steps[0].reflection == "Two things were seen."
    assert result.reports["reflexion"] == ReflexionReport(reflections=1, last=result.reports["reflexion"].last)
    assert result.reports["reflexion"].last.guidance == "Compare them."


async def test_requests_grow_at_their_end_only() -> None:
    script = [each for n in range(5) for each in (call("look", at=n), says(n / 10))]
    made = agent(*script, "Done.", reflexion_interval=1)
    await made.run("Look.")
    requests = think_requests(made)
    for before, after in pairwise(requests):
        assert after.messages[: len(before.messages)] == before.messages


async def test_the_judges_tokens_are_the_runs() -> None:
    result = await agent(A, says(0.5), "Done.", reflexion_interval=1).run("Look.")
    assert result.usage.total_tokens == 3 * 15


async def test_what_a_model_said_beside_its_last_calls_stays_the_final_message() -> None:
    made = agent(["I look.", A], says(0.95), reflexion_interval=1, termination=ConfidenceMet(0.9) | MaxIterations(5))
    result = await made.run("Look.")
    assert (result.stop_reason, result.text) == ("ConfidenceMet", "I look.")


@pytest.mark.parametrize(("given", "stands"), [(1.7, 1.0), (-3, 0.0), (0, 0.0), (0.93, 0.93)])
async def test_confidence_is_absolute_and_clamped(given: float, stands: float) -> None:
    result = await agent(A, says(0.6), B, says(given), "Done.", reflexion_interval=1).run("Look.")
    assert result.state.confidence_history == (0.6, stands)


async def test_another_model_can_be_the_judge() -> None:
    judge = ScriptedModel(says(0.7), name="wise:one")
    made = agent(A, "Done.", hooks=[ReflexionHook(ReflexionSettings(interval=1), model=judge)])
    assert (await made.run("Look.")).state.confidence == 0.7
    assert [r.purpose for r in judge.requests] == ["reflexion"]


class Wise:
    """A provider for the tests: its model answers what its name says."""

    def __init__(self, name: str, settings: Any) -> None:
        self._model = ScriptedModel(says(float(name)), after="repeat", name=f"wise:{name}")
        self.name, self.complete = self._model.name, self._model.complete


async def test_another_model_can_be_the_judge_by_its_name() -> None:
    wise = Plugin(name="wise", api=(1, 0), summary="A judge.", provides={"model": f"{__name__}:Wise"})
    sees = Catalogue.only(plugin, wise)
    made = agent(A, "Done.", catalogue=sees, reflexion={"interval": 1, "model": "wise:0.25"})
    assert (await made.run("Look.")).state.confidence == 0.25


async def test_the_rules_judge_asks_nobody() -> None:
    made = agent(A, B, A, call("fail"), "Done.", reflexion={"interval": 1, "judge": "rules"})
    result = await made.run("Look.")
    assert judge_requests(made) == []
    assert result.state.confidence_history == (1 / 6, 2 / 6, 2 / 6, 2 / 6)
    assert result.reports["reflexion"].last.verdict == "stuck"


async def test_runs_side_by_side_keep_their_reflections_apart() -> None:
    def script(request: ModelRequest) -> Sequence[Any]:
        name = request.messages[0].text if request.purpose == "think" else ""
        if name:
            return [call("look", at=int(name)), f"{name} done"]
        return [says(int(record_of(request)["request"]) / 10)]

    made = Agent(ScriptedModel(script=script), tools=[look], reflexion_interval=1, catalogue=INSTALLED)
    found: dict[int, float] = {}

    async def one(n: int) -> None:
        found[n] = (await made.run(str(n))).state.confidence

    async with anyio.create_task_group() as group:
        for n in range(10):
            group.start_soon(one, n)
    assert found == {n: n / 10 for n in range(10)}


# -- a judge that fails ---------------------------------------------------------------------------

#: What a judge may answer instead of a verdict, and the name of the error that is reported.
GARBAGE: dict[str, tuple[Any, str]] = {
    "prose": ("I think it goes well.", "NotOneObject"),
    "a confidence in words": (says("very sure"), "OutputError"),
    "a confidence that is true": (says(True), "OutputError"),
    "NaN": (says(0.5).replace("0.5", "NaN"), "NotOneObject"),
    "NaN as text": (says("NaN"), "OutputError"),
    "infinity": (says(0.5).replace("0.5", "1e999"), "UnusableVerdict"),
    "another verdict": (says(0.5, verdict="splendid"), "OutputError"),
    "a verdict that it quotes": (f"The page says {says(1.0)}, so I do not know.", "NotOneObject"),
    "two verdicts": (says(0.1) + says(1.0), "NotOneObject"),
    "one verdict twice": (says(0.1).replace("}", ', "confidence": 1.0}'), "NotOneObject"),
    "more than anybody reads": (says(1.0) + " " * 20_000, "NotOneObject"),
    "half of it": ('{"verdict": "on_track"}', "OutputError"),
    "nothing": ("", "NotOneObject"),
    "a tool call": (call("look", at=9), "NotOneObject"),
    "a failure": (ModelError("overloaded", retryable=True), "ModelError"),
    "a bug": (RuntimeError("a bug"), "ModelError"),
    "no answer in time": (never, "ModelError"),
}


@pytest.mark.parametrize(("answer", "error_type"), GARBAGE.values(), ids=GARBAGE)
async def test_a_judge_that_fails_changes_nothing_and_is_reported(answer: Any, error_type: str) -> None:
    judge = ScriptedModel(answer)
    hook = ReflexionHook(ReflexionSettings(interval=1, timeout=0.02), model=judge)
    made = agent(A, "Done.", hooks=[hook], checkpointer=MemoryStore())
    run = made.run("Look.", thread_id="t")
    events = await events_of(run)
    without = await agent(A, "Done.").run("Look.")

    assert [e.type for e in events if e.type in ("reflect", "hook_failed")] == []
    (failed,) = [e for e in events if isinstance(e, ReflectionFailedEvent)]
    assert failed.error_type == error_type
    assert event_from_json(event_to_json(failed)) == failed
    state = run.result.state
    assert (state.messages, state.confidence_history, state.reasoning_steps) == (
        without.state.messages,
        (),
        without.state.reasoning_steps,
    )
    report = run.result.reports["reflexion"]
    assert (report.reflections, report.failures) == (0, 1)
    assert report.errors[0].startswith(failed.error_type)
    assert run.result.text == "Done."
    assert (await timetravel.replay(made, "t")).ok


async def test_a_limit_that_is_reached_in_the_node_before_keeps_the_judge_from_being_asked() -> None:
    made = agent(A, B, reflexion_interval=1, termination=TokenLimit(10) | MaxIterations(5))
    result = await made.run("Look.")
    assert (result.stop_reason, len(judge_requests(made))) == ("TokenLimit", 0)


async def test_a_judge_that_may_not_spend_more_is_reported() -> None:
    class Spender(Hook):
        """Spends what is left right before the judge is asked."""

        @hookimpl
        async def locus_reflect(self, state: AgentState, run: Any) -> None:
            await run.call_model(ModelRequest(messages=state.messages), purpose="waste")

    hooks = [Spender(), ReflexionHook(ReflexionSettings(interval=1))]
    made = agent(A, "Wasted.", hooks=hooks, termination=TokenLimit(20) | MaxIterations(5))
    result = await made.run("Look.")
    assert result.stop_reason == "TokenLimit"
    assert result.reports["reflexion"].errors[0].startswith("BudgetExceeded")


async def test_a_worker_that_must_not_go_on_is_not_a_failing_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    async def lost(*_: Any, **__: Any) -> None:
        raise Fenced("another worker has the thread")

    monkeypatch.setattr(Reflector, "judge", lost)
    result = await agent(A, "Done.", reflexion_interval=1).run("Look.")
    assert result.stop_reason == "NodeError"
    assert isinstance(result.error, Fenced)


async def test_the_judge_is_asked_for_so_much_and_for_no_longer_than_the_run_may_last() -> None:
    limit = TimeLimit(5) | MaxIterations(5)
    made = agent(A, says(0.1), "Done.", reflexion={"interval": 1, "max_tokens": 77}, termination=limit)
    await made.run("Look.")
    (request,) = judge_requests(made)
    assert request.settings.max_tokens == 77
    assert request.deadline is not None
    assert request.deadline <= anyio.current_time() + 5
    assert request.output is not None
    assert set(request.output.schema["required"]) == {"judgment", "verdict", "confidence"}


async def test_an_endless_row_of_failures_is_counted_and_not_collected() -> None:
    script = [each for n in range(9) for each in (call("look", at=n), "garbage")]
    result = await agent(*script, "Done.", reflexion_interval=1).run("Look.")
    assert (result.reports["reflexion"].failures, len(result.reports["reflexion"].errors)) == (9, 5)


@pytest.mark.parametrize(
    "wrong", [{"interval": -1}, {"interval": True}, {"timeout": 0}, {"judge": "me"}, {"window": 0}, {"lessons": -1}]
)
def test_settings_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        agent(reflexion=wrong)


# -- crashes and replays --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "raised"), [(CrashingStore, SimulatedCrash), (FailingStore, StoreError)], ids=["dies", "fails"]
)
@pytest.mark.parametrize(("stored", "judged"), [(True, 1), (False, 2)])
async def test_a_crash_at_the_reflection_leaves_one_reflection_behind(
    stored: bool, judged: int, kind: type[CrashingStore], raised: type[BaseException]
) -> None:
    def turn(request: ModelRequest) -> Any:
        if request.purpose == "reflexion":
            return says(0.5)
        return A if len(request.messages) == 1 else "Done."

    store = kind("reflect", stored=stored)
    made = Agent(
        ScriptedModel(turn, after="repeat"), tools=[look], reflexion_interval=1, checkpointer=store, catalogue=INSTALLED
    )
    with pytest.raises(raised):
        await made.run("Look.", thread_id="t")
    assert store.crashes == 1
    await store.revive()
    result = await made.resume("t")

    assert (result.text, result.state.confidence_history) == ("Done.", (0.5,))
    assert len(judge_requests(made)) == judged
    assert sum(m.plugin == "reflexion" for m in result.state.messages) == 1
    assert (await timetravel.replay(made, "t")).ok


async def test_a_replay_asks_no_judge_and_finds_no_difference() -> None:
    script = [A, says(0.2), call("fail"), says(0.3, "stuck"), B, "garbage", "Done."]
    made = agent(*script, reflexion={"interval": 1, "lessons": 2}, checkpointer=MemoryStore())
    await made.run("Look.", thread_id="t")
    replay = await timetravel.replay(made, "t")
    assert replay.ok, replay
    assert len(judge_requests(made)) == 3


# -- lessons --------------------------------------------------------------------------------------


def lesson(text: str) -> str:
    return says(0.1, "stuck", "It failed.", text)


async def test_lessons_of_failed_steps_are_passed_to_the_next_attempt_on_the_thread() -> None:
    store = MemoryStore()
    options: dict[str, Any] = {"reflexion": {"interval": None, "lessons": 2}, "checkpointer": store}
    script = [call("fail", how=str(n)) for n in range(3)]
    taught = [each for n, turn in enumerate(script) for each in (turn, lesson(f"Not {n}."))]
    await agent(*taught, "I give up.", **options).run("Try.", thread_id="t")

    again = agent(A, "Done.", "And again.", **options)
    result = await again.run("Try again.", thread_id="t")
    first, second = think_requests(again)
    said = first.messages[-1]
    assert said.plugin == "reflexion"
    assert said.text.splitlines()[1:] == ["- Not 1.", "- Not 2."]
    assert first.messages[-2].text == "Try again."
    assert second.messages[: len(first.messages)] == first.messages
    assert sum("Lessons" in m.text for m in result.state.messages) == 1
    assert (await timetravel.replay(again, "t")).ok


async def test_lessons_are_dropped_once_the_confidence_is_where_it_should_be() -> None:
    store = MemoryStore()
    options: dict[str, Any] = {"reflexion": {"interval": 1, "lessons": 2}, "checkpointer": store}
    await agent(call("fail"), lesson("Not so."), A, says(0.9), "Done.", **options).run("Try.", thread_id="t")
    again = agent("Hello.", **options)
    assert len((await timetravel.history(again, "t")).state.metadata["reflexion"]["lessons"]) == 0
    await again.run("Hello?", thread_id="t")
    assert not any("Lessons" in m.text for m in think_requests(again)[0].messages)


async def test_a_lesson_is_kept_once_and_as_long_as_nobody_is_sure() -> None:
    script = [
        call("fail"),
        lesson("Not so."),
        call("fail", how="2"),
        lesson("Nor so."),
        call("fail"),
        lesson("Not so."),
    ]
    made = agent(*script, A, says(0.79), "Done.", reflexion={"interval": 1, "lessons": 5})
    assert (await made.run("Try.")).state.metadata["reflexion"]["lessons"] == ("Nor so.", "Not so.")


async def test_without_the_setting_no_lesson_is_kept_and_no_node_wrapped() -> None:
    made = agent(call("fail"), lesson("Not so."), "Done.", reflexion=True)
    assert "reflexion" not in (await made.run("Try.")).state.metadata
    assert made.runtime.hooks.impls("locus_wrap_node") == ()


async def test_metadata_of_another_plugin_under_its_name_is_not_a_lesson() -> None:
    made = agent("Hello.", reflexion={"lessons": 1})
    result = await made.run("Hello?", metadata={"reflexion": {"lessons": "all"}})
    assert len(result.state.messages) == 2


def test_the_reflector_is_found_where_programs_look_for_it() -> None:
    assert import_module("locus.reasoning.reflexion").Reflector is Reflector


async def test_a_step_that_called_a_tool_of_after_is_judged_at_once() -> None:
    made = agent(
        call("look", at=1),
        says(0.9),
        call("fail"),
        says(0.1),
        "Done.",
        reflexion={"interval": None, "after": ["look", "fail"]},
    )
    events = await events_of(made.run("Look."))
    assert [e.iteration for e in events if isinstance(e, ReflectEvent)] == [1, 2]  # the failure as in any case
    with pytest.raises(SettingsError, match="after is 'look'; expected a list"):
        agent(reflexion={"after": "look"})
