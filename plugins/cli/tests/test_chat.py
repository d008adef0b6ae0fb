"""``locus chat`` with its input from a pipe: a script of turns and commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Locus = Callable[..., Any]


def answers(out: str) -> list[dict[str, Any]]:
    """What the echoing model said, turn by turn."""
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def test_each_line_is_a_turn_of_one_conversation(process: Locus) -> None:
    done = process("chat", "-m", "toy:echo", stdin=b"one\n\ntwo\n")

    assert done.status == 0
    assert [answer["said"] for answer in answers(done.out)] == [["one"], ["one", "two"]]


def test_commands_are_obeyed_and_not_sent(process: Locus) -> None:
    done = process("chat", "-m", "toy:echo", "-s", "Be brief.", stdin=b"/help\n/system\none\n/tokens\n/quit\ntwo\n")

    assert done.status == 0
    assert "/system [TEXT]" in done.out
    assert "\nBe brief.\n" in done.out
    assert "1 turn, 1,230 tokens (1,000 cached)" in done.out
    assert [answer["said"] for answer in answers(done.out)] == [["one"]]


def test_system_prompt_changes_from_the_next_turn_on(process: Locus) -> None:
    done = process("chat", "-m", "toy:echo", stdin=b"one\n/system Be kind.\n/system\ntwo\n")

    assert [answer["system"] for answer in answers(done.out)] == [[], ["Be kind."]]
    assert [answer["said"] for answer in answers(done.out)] == [["one"], ["one", "two"]]
    assert "\nBe kind.\n" in done.out


def test_new_conversation_knows_nothing_of_the_old(process: Locus) -> None:
    done = process("chat", "-m", "toy:echo", stdin=b"one\n/new\ntwo\n")

    assert [answer["said"] for answer in answers(done.out)] == [["one"], ["two"]]


def test_misspelled_command_is_not_sent(process: Locus) -> None:
    done = process("chat", "-m", "toy:echo", stdin=b"/tokns\n//tokens\n")

    assert "no command /tokns; did you mean /tokens?" in done.err
    assert [answer["said"] for answer in answers(done.out)] == [["/tokens"]]


def test_failed_turn_is_no_end_but_a_status(process: Locus) -> None:
    done = process("chat", "-m", "toy:fails", stdin=b"one\ntwo\n")

    assert done.status == 1
    assert done.lines.count("locus: the turn failed: ModelError: the provider said no") == 2


def test_input_that_is_no_text_is_one_line(process: Locus) -> None:
    done = process("chat", "-m", "toy:echo", stdin=b"\xff\xfe\n", PYTHONUTF8="1", PYTHONIOENCODING="utf-8:strict")

    assert done.status == 2
    assert "the input is no utf-8 text" in done.lines[-1]


def test_question_in_a_pipe_stays_open(process: Locus, tools: str) -> None:
    done = process("chat", "-m", "toy:asks", "-t", tools, stdin=b"one\n")

    assert "the question is still open" in done.err


# --- the window of the model ------------------------------------------------------------------------

ANIMALS = [f"{name} {'x' * 300}" for name in ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibex", "jay")]


def test_chat_goes_on_at_the_window_of_the_model_and_its_thread_stays_usable(process: Locus, tmp_path: Path) -> None:
    kept = ["-m", "toy:narrow", "--thread", "t", "--checkpointer", str(tmp_path / "kept.db")]

    done = process("chat", *kept, stdin="\n".join(ANIMALS).encode())
    after = process("run", f"yak {'x' * 300}", "-q", *kept)

    assert (done.status, done.err.count("failed")) == (0, 0)
    assert done.out.count("stopped: ") == len(ANIMALS)
    assert (after.status, after.err) == (0, "")
    shown = json.loads(after.out)
    assert shown[-1].startswith("yak x")
    assert not any(text.startswith("dog") for text in shown)
    said = process("threads", "show", "t", "--messages", *kept[4:])
    assert all(animal in said.out for animal in ANIMALS)


def test_compact_puts_a_summary_in_the_place_of_what_was_said(process: Locus, tmp_path: Path) -> None:
    kept = ["-m", "toy:narrow", "--thread", "t", "--checkpointer", str(tmp_path / "kept.db")]
    lines = [*(f"{name} {'x' * 100}" for name in ("ant", "bee", "cat", "dog")), "/compact", "eel"]

    done = process("chat", *kept, stdin="\n".join(lines).encode())
    after = process("run", "fox", "-q", *kept)

    assert done.status == 0
    assert "with your next message, a summary takes the place of the older ones" in done.out
    assert "summarize: " in done.out
    shown = json.loads(after.out)
    assert any(text.startswith("[Summary of ") for text in shown)
    assert [text for text in shown if text in ("eel", "fox")] == ["eel", "fox"]


def test_a_table_of_settings_alone_leaves_a_conversation_with_the_manager_it_has_by_default(
    process: Locus, here: Path
) -> None:
    (here / "locus.toml").write_text("[plugins.conversation]\nmax_messages = 4\nslack = 0\n")
    lines = [*(f"{name} {'x' * 100}" for name in ("ant", "bee", "cat", "dog")), "/compact", "eel"]

    done = process("chat", "-m", "toy:narrow", stdin="\n".join(lines).encode())
    assert "a summary takes the place of the older ones" in done.out
    assert "summarize: " in done.out

    done = process("chat", "-m", "toy:narrow", "-p", "conversation", stdin="\n".join(lines).encode())
    assert "decides what the model sees" in done.err


def test_configuration_has_another_manager_or_none(process: Locus, here: Path, tmp_path: Path) -> None:
    kept = ["-m", "toy:echo", "--thread", "t", "--checkpointer", str(tmp_path / "kept.db")]
    (here / "locus.toml").write_text('[agent]\nconversation = "conversation:window:2"\n')
    for text in ("one", "two", "three"):
        done = process("run", text, "-q", *kept)
    assert json.loads(done.out)["said"] == ["three"]
    assert "decides what the model sees" in process("chat", *kept, stdin=b"/compact").err

    (here / "locus.toml").write_text('[agent]\nconversation = "none"\n')
    failed = process("chat", "-m", "toy:narrow", stdin="\n".join(ANIMALS).encode())
    assert failed.status == 1
    assert "characters are too many" in failed.err

    (here / "locus.toml").write_text('[agent]\nconversation = "conversation:windwo"\n')
    wrong = process("run", "x", "-m", "toy:echo")
    assert (wrong.status, len(wrong.lines)) == (2, 1)
    assert "'compact', 'compact:TOKENS'" in wrong.err
