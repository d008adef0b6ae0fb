"""A thread from a file, at a terminal: its pending calls are shown, and run only after a yes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from plugins.cli.tests.conftest import Terminal, environment, here, process, site, terminal, tools, warm_server

__all__ = ["environment", "here", "process", "site", "terminal", "tools", "warm_server"]

Process = Callable[..., Any]
OpenTerminal = Callable[..., Terminal]


@pytest.fixture
def imported(here: Path, process: Process, tools: str) -> str:
    """The id of a thread that was imported while a question of it was open."""
    store = ("--checkpointer", "sqlite:runs.db")
    asked = process("run", "Go", "-m", "toy:asks", "--tools", tools, "--thread", "first", *store)
    assert asked.status == 3, asked.err
    done = process("-p", "timetravel", "threads", "export", "first", *store)
    assert done.status == 0, done.err
    (here / "thread.jsonl").write_text(done.out)
    done = process("-p", "timetravel", "threads", "import", "thread.jsonl", "--into", "copy", *store)
    assert done.status == 0, done.err
    return "copy"


RESUME = ("threads", "resume", "copy", "--checkpointer", "sqlite:runs.db", "-m", "toy:asks")


def test_after_a_yes_the_calls_run_and_ask_again(imported: str, terminal: OpenTerminal, tools: str) -> None:
    shown = terminal(*RESUME, "--tools", tools)
    shown.expect("was imported")
    shown.expect('ask(question="Delete it?")')
    shown.expect("Run them? [y/N] ")
    shown.send("y\n")
    shown.expect("? Delete it?")
    shown.send("1\n")
    # Whatever came out of a file was written by somebody else, the arguments of the call too.
    shown.expect("? May ask be called?")
    shown.send("1\n")
    shown.expect("Done.")
    assert shown.finish() == 0


@pytest.mark.parametrize("answer", ["n\n", "\n", "maybe\n"])
def test_anything_but_a_yes_runs_nothing(
    imported: str, terminal: OpenTerminal, process: Process, tools: str, answer: str
) -> None:
    shown = terminal(*RESUME, "--tools", tools)
    shown.expect("Run them? [y/N] ")
    shown.send(answer)
    shown.expect("nothing was run")
    assert shown.finish() == 1
    assert "Delete it?" not in shown.output.partition("Run them?")[2]

    refused = process(*RESUME, "--tools", tools)  # without a terminal
    assert refused.status != 0
    assert "--trust" in refused.err
