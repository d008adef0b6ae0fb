"""A person answers questions about calls in a terminal, and later on the command line."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Locus = Callable[..., Any]
Open = Callable[..., Any]

QUESTION = "May this call run? charge(cents=5)"


@pytest.fixture
def command(tools: str, here: Path) -> list[str]:
    """A run whose model wants to pay; its tool does not wait."""
    (here / "gate").touch()
    (here / "locus.toml").write_text('[plugins.approval]\ntools = ["charge"]\n')
    return ["Pay it.", "-m", "toy:pays", "-t", tools, "-p", "approval"]


def test_reasons_and_arguments_are_typed_in_the_terminal(terminal: Open, command: list[str], here: Path) -> None:
    running = terminal("run", *command)

    running.expect(f"? {QUESTION} (charge)")
    running.expect("4. always")
    assert "about:" not in running.output
    running.send("yes\n")
    running.expect("'yes' is not one of the answers")
    running.send("edit\n")
    running.expect("all arguments, as a JSON object")
    running.send("{cents: 7}\n")
    running.expect("this is not JSON")
    running.send("[7]\n")
    running.expect("expected a JSON object")
    running.send('{"cents": "many"}\n')
    running.expect("The arguments that you gave do not fit")
    running.expect("4. always")
    running.send("3\n")
    running.expect("all arguments, as a JSON object")
    running.send('{"cents": 7}\n')
    running.expect("charged 7")
    assert running.finish() == 0
    assert (here / "charges").read_text() == "once\n"


def test_a_rejection_in_a_chat_tells_the_model_why(terminal: Open, command: list[str], here: Path) -> None:
    running = terminal("chat", *command[1:])

    running.expect("> ")
    running.send("Pay it.\n")
    running.expect("4. always")
    running.send("reject\n")
    running.expect("why?")
    running.send("ask Ann first\n")
    running.expect("a person refused this call: ask Ann first")
    running.expect("It is paid.")
    assert not (here / "charges").exists()


@pytest.mark.parametrize(
    ("answer", "said", "charges"),
    [
        ('{"reason": "too dear"}', "a person refused this call: too dear", 0),
        ('{"arguments": {"cents": 1}}', "charged 1", 1),
        ("always", "charged 5", 1),
    ],
)
def test_a_run_that_was_killed_while_its_question_was_open_is_answered_later(
    terminal: Open, process: Locus, command: list[str], here: Path, answer: str, said: str, charges: int
) -> None:
    running = terminal("run", *command, "--thread", "t", "--checkpointer", "t.db")
    running.expect("4. always")
    os.kill(running._process.pid, signal.SIGKILL)
    running.finish()

    for wrong in ('{"arguments": 5}', "{cents", "yes"):
        refused = process("run", "--thread", "t", "--checkpointer", "t.db", "--resume", "--answer", wrong)
        assert refused.status == 2, refused
        assert not (here / "charges").exists()
    done = process("run", "--thread", "t", "--checkpointer", "t.db", "--resume", "--answer", answer)

    assert done.status == 0, done.err
    assert said in done.out
    assert (here / "charges").exists() == bool(charges)
