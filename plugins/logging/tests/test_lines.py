"""One line an event: what it says, how important it is, what it does not say."""

from __future__ import annotations

import json
import logging
import threading
from typing import Any

import anyio
import pytest
from attrs import evolve, frozen
from hypothesis import given
from hypothesis import strategies as st

from locus import Agent, ConfigError, Hook, ModelError, TerminateEvent
from locus.core.events import Event, event_types
from locus.hooks.builtin import LoggingHook, StructuredLoggingHook
from locus.models import Price
from locus.plugin import hookimpl, register_event
from locus_plugin_logging import LoggingSettings
from locus_plugin_logging.fields import _SHOWN, event_fields
from locus_plugin_logging.levels import LEVELS, level_number
from locus_plugin_logging.rendering import json_line, text_line
from locus_testkit import ScriptedModel, call
from locus_testkit.strategies import events as emitted

from .kit import agent, kept, run

pytestmark = pytest.mark.anyio


def script(**options: Any) -> ScriptedModel:
    return ScriptedModel(call("add", a=1, b=2), "It is 3.", **options)


async def test_each_event_is_one_line_of_json_with_whose_it_is() -> None:
    with kept() as log:
        result, events = await run(agent(script(), logging={"level": "DEBUG"}), thread_id="t")
    lines = [json.loads(line) for line in log.lines]
    assert [line["event"] for line in lines] == [event.type for event in events]
    for line, event in zip(lines, events, strict=True):
        assert line["run_id"] == result.run_id
        assert (line["thread_id"], line["agent"]) == ("t", "calc")
        assert (line["iteration"], line["seq"]) == (event.iteration, event.seq)
        assert line["time"] == event.timestamp.isoformat(timespec="milliseconds")
    assert [record.created for record in log.records] == [event.timestamp.timestamp() for event in events]


async def test_lines_of_text_are_the_name_of_the_event_and_values() -> None:
    with kept() as log:
        result, _ = await run(agent(script(), hooks=[LoggingHook("INFO")]), thread_id="my thread")
    start = f'run_start run_id={result.run_id} thread_id="my thread" agent=calc iteration=1 seq=1'
    assert log.lines[0] == f"{start} model=scripted:model resumed=false"


@pytest.mark.parametrize(
    "enabled",
    [
        {"logging": True},
        {"logging": {"level": "info"}},
        {"logging": LoggingSettings(level=20)},
        {"plugins": ["logging"]},
        {"hooks": [StructuredLoggingHook(level="INFO")]},
        {"hooks": [StructuredLoggingHook(20)]},
    ],
)
async def test_every_way_to_enable_it_is_the_same(enabled: dict[str, Any]) -> None:
    with kept() as log:
        await run(agent(script(), **enabled))
    assert [json.loads(line)["event"] for line in log.lines] == [
        *("run_start", "iteration", "model_complete", "think", "tool_start", "tool_complete"),
        *("iteration", "model_complete", "think", "terminate"),
    ]


async def test_the_level_of_an_event_is_what_its_record_has() -> None:
    model = ScriptedModel(call("fail", why="no"), ModelError("overloaded"), chunks=True)
    with kept() as log:
        await run(agent(model, logging={"level": "DEBUG"}))
    levels = {record.__dict__["locus"]["event"]: record.levelname for record in log.records}
    assert levels == {
        "run_start": "INFO",
        "checkpoint": "DEBUG",
        "iteration": "INFO",
        "model_chunk": "DEBUG",
        "model_complete": "INFO",
        "think": "INFO",
        "tool_start": "INFO",
        "tool_complete": "WARNING",
        "model_error": "ERROR",
        "terminate": "ERROR",
    }


async def test_a_cancelled_run_ends_with_a_warning_and_without_the_reason() -> None:
    def stop(event: Any, run: Any) -> None:
        run.cancel("ann@example.com asked")

    stopping = type("Stopping", (Hook,), {"on_tool_start": lambda self, event, run: stop(event, run)})()
    with kept() as log:
        result, _ = await run(agent(script(), logging={"level": "DEBUG"}, hooks=[stopping]))
    assert result.stop_reason == "Cancelled: ann@example.com asked"
    assert log.records[-1].levelname == "WARNING"
    assert log.values[-1]["reason"] == "Cancelled"
    assert "example.com" not in "".join(log.lines)


async def test_a_level_of_ones_own_is_kept_whatever_came_of_the_event() -> None:
    model = ScriptedModel(call("fail", why="no"), "Well.")
    levels: dict[str, str | int] = {"tool_complete": "ERROR", "checkpoint": 40}
    with kept() as log:
        await run(agent(model, logging={"level": "ERROR", "levels": levels}))
    assert {values["event"] for values in log.values} == {"tool_complete", "checkpoint"}


@pytest.mark.parametrize("level", ["INOF", "", -1, True, "20"])
def test_an_unknown_level_is_refused_and_the_known_ones_are_named(level: Any) -> None:
    with pytest.raises(ValueError, match="DEBUG, INFO, WARNING, ERROR, CRITICAL, or a whole number from 0"):
        StructuredLoggingHook(level=level)
    with pytest.raises(ConfigError, match="level"):
        Agent(ScriptedModel(), logging={"level": level})
    with pytest.raises(ConfigError, match="not a level"):
        Agent(ScriptedModel(), logging={"levels": {"think": level if isinstance(level, str) else "x"}})


def test_names_known_to_the_standard_library_are_levels_in_any_case() -> None:
    assert [level_number(level) for level in ("info", "Warning", "FATAL", 5)] == [20, 30, 50, 5]


async def test_below_debug_nobody_makes_the_model_stream() -> None:
    def heard(level: str) -> bool:
        hook = LoggingHook(level)
        return hook.on_model_chunk is not None

    assert (heard("INFO"), heard("DEBUG")) == (False, True)
    assert LoggingHook("INFO", levels={"model_chunk": "INFO"}).on_model_chunk is not None


# -- payloads -------------------------------------------------------------------------------------


async def test_payloads_are_logged_only_when_asked_for() -> None:
    words = ("Where is Ann?", "QUERY", "RESULT", "She is here", "hmm")

    def find(query: str) -> str:
        """Find."""
        return "RESULT"

    for payloads in (False, True):
        model = ScriptedModel(call("find", query="QUERY"), "She is here", chunks=True)
        with kept() as log:
            await run(agent(model, tools=[find], logging={"level": "DEBUG", "payloads": payloads}), "Where is Ann?")
        text = "".join(log.lines)
        assert [word in text for word in words[:4]] == [payloads] * 4


DERIVED = {"tools", "success", "error_type", "why", "reason"}
TOKENS = {"input_tokens", "output_tokens", "cached_tokens", "cost"}


@given(st.sampled_from(sorted(_SHOWN)).flatmap(lambda kind: emitted(event_types()[kind])))
def test_without_payloads_a_line_has_no_field_that_is_not_listed(event: Event) -> None:
    assert set(event_fields(event, payloads=False, max_chars=100)) <= {*_SHOWN[event.type], *DERIVED, *TOKENS}


def test_the_tables_know_every_event_of_the_kernel_and_no_other() -> None:
    kernel = {kind for kind, cls in event_types().items() if cls.__module__ == "locus.core.events"}
    assert set(_SHOWN) == kernel
    assert set(LEVELS) <= kernel


@register_event
@frozen(kw_only=True)
class FrostEvent(Event):
    """An event that this plugin cannot know."""

    degrees: float = 0.0
    rule: str = ""
    prompt: str = ""


def test_of_an_event_of_a_plugin_only_numbers_and_names_are_not_a_payload() -> None:
    event = FrostEvent(degrees=3.5, rule="frost", prompt="what Ann asked")
    assert event_fields(event, payloads=False, max_chars=100) == {"degrees": 3.5, "rule": "frost"}
    assert event_fields(event, payloads=True, max_chars=100)["prompt"] == "what Ann asked"


async def test_a_long_text_is_cut_and_a_password_in_one_is_hidden() -> None:
    prompt = "postgres://bob:hunter2@db/x password=hunter3 " + "x" * 5_000
    with kept() as log:
        await run(agent(script(), logging={"payloads": True, "max_chars": 100}), prompt)
    (start,) = log.of("run_start")
    assert "hunter" not in "".join(log.lines)
    assert start["prompt"].endswith(f"xxx... ({len(prompt)} characters)")
    assert len(start["prompt"]) < 150


async def test_what_a_plugin_cuts_out_is_in_no_line() -> None:
    class Cutting(Hook):
        @hookimpl
        async def locus_wrap_tool_call(self, call_next: Any, call: Any) -> Any:
            outcome = await call_next(call)
            return evolve(outcome, content="[cut]", execution=evolve(outcome.execution, result="[cut]"))

        @hookimpl
        def locus_filter_input(self, prompt: Any) -> str:
            return "[cut]"

    def find() -> str:
        """Find."""
        return "the secret"

    hook = StructuredLoggingHook("DEBUG", payloads=True)
    with kept() as log:
        made = agent(ScriptedModel(call("find"), "Done.", chunks=True), tools=[find], hooks=[hook, Cutting()])
        await run(made, "the secret")
    assert log.of("tool_complete")[0]["result"] == "[cut]"
    assert "the secret" not in "".join(log.lines)


# -- injection ------------------------------------------------------------------------------------

HOSTILE = "ok\n2026-01-01 ERROR forged\r\x1b[2J\x00\x7f\x9b31m\u2028\u202eevil\u200b\ufeff\ud800\U000e0041"


@given(st.text() | st.just(HOSTILE))
def test_no_text_makes_a_second_line_or_anything_that_is_not_seen(text: str) -> None:
    for line in (json_line({"x": text, text: 1}), text_line({"x": text})):
        assert len(line.splitlines()) == 1
        assert line.isprintable()
        line.encode()
    assert json.loads(json_line({"x": text}))["x"] == text
    shown = text_line({"x": text}).removeprefix("x=")
    assert (json.loads(shown) if shown.startswith('"') else shown) == text


def test_what_cannot_be_seen_is_written_out() -> None:
    line = json_line({"x": HOSTILE})
    for hidden in (
        "\\n",
        "\\r",
        "\\u001b",
        "\\u0000",
        "\\u007f",
        "\\u2028",
        "\\u202e",
        "\\u200b",
        "\\ufeff",
        "\\ud800",
    ):
        assert hidden in line
    assert json_line({"x": "Zürich 東京"}) == '{"x": "Zürich 東京"}'


async def test_a_tool_that_nobody_has_cannot_forge_a_line_by_its_name() -> None:
    with kept() as log:
        await run(agent(ScriptedModel(call("x\nERROR forged y=1"), "Done."), hooks=[LoggingHook("INFO")]))
    assert all("\n" not in line for line in log.lines)
    assert any('tool_name="x\\nERROR forged y=1"' in line for line in log.lines)


# -- where lines go --------------------------------------------------------------------------------


async def test_without_a_handler_lines_go_to_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.Logger, "hasHandlers", lambda self: False)
    await run(agent(script(), hooks=[LoggingHook("INFO"), StructuredLoggingHook("INFO", logger="other")]))
    lines = capsys.readouterr().err.splitlines()
    assert sum(line.startswith("{") for line in lines) == sum(not line.startswith("{") for line in lines) == 10
    assert any(" INFO tool_complete run_id=" in line for line in lines)


async def test_a_slow_handler_does_not_hold_the_loop_up_and_loses_nothing() -> None:
    loop_thread, release, threads = threading.get_ident(), threading.Event(), set[int]()

    class Slow(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            threads.add(threading.get_ident())
            release.wait(5)

    class Last(Hook):
        def on_terminate(self, event: TerminateEvent) -> None:
            release.set()  # reached although no line was written yet

    slow = Slow()
    with kept() as log:
        logging.getLogger("locus.run").handlers.insert(0, slow)
        try:
            await run(agent(script(), hooks=[Last(), LoggingHook("INFO")]))
        finally:
            logging.getLogger("locus.run").removeHandler(slow)
    assert loop_thread not in threads
    assert log.values[-1]["event"] == "terminate"
    assert len(log.values) == 10


async def test_a_handler_that_fails_is_reported_and_the_run_continues() -> None:
    class Broken(logging.Handler):
        def handle(self, record: logging.LogRecord) -> bool:
            raise OSError("no space left")

    logger = logging.getLogger("locus.broken")
    logger.handlers, logger.propagate = [Broken()], False
    result, _ = await run(agent(script(), logging={"logger": "locus.broken"}))
    assert result.text == "It is 3."
    assert result.reports["logging"] == "10 lines could not be written: OSError('no space left')"


async def test_a_cancelled_run_has_written_all_its_lines() -> None:
    async def wait() -> str:
        """Wait."""
        scope.cancel()
        await anyio.sleep_forever()
        raise AssertionError

    with kept() as log, anyio.CancelScope() as scope:
        await agent(ScriptedModel(call("wait")), tools=[wait], logging=True).run("?")
    assert [values["event"] for values in log.values][-2:] == ["tool_start", "terminate"]


async def test_parallel_runs_of_one_agent_keep_their_lines_apart() -> None:
    made = agent(ScriptedModel(script=lambda request: [call("add", a=1, b=2), "It is 3."]), logging={"level": "DEBUG"})

    async def on(thread_id: str) -> None:
        await run(made, thread_id=thread_id)

    with kept() as log:
        async with anyio.create_task_group() as group:
            for n in range(5):
                group.start_soon(on, f"t{n}")
    for n in range(5):
        seqs = [values["seq"] for values in log.values if values["thread_id"] == f"t{n}"]
        assert seqs == list(range(1, len(seqs) + 1))
    assert len({values["run_id"] for values in log.values}) == 5


async def test_the_usage_of_a_call_and_its_dollars_are_in_its_line() -> None:
    with kept() as log:
        await run(agent(script(price=Price(prompt=1_000_000.0, completion=2_000_000.0)), logging=True))
    first, _ = log.of("model_complete")
    assert (first["input_tokens"], first["output_tokens"], first["cost"]) == (10, 5, 20.0)
    assert log.of("terminate")[0]["cost"] == 40.0
