"""``locus eval`` in this process."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from plugins.cli.tests.conftest import Done, Locus, run_in_process

from locus.plugin import Lazy
from locus_plugin_eval import checks

STORE = ("--checkpointer", "runs.db")


@pytest.fixture
def evaluate(locus: Locus, cases: Path) -> Any:
    """Runs ``locus eval`` on the cases, with a store in a file."""

    def run(*arguments: str) -> Done:
        return locus("eval", cases.name, *arguments, *STORE)

    return run


def test_an_evaluation_is_a_table_and_a_status(evaluate: Any) -> None:
    done = evaluate("-a", "shop.py:agent", "-n", "2")
    rows = [line.split("\t") for line in done.out.splitlines()]
    assert [row[:4] for row in rows] == [
        ["lamp", "2/2", "34% to 100%", "30"],
        ["chair", "2/2", "34% to 100%", "30"],
        ["all", "4/4", "34% to 100%", "30"],
    ]
    assert done.status == 0
    assert "locus: shop.py:agent: 4 of 4 trials, 4 passed" in done.lines
    assert "locus: 4 trials: 120 tokens" in done.lines


def test_a_threshold_that_is_not_met_is_status_1(evaluate: Any) -> None:
    done = evaluate("-a", "shop.py:worse")
    assert done.status == 1
    assert done.lines[-1] == "locus: 0 of 2 trials passed (0.0%), expected 100.0%"
    assert 'contains: "12 EUR" not in "I do not know."; called: no such call; calls: none' in done.out
    assert evaluate("-a", "shop.py:worse", "--min-pass", "0").status == 0
    assert evaluate("-a", "shop.py:make", "--min-pass", "0.5", "-k", "lamp").status == 1


def test_programs_get_the_whole_report(evaluate: Any) -> None:
    done = evaluate("-a", "shop.py:agent", "-k", "LIGHT", "--json", "--run", "nightly")
    form = json.loads(done.out)
    assert (form["thread"], form["passed"], form["size"], form["unmet"]) == ("nightly", 1, 1, [])
    assert form["trials"][0]["calls"][0]["result"] == "A lamp costs 12 EUR."


def test_the_run_of_a_trial_is_a_thread_like_any_other(evaluate: Any, locus: Locus) -> None:
    done = evaluate("-a", "shop.py:agent", "--run", "nightly", "--json")
    shown = locus("threads", "show", json.loads(done.out)["trials"][0]["thread"], *STORE)
    assert shown.status == 0, shown
    assert "A lamp costs 12 EUR." in shown.out


def test_a_run_that_has_ended_is_shown_again_and_not_run(evaluate: Any) -> None:
    first = evaluate("-a", "shop.py:agent", "--run", "nightly")
    asked = Path("log").read_text()
    assert evaluate("-a", "shop.py:agent", "--run", "nightly").out == first.out
    assert Path("log").read_text() == asked


def test_reports_are_written(evaluate: Any) -> None:
    assert evaluate("-a", "shop.py:worse", "--junit", "r.xml", "--html", "r.html", "--save", "r.json").status == 1
    assert '<testsuite name="desk (shop.py:worse)" tests="2" failures="2"' in Path("r.xml").read_text()
    assert "I do not know." in Path("r.html").read_text()
    assert "expected 100.0%" in Path("r.html").read_text()
    assert json.loads(Path("r.json").read_text())["passed"] == 0
    assert evaluate("-a", "shop.py:worse", "--min-pass", "0", "--html", "r.html", "--save", "r.json").status == 0
    assert "expected" not in Path("r.html").read_text()
    assert json.loads(Path("r.json").read_text())["thresholds"] == {"pass": 0.0}


def test_two_agents_are_compared(evaluate: Any) -> None:
    done = evaluate("-a", "shop.py:agent", "--against", "shop.py:worse")
    assert "difference: +100.0%; p = 0.500 (McNemar's exact test over cases, two-sided)" in done.out
    assert "better: 2 (lamp, chair); worse: 0; the same: 0" in done.out
    form = json.loads(evaluate("-a", "shop.py:agent", "--against", "shop.py:worse", "--json").out)
    assert form["comparison"]["better"] == ["lamp", "chair"]


def test_two_commits_are_compared_on_the_same_answers(evaluate: Any, shop: Path) -> None:
    assert evaluate("-a", "shop.py:agent", "--record", "tape.jsonl", "--save", "before.json").status == 0
    Path("log").unlink()
    text = shop.read_text()
    shop.write_text(text.replace('name="shop")', 'name="shop", max_iterations=1)', 1))

    done = evaluate("-a", "shop.py:agent", "--replay", "tape.jsonl", "--baseline", "before.json")

    assert done.status == 1
    assert "worse: 2 (lamp, chair)" in done.out
    assert "first" not in Path("log").read_text(), "no model was asked"
    shop.write_text(text.replace("Look up a price.", "Find a price."))
    missed = evaluate("-a", "shop.py:agent", "--replay", "tape.jsonl", "--baseline", "before.json")
    assert missed.status == 1
    assert "is not on the tape: other than recorded: tools" in missed.out
    assert "not compared, as answers are not on the tape: 2 (lamp, chair)" in missed.out
    assert "locus: 2 of 2 trials need answers that are not on the tape" in missed.lines


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no agent; give --agent FILE:NAME, or `agent:` in desk.eval.yaml"),
        (("-a", "shop.py:agnet"), "shop.py has no 'agnet'; did you mean shop.py:agent?"),
        (("-a", "shop.py:price"), "shop.py 'price' is Tool, not an Agent"),
        (("-a", "shop.py"), "expected FILE.py:NAME"),
        (("-a", "none.py:agent"), "file not found: 'none.py'"),
        (("-a", "shop.py:agent", "-k", "lmap"), "no case of 'desk' matches 'lmap'; did you mean 'lamp'?"),
        (("-a", "shop.py:agent", "--replay", "none"), "the tape none cannot be read"),
        (("-a", "shop.py:agent", "--replay", "a", "--record", "b"), "give one of them"),
        (("-a", "shop.py:agent", "--against", "a", "--baseline", "shop.py"), "shop.py: "),
        (("-a", "shop.py:agent", "--against", "a", "--record", "b"), "leave out --against"),
        (("-a", "shop.py:agent", "--baseline", "none.json"), "none.json cannot be read: No such file"),
        (("-a", "shop.py:agent", "--html", "no/folder.html"), "no/folder.html cannot be written"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(evaluate: Any, arguments: tuple[str, ...], said: str) -> None:
    done = evaluate(*arguments)
    assert done.status == 2
    assert said in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("option", ["--junit", "--html", "--save"])
def test_a_report_that_could_not_be_written_is_said_before_anything_runs(
    evaluate: Any, here: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    done = evaluate("-a", "shop.py:agent", option, "no/report")
    assert done.status == 2
    assert f"{option}: no/report cannot be written: the folder no does not exist" in done.err
    # Whoever runs the tests may write everywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    done = evaluate("-a", "shop.py:agent", option, "report")
    assert done.status == 2
    assert f"{option}: report cannot be written: no permission" in done.err
    assert not Path("log").exists()


def test_a_judge_that_is_not_there_is_said_before_anything_runs(evaluate: Any, cases: Path) -> None:
    cases.write_text("judge: nope:x\ncases: [{id: a, prompt: lamp, checks: [{judge: It is polite.}]}]")
    for arguments in ((), ("--judge", "nah:x"), ("--judge", "noname")):
        done = evaluate("-a", "shop.py:agent", *arguments)
        assert done.status == 2
        assert "Traceback" not in done.err
    assert "nope" in evaluate("-a", "shop.py:agent").err
    assert not Path("log").exists()


def test_all_problems_of_a_file_are_said(locus: Locus, cases: Path) -> None:
    cases.write_text("cases:\n- {id: a, promt: x}\n- {id: b, prompt: x, checks: [{exact: 1}]}\n")
    done = locus("eval", cases.name, "-a", "shop.py:agent", *STORE)
    assert done.status == 2
    assert done.err.count("desk.eval.yaml: case ") == 3


def test_the_agent_of_a_file_is_beside_it(locus: Locus, cases: Path, here: Path) -> None:
    folder = here / "evals"
    folder.mkdir()
    (here / "shop.py").rename(folder / "shop.py")
    (folder / "desk.eval.yaml").write_text(f"agent: shop.py:agent\n{cases.read_text()}")
    assert locus("eval", "evals/desk.eval.yaml", *STORE).status == 0


def test_an_agent_of_a_module_is_found_in_the_working_directory(
    evaluate: Any, monkeypatch: pytest.MonkeyPatch, here: Path
) -> None:
    (here / "eval_shop_module.py").write_text((here / "shop.py").read_text())
    monkeypatch.syspath_prepend(here)
    assert evaluate("-a", "eval_shop_module:agent").status == 0
    assert "module 'eval_no_module' not found" in evaluate("-a", "eval_no_module:agent").err


def test_a_check_whose_plugin_is_missing_is_said_before_anything_runs(
    here: Path, cases: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("locus.reasoning.grounding")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(checks, "grounding", Lazy("locus.reasoning.grounding"))
    without = run_in_process(here, capsys, monkeypatch, {"cli", "eval", "graph", "sqlite", "timetravel"})
    cases.write_text("cases: [{id: a, prompt: lamp, checks: [{grounded: 1}]}]")
    done = without("eval", cases.name, "-a", "shop.py:agent", *STORE)
    assert done.status == 2
    assert "the check `grounded` needs a plugin: pip install locus-plugin-grounding" in done.err
    assert not Path("log").exists()
