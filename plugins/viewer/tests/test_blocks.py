"""Entries as blocks: every kind of entry is shown, and what is under way says what it is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from locus.core.journal import (
    END,
    Answered,
    Asked,
    Cancelled,
    Entry,
    Intent,
    ModelFailed,
    Outcome,
    Paused,
    Resumed,
    Retried,
    StateDelta,
    StepId,
    Submitted,
    Transition,
)
from locus.core.messages import Message, Role, ToolCall, Usage
from locus.core.state import ToolExecution
from locus.journal import MemoryStore
from locus_plugin_viewer.blocks import read_blocks
from locus_plugin_viewer.items import Block, ModelItem, NoteItem, QuestionItem, StepItem, ToolItem
from locus_plugin_viewer.rendering import Pages
from locus_plugin_viewer.viewer import Viewer

THINK, CALL = StepId(0, "think"), StepId(0, "execute")
ASKS = Message(Role.ASSISTANT, (ToolCall("c1", "charge", {"cents": 5}),))
AT = datetime(2026, 11, 24, 12, 30, tzinfo=UTC)


def entries(*bodies: Any) -> list[Entry]:
    return [Entry(n, "w", f"{n - 1}:w" if n > 1 else "", body) for n, body in enumerate(bodies, 1)]


def thought(**more: Any) -> Transition:
    change = StateDelta({"updated_at": AT}, {"messages": (0, (ASKS,))})
    return Transition(run_id="r", node="think", next_node="execute", delta=change, **more)


def only(*bodies: Any) -> Block:
    (block,) = read_blocks(entries(*bodies))
    return block


def test_a_call_that_is_under_way_has_the_arguments_that_the_model_gave() -> None:
    _, block = read_blocks(entries(thought(), Intent(run_id="r", step_id=CALL, policy="once")))
    (item,) = block.items
    assert block.is_open
    assert block.node == "execute"
    assert isinstance(item, ToolItem)
    assert (item.name, item.arguments, item.state, item.effect) == ("charge", '{"cents": 5}', "unknown", "once")


def test_a_call_that_was_begun_again_says_how_often() -> None:
    done = ToolExecution(tool_name="charge", call_id="c1", result="ok", duration_ms=12.0)
    outcome = type("Call", (), {"execution": done})()
    again = StepId(0, "execute", attempt=1)
    _, block = read_blocks(
        entries(
            thought(),
            Intent(run_id="r", step_id=CALL),
            Retried(run_id="r", step_id=CALL, reason="a bad answer"),
            Intent(run_id="r", step_id=again),
            _with_value(again, outcome),
        )
    )
    note = next(item for item in block.items if isinstance(item, NoteItem))
    tools = [item for item in block.items if isinstance(item, ToolItem)]
    assert note.text == "a bad answer"
    assert (tools[-1].attempts, tools[-1].took, tools[-1].state) == (2, "12 ms", "done")


def _with_value(step_id: StepId, value: Any) -> Outcome:
    made = Outcome(run_id="r", step_id=step_id)
    object.__setattr__(made, "value", value)
    return made


@pytest.mark.parametrize(
    ("done", "state"),
    [
        ({"result": "ok"}, "done"),
        ({"error": "ValueError: no"}, "failed"),
        ({"error": "Rejected: no", "started": False}, "refused"),
        ({"result": "ok", "cache_hit": True}, "cached"),
        ({"error": "unknown", "outcome_unknown": True}, "unknown"),
    ],
)
def test_a_call_has_the_state_that_it_came_to(done: dict[str, Any], state: str) -> None:
    execution = ToolExecution(tool_name="charge", **done)
    change = StateDelta({}, {"tool_executions": (0, (execution,))})
    (item,) = only(Transition(run_id="r", node="execute", next_node="think", delta=change)).items
    assert isinstance(item, ToolItem)
    assert item.state == state


def test_a_failed_model_call_has_its_error_and_what_it_cost() -> None:
    usage = Usage(prompt_tokens=7)
    failed = ModelFailed(run_id="r", step_id=THINK, error_type="Overloaded", error="try later", usage=usage)
    (item,) = only(failed).items
    assert isinstance(item, ModelItem)
    assert (item.error, item.usage) == ("Overloaded: try later", "7 tokens")


def test_a_question_has_its_answer() -> None:
    asked = Asked(run_id="r", interrupt_id="q", step_id=CALL, question="Pay?", tool_name="charge")
    (before,) = only(asked).items
    (after,) = only(asked, Answered(run_id="r", interrupt_id="q", answer={"pay": True})).items
    assert isinstance(before, QuestionItem)
    assert before.answer is None
    assert isinstance(after, QuestionItem)
    assert after.answer == '{"pay": true}'


@pytest.mark.parametrize(
    ("body", "label", "text"),
    [
        (Cancelled(run_id="r", reason="too dear"), "cancelled", "too dear"),
        (Paused(run_id="r", segment=0, kind="dead_letter", reason="it dies"), "paused: set aside", "it dies"),
        (Paused(run_id="r", segment=0, kind="yielded", not_before=AT), "paused: sleeps until 2026-11-2", ""),
        (Resumed(run_id="r", segment=1), "resumed, segment 2", ""),
        (
            Submitted(run_id="r", prompt=Message(Role.USER, "Go."), queue="shop"),
            "turn submitted to queue shop",
            "Go.",
        ),
    ],
)
def test_what_happened_to_a_run_is_a_note(body: Any, label: str, text: str) -> None:
    block = only(body)
    (item,) = block.items
    assert isinstance(item, NoteItem)
    assert item.label.startswith(label)
    assert item.text == text
    assert block.is_paused == isinstance(body, Paused)


def test_a_node_that_a_hook_chose_is_shown_with_the_one_that_was_left() -> None:
    page = Pages(Viewer(MemoryStore())).blocks("t", [only(thought(instead_of="terminate"))])
    assert "a hook chose it instead of terminate" in page


def test_another_step_has_its_name_and_value() -> None:
    step = StepId(2, "step", name="rates", parent=CALL)
    (item,) = only(Outcome(run_id="r", step_id=step, value={"usd": 1.1})).items
    assert isinstance(item, StepItem)
    assert item.name == "step: rates, inside 0/execute/0"
    assert item.value == '{"usd": 1.1}'


def test_a_run_that_ended_by_an_error_says_so() -> None:
    block = only(
        Transition(run_id="r", node="think", next_node=END, delta=StateDelta(), why="ModelError", error="Boom")
    )
    assert block.ends_run
    assert block.error == "Boom"
