"""``locus workflow``: start, work, show, retry, cancel."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from plugins.cli.tests.conftest import Locus


@pytest.fixture
def store(here: Path) -> tuple[str, str]:
    """``--checkpointer`` and a store in memory, which the commands of a test share, and no other test has."""
    return "--checkpointer", f"toy:{here.parent.name}"


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_run_is_started_worked_on_shown_and_begun_again(locus: Locus, store: tuple[str, str], here: Path) -> None:
    (here / "pr.json").write_text('{"pr": 17}', encoding="utf-8")

    started = locus("workflow", "start", "shop:wf", "--input", "@pr.json", "--id", "pr-17", *store)
    assert (started.status, started.out) == (0, "pr-17\n")
    assert f"locus workflow work shop:wf {' '.join(store)}" in started.err
    shown = locus("workflow", "show", "pr-17", *store)
    assert (shown.status, shown.out) == (
        0,
        "review  running\n  look: waiting for a worker\n  publish: waiting for look\n",
    )

    worked = locus("workflow", "work", "shop:wf", "--until-idle", *store)
    assert worked.status == 0
    assert "step.continue   pr-17 look iteration 0" in worked.out
    assert "OSError: the printer is on fire" in worked.out

    failed = locus("workflow", "show", "pr-17", *store)
    assert failed.status == 1
    assert "  look: completed, iteration 3 of 5\n" in failed.out
    assert "  publish: failed, iteration 1: OSError: the printer is on fire\n" in failed.out
    assert "locus workflow retry pr-17 publish" in failed.err

    assert locus("workflow", "retry", "pr-17", "publish", *store).status == 0
    again = rows(locus("workflow", "work", "shop:wf", "--until-idle", "--json", *store).out)
    assert [each["type"] for each in again] == ["step.queued", "step.started", "step.completed", "run.completed"]
    (done,) = [json.loads(locus("workflow", "show", "pr-17", "--json", *store).out)]
    assert (done["status"], done["output"]) == ("completed", ["published", {"looked at": {"pr": 17}}])
    assert done["steps"]["look"]["iteration"] == 2


def test_run_that_is_started_twice_is_one(locus: Locus, store: tuple[str, str]) -> None:
    for _ in range(2):
        assert locus("workflow", "start", "shop.py:built", "--id", "r", *store).out == "r\n"

    types = [each["type"] for each in rows(locus("workflow", "work", "shop:wf", "--until-idle", "--json", *store).out)]

    assert types.count("run.failed") == 1


def test_run_is_cancelled(locus: Locus, store: tuple[str, str]) -> None:
    locus("workflow", "start", "shop:wf", "--id", "r", *store)
    assert locus("workflow", "cancel", "r", "--reason", "no longer needed", *store).status == 0

    locus("workflow", "work", "shop:wf", "--until-idle", *store)

    done = json.loads(locus("workflow", "show", "r", "--json", *store).out)
    assert (done["status"], done["error"], done["steps"]) == ("failed", "cancelled: no longer needed", {})
    assert "r has ended already" in locus("workflow", "cancel", "r", *store).err


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("start", "shop:wff"), "shop has no workflow 'wff'; did you mean shop:wf?"),
        (("start", "shop"), "expected MODULE:NAME, such as shop:review, or FILE.py:NAME, got 'shop'"),
        (("start", "nothing:wf"), "nothing cannot be loaded: ModuleNotFoundError"),
        (("start", "missing.py:wf"), "missing.py cannot be loaded: FileNotFoundError"),
        (("start", "shop:wrong"), "workflow 'wrong' cannot be built: it has no steps"),
        (("start", "shop:wf", "--input", "{"), "--input: expected JSON, or @FILE with JSON, got '{'"),
        (("start", "shop:wf", "--input", "@missing.json"), "--input: cannot read the file"),
        (("start", "shop:wf", "--id", "a/b"), "run_id: expected a text without '/', got 'a/b'"),
        (("start", "shop:wf", "--id", ""), "'--id': it is empty; leave the option out, or give it a value"),
        (("start", "shop:wf", "--input", "NaN"), "--input: expected JSON, or @FILE with JSON, got 'NaN': NaN is not"),
        (("start", "shop:wf", "--input", '[{"a": -Infinity}]'), "--input: expected JSON, or @FILE with JSON, got"),
        (("start", "shop:wf", "--input", '{"$": "float", "v": "nan"}'), "--input: metadata['workflow.input']: NaN"),
        (("start", "shop:wf", "--input", '{"$": "nobody"}'), "--input: "),
        (("start", "shop:wf", "--input", "[" * 100_000), "--input: expected JSON, or @FILE with JSON, got"),
        (("show", "nobody"), "run 'nobody' does not exist"),
        (("retry", "nobody", "look"), "run 'nobody' does not exist"),
    ],
)
def test_mistake_is_named(locus: Locus, store: tuple[str, str], arguments: tuple[str, ...], wanted: str) -> None:
    done = locus("workflow", *arguments, *store)

    assert done.status == (2 if arguments[0] == "start" else 1)
    assert wanted in done.err
    assert "Traceback" not in done.err


def test_step_that_sleeps_is_shown_with_its_time(everything: Locus, store: tuple[str, str]) -> None:
    locus = everything
    locus("workflow", "start", "shop:naps", "--id", "r", *store)
    locus("workflow", "work", "shop:naps", "--until-idle", *store)

    (shown,) = [json.loads(locus("workflow", "show", "r", "--json", *store).out)]
    due = datetime.fromisoformat(shown["steps"]["rest"]["not_before"])
    assert (shown["status"], shown["steps"]["rest"]["status"]) == ("running", "running")
    time = f"sleeps until {due.astimezone():%Y-%m-%d %H:%M:%S}"
    assert f"  rest: {time}" in locus("workflow", "show", "r", *store).out

    (listed,) = [each for each in rows(locus("runs", "--json", *store).out) if each["thread_id"] == "r/rest"]
    assert (listed["state"], datetime.fromisoformat(listed["not_before"])) == ("paused", due)
    assert time in locus("runs", *store).out
    shown = json.loads(locus("runs", "show", "r/rest", "--json", *store).out)
    assert datetime.fromisoformat(shown["not_before"]) == due
    assert shown["moments"][-1]["text"] == f"sleeps until {due.isoformat(timespec='seconds')}"
    assert f"run r/rest: {time}" in locus("runs", "show", "r/rest", *store).out
    assert "paused: sleeps until " in locus("threads", "show", "r/rest", *store).out


def test_run_that_does_not_sleep_is_shown_without_a_time(everything: Locus, store: tuple[str, str]) -> None:
    everything("workflow", "start", "shop:wf", "--id", "r", *store)

    (listed,) = rows(everything("runs", "--json", *store).out)
    assert (listed["state"], listed["not_before"]) == ("paused", None)
    assert "sleeps" not in everything("runs", *store).out
