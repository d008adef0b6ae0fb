"""The real ``locus eval``: killed with SIGKILL or stopped with Ctrl-C in the middle, it goes on and repeats nothing."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest
from plugins.cli.tests.conftest import PATIENCE, Locus, vouch

CASES = """
concurrency: 2
cases:
  - {id: a, prompt: lamp, checks: [{contains: lamp costs 12 EUR}]}
  - {id: b, prompt: chair, checks: [{contains: chair costs 12 EUR}]}
  - {id: c, prompt: slow table, checks: [{contains: table costs 12 EUR}]}
  - {id: d, prompt: sofa, checks: [{contains: sofa costs 12 EUR}]}
"""

COMMON = ("eval", "desk.eval.yaml", "-a", "shop.py:agent", "--json", "--concurrency", "1", "--checkpointer", "r.db")
ARGUMENTS = (*COMMON, "--record", "tape.jsonl")


def log() -> list[str]:
    path = Path("log")
    return [json.loads(line)["what"] for line in path.read_text().splitlines()] if path.exists() else []


def until(condition: Callable[[], Any], process: Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not come in time"
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


@pytest.fixture
def begin(here: Path, cases: Path, environment: dict[str, str]) -> Callable[[str], Popen[bytes]]:
    """Starts an evaluation in a process of its own, and waits until it is at the given line of the log."""
    cases.write_text(CASES)
    (here / "gate").touch()
    vouch(here)

    def start(line: str) -> Popen[bytes]:
        process = Popen([sys.executable, "-m", "locus", *ARGUMENTS], env=environment, stdout=PIPE, stderr=PIPE)
        until(lambda: line in log(), process)
        return process

    return start


@pytest.fixture
def begun(begin: Callable[[str], Popen[bytes]]) -> Popen[bytes]:
    """An evaluation in a process of its own, which is in the middle of the third of four trials."""
    process = begin("second slow table")
    # What the tool gave is written while the model is asked again: killed before that, it is unknown what it did.
    until(has_tool_result, process)
    return process


def has_tool_result() -> bool:
    with closing(sqlite3.connect("r.db")) as db:
        (count,) = db.execute(
            "SELECT count(*) FROM journal WHERE thread LIKE '%/c.1' AND node = 'think' AND last > 1"
        ).fetchone()
    return bool(count)


def go_on(locus: Locus) -> dict[str, Any]:
    Path("gate").unlink()
    done = locus(*ARGUMENTS)
    assert done.status == 0, done
    form: dict[str, Any] = json.loads(done.out)
    return form


def test_after_a_kill_the_same_command_goes_on_and_repeats_no_trial_that_ended(
    begun: Popen[bytes], locus: Locus
) -> None:
    before = log()
    os.kill(begun.pid, signal.SIGKILL)
    assert begun.wait(PATIENCE) == -signal.SIGKILL
    begun.communicate()

    form = go_on(locus)

    assert [trial["status"] for trial in form["trials"]] == ["passed"] * 4
    assert form["thread"].endswith("/1")
    found = Counter(log())
    assert before == [
        f"{what} {said}" for said in ("lamp", "chair", "slow table") for what in ("first", "tool", "second")
    ]
    # The model call under way is made again, and nothing else: not the call before it, and not the tool.
    assert found == Counter(before) + Counter(["second slow table", "first sofa", "tool sofa", "second sofa"])
    # The tape has all of both processes.
    Path("log").unlink()
    replayed = json.loads(locus(*COMMON, "--replay", "tape.jsonl").out)
    assert [trial["status"] for trial in replayed["trials"]] == ["passed"] * 4
    assert [what for what in log() if not what.startswith("tool")] == []


def test_ctrl_c_keeps_what_was_done_and_says_how_to_go_on(begun: Popen[bytes], locus: Locus) -> None:
    begun.send_signal(signal.SIGINT)
    Path("gate").unlink()  # the model of this process holds the event loop
    out, err = begun.communicate(timeout=PATIENCE)
    assert begun.returncode == 130, err
    assert out == b""
    assert "the same command goes on with the rest" in err.decode()
    before = Counter(log())

    Path("gate").touch()
    form = go_on(locus)

    assert [trial["status"] for trial in form["trials"]] == ["passed"] * 4
    assert form["thread"].endswith("/1")
    assert (Counter(log()) - before)["first lamp"] == 0
    assert max(count for what, count in Counter(log()).items() if what.startswith("tool")) == 1


def test_a_trial_in_whose_tool_the_process_died_is_an_error_and_the_tool_does_not_run_again(
    begin: Callable[[str], Popen[bytes]], locus: Locus, cases: Path
) -> None:
    cases.write_text(CASES.replace("slow table", "stuck table"))
    process = begin("tool stuck table")
    process.kill()
    process.communicate()

    Path("gate").unlink()
    done = locus(*ARGUMENTS)

    assert done.status == 1
    trials = json.loads(done.out)["trials"]
    assert [trial["status"] for trial in trials] == ["passed", "passed", "error", "passed"]
    assert trials[2]["checks"][0]["detail"] == (
        "the process died while 'price' ran, and what came of it is unknown; run it again"
    )
    assert log().count("tool stuck table") == 1
