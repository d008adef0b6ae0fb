"""``locus chat`` with its input from a pipe: a script of turns and commands."""

from __future__ import annotations

import json
from collections.abc import Callable
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
