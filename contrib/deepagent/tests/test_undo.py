"""`locus deep /undo`: the last turn is taken back, in terminals, and when it is killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Locus = Callable[..., Any]
Open = Callable[..., Any]

PATIENCE = 60.0

FIRST = {"notes.md": "first\n", "plan.md": "one\ntwo\n"}
SECOND = {"child.txt": "c", "new/file.txt": "new", "notes.md": "of the child\n", "plan.md": "one\nthree\n"}


def contents(folder: Path) -> dict[str, str]:
    return {str(f.relative_to(folder)): f.read_text() for f in sorted(folder.rglob("*")) if f.is_file()}


def draft(locus: Locus) -> None:
    assert locus("deep", "Draft.", "-m", "toy:drafts", "--dir", "w", "-q").status == 0


@pytest.fixture
def work(locus: Locus, here: Path) -> Path:
    """A folder after two turns."""
    draft(locus)
    assert contents(here / "w") == FIRST
    assert locus("deep", "--continue", "Change.", "-m", "toy:changes", "-q").status == 0
    assert contents(here / "w") == SECOND
    return here / "w"


def newest(locus: Locus) -> str:
    name: str = json.loads(locus("threads", "--json").out.splitlines()[0])["thread_id"]
    return name


def test_in_a_terminal_files_todos_and_the_conversation_are_as_before_the_turn(
    work: Path, terminal: Open, locus: Locus
) -> None:
    running = terminal("deep", "/undo")

    running.expect("restored /notes.md")
    running.expect("restored /plan.md")
    running.expect("removed /new/file.txt")
    running.expect("removed /child.txt")
    running.expect("go on with: locus deep --thread")
    assert running.finish() == 0
    assert contents(work) == FIRST

    lines = locus("deep", "-c", "Go on.", "-m", "toy:reads todos", "--json").out.splitlines()
    (todos,) = [each for each in map(json.loads, lines) if each["type"] == "tool_complete"]
    assert [each["status"] for each in json.loads(todos["result"])] == ["in_progress", "pending"]
    said = locus("threads", "show", newest(locus), "--messages").out
    assert "Draft." in said
    assert "Go on." in said
    assert "Change." not in said


def test_the_first_turn_is_taken_back_with_its_conversation(locus: Locus, here: Path) -> None:
    (here / "w").mkdir()
    (here / "w" / "notes.md").write_bytes(b"\xff\x00 mine, and no text")
    draft(locus)

    done = locus("deep", "/undo", "--json")

    assert done.status == 0, done.err
    assert json.loads(done.out) == {
        "undone": True, "thread_id": None, "restored": ["/notes.md"], "removed": ["/plan.md"], "left": [],
        "not_undone": {},
    }  # fmt: skip
    assert (here / "w" / "notes.md").read_bytes() == b"\xff\x00 mine, and no text"
    assert not (here / "w" / "plan.md").exists()
    again = locus("deep", "/undo")
    assert (again.status, again.out) == (2, "")
    assert "no conversation of" in again.err


def test_each_undo_takes_back_one_more_turn(work: Path, locus: Locus) -> None:
    assert locus("deep", "/undo").status == 0
    assert contents(work) == FIRST
    assert locus("deep", "/undo").status == 0
    assert contents(work) == {}


@pytest.mark.parametrize(("script", "second"), [("goes on", {"child.txt": "c", "mine.txt": "m"}), ("is asked", None)])
def test_what_a_subagent_wrote_in_an_earlier_turn_is_taken_back_by_a_second_undo(
    locus: Locus, here: Path, script: str, second: dict[str, str] | None
) -> None:
    """Also where the turn after it is still open, so that its thread is deleted."""
    first = {"child.txt": "c"}
    assert locus("deep", "Hand it over.", "-m", "toy:hands over", "--dir", "w", "-q").status == 0
    assert locus("deep", "-c", "Go on.", "-m", f"toy:{script}", "-q").status == (3 if second is None else 0)
    assert contents(here / "w") == (second or first)

    assert locus("deep", "/undo").status == 0
    assert contents(here / "w") == first
    done = locus("deep", "/undo")

    assert (done.status, done.out) == (0, "removed /child.txt\n")
    assert contents(here / "w") == {}
    left = [json.loads(line)["thread_id"] for line in locus("threads", "--all", "--json").out.splitlines()]
    assert all(each.partition("/")[0] in left for each in left), "a child run has outlived its parent"


def test_what_a_subagent_wrote_is_taken_back_in_a_fork(locus: Locus, here: Path) -> None:
    assert locus("deep", "Hand it over.", "-m", "toy:hands over", "--dir", "w", "--thread", "t", "-q").status == 0
    forked = locus("threads", "fork", "t", "--into", "u")
    assert forked.status == 0, forked.err

    assert locus("deep", "/undo", "--thread", "u").out == "removed /child.txt\n"

    names = {json.loads(line)["thread_id"].partition("/")[0] for line in locus("threads", "--json").out.splitlines()}
    assert names == {"t"}


@pytest.mark.parametrize("file", ["notes.md", "new/file.txt"])
def test_a_file_that_was_changed_since_is_not_overwritten(work: Path, locus: Locus, file: str) -> None:
    (work / file).write_text("by hand")

    refused = locus("deep", "/undo")

    assert (refused.status, refused.out) == (1, "")
    assert f"nothing was undone: /{file} changed since" in refused.err
    assert "'/undo keep'` leaves these as they are, and undoes the rest" in refused.err
    assert contents(work) == {**SECOND, file: "by hand"}
    kept = locus("deep", "/undo keep")
    assert kept.status == 0, kept.err
    assert f"left as it is: /{file}" in kept.out
    assert contents(work) == {**FIRST, file: "by hand"}


def test_a_file_that_was_removed_since_counts_as_changed(work: Path, locus: Locus) -> None:
    (work / "notes.md").unlink()
    refused = locus("deep", "/undo", "--json")
    assert (refused.status, json.loads(refused.out)) == (1, {"undone": False, "changed": ["/notes.md"]})
    assert locus("deep", "/undo keep").status == 0
    assert contents(work) == {"plan.md": "one\ntwo\n"}


def test_a_link_in_the_place_of_a_file_is_not_followed(work: Path, locus: Locus, here: Path) -> None:
    (here / "outside.txt").write_text("of the child\n")
    (work / "notes.md").unlink()
    (work / "notes.md").symlink_to(here / "outside.txt")
    assert locus("deep", "/undo").status == 1
    assert locus("deep", "/undo keep").status == 0
    assert (here / "outside.txt").read_text() == "of the child\n"


def test_writes_to_one_file_side_by_side_are_taken_back(locus: Locus, here: Path) -> None:
    draft(locus)
    assert locus("deep", "-c", "Write.", "-m", "toy:side by side", "-q").status == 0
    assert locus("deep", "/undo").status == 0
    assert contents(here / "w") == FIRST


def test_a_turn_that_was_killed_is_taken_back_and_other_effects_are_named(
    locus: Locus, terminal: Open, here: Path, tools: str
) -> None:
    draft(locus)
    running = terminal("deep", "-c", "Write both.", "-m", "toy:halts", "-t", tools)
    until = time.monotonic() + PATIENCE
    while not (here / "charges").exists():
        assert time.monotonic() < until
        time.sleep(0.02)
    busy = locus("deep", "/undo")
    assert busy.status != 0
    assert (here / "w" / "first.txt").exists()
    os.kill(running._process.pid, signal.SIGKILL)
    running.finish()

    done = locus("deep", "/undo")

    assert done.status == 0, done.err
    assert "removed /first.txt" in done.out
    assert "not undone: what charge did (1 call)" in done.err
    assert contents(here / "w") == FIRST
    (left,) = map(json.loads, locus("threads", "--json").out.splitlines())
    assert left["status"] == "ended"  # nothing is left that `locus resume` would go on with


#: A command that kills itself right before the n-th change of a file, or of the conversation.
_KILLED = """
import os, signal, sys
from locus_deepagent.command import undo
from locus_plugin_cli.main import invoke
from locus_plugin_filesystem import VersionedFiles

left = int(sys.argv.pop(1))


def counted(function):
    def call(*args, **kwargs):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)

    return call


VersionedFiles.put_back = counted(VersionedFiles.put_back)
undo.timetravel.fork = counted(undo.timetravel.fork)
sys.exit(invoke(sys.argv[1:]))
"""


@pytest.mark.parametrize("at", [0, 2, 4])
def test_an_undo_that_is_killed_anywhere_is_done_to_its_end_by_another(
    work: Path, locus: Locus, here: Path, environment: dict[str, str], at: int
) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED, str(at), "deep", "/undo"],
        cwd=here,
        env=environment,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr

    done = locus("deep", "/undo")

    assert done.status == 0, done.err
    assert contents(work) == FIRST
    assert locus("deep", "/undo").status == 0
    assert contents(work) == {}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["/udno"], "expected /undo or '/undo keep', got '/udno'"),
        (["/undo all"], "expected /undo or '/undo keep', got '/undo all'"),
        (["/undo", "--no-keep"], "/undo goes with --thread, --continue, --checkpointer and --json alone"),
        (["/undo", "--dir", "w"], "/undo goes with --thread, --continue, --checkpointer and --json alone"),
        (["/undo", "--thread", "nowhere"], "no thread 'nowhere'"),
    ],
)
def test_what_cannot_be_meant_is_refused(locus: Locus, words: list[str], said: str) -> None:
    assert locus("deep", "Write.", "-m", "toy:writes", "--dir", "w", "-q").status == 0
    done = locus("deep", *words)

    assert (done.status, done.out) == (2, "")
    assert said in done.err


def test_a_thread_that_came_from_a_file_is_not_undone(work: Path, locus: Locus, here: Path) -> None:
    assert locus("threads", "export", newest(locus), "-o", str(here / "t.jsonl")).status == 0
    moved = locus("threads", "import", str(here / "t.jsonl"), "--into", "copy")
    assert moved.status == 0, moved.err

    done = locus("deep", "/undo", "--thread", "copy")

    assert (done.status, done.out) == (2, "")
    assert "imported" in done.err
    assert contents(work) == SECOND
