"""``locus eval``: evaluates an agent on a file of cases."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
from attrs import evolve, frozen

from locus.core.errors import InputError
from locus.plugin import Lazy
from locus_kit.agents import load_agent
from locus_plugin_eval.cases import Suite
from locus_plugin_eval.commands.progress import Progress
from locus_plugin_eval.comparison import Comparison, compare
from locus_plugin_eval.evaluation import evaluate
from locus_plugin_eval.junit import write_junit
from locus_plugin_eval.page import draw_page
from locus_plugin_eval.reading import read_cases
from locus_plugin_eval.report import Report
from locus_plugin_eval.tape import Tape
from locus_plugin_eval.text import HEADER, describe_comparison, describe_report, table_rows

__all__ = ["evaluate_command"]

cli: Any = Lazy("locus.cli")

#: 128 + SIGINT, as shells count.
_STOPPED = 130


def _claim_output(ctx: click.Context, param: click.Parameter, value: object) -> object:
    return cli.claim_output(ctx, param, value)


class _EvalCommand(click.Command):
    """A command with ``--checkpointer``, which its function gets, and the options that every command has."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own parameters, those that it shares with other commands, and ``--help``."""
        found = super().get_params(ctx)
        own = len(self.params)
        return [*found[:own], *cli.thread_parameters(), *found[own:]]


_FILE = click.Path(dir_okay=False, path_type=Path)


@frozen(kw_only=True)
class _Wanted:
    """What is evaluated, and how."""

    suite: Suite
    agent: str
    against: str | None
    thread_id: str | None
    fresh: bool
    judge: str | None
    tape: Tape | None
    folder: Path | None


@click.command("eval", cls=_EvalCommand, short_help="Evaluate an agent on a file of cases.")
@click.argument("cases", type=_FILE)
@click.option("-a", "--agent", metavar="FILE:NAME", help="Who is evaluated; default: `agent:` in the file.")
@click.option("--against", metavar="FILE:NAME", help="Another agent, evaluated first; the two are compared.")
@click.option("--baseline", type=_FILE, metavar="FILE", help="Compare with a report that --json or --save wrote.")
@click.option(
    "-k", "words", metavar="WORD", multiple=True, help="Cases with this in their id, or as a tag; repeatable."
)
@click.option("-n", "--repeats", type=click.IntRange(1, 10_000), metavar="N", help="Trials of each case.")
@click.option("--concurrency", type=click.IntRange(1, 10_000), metavar="N", help="Trials at once; default: 4.")
@click.option("--judge", metavar="PROVIDER:NAME", help="The model that judges, over `judge:` in the file.")
@click.option("--record", type=_FILE, metavar="TAPE", help="Add the answers of models to this file.")
@click.option("--replay", type=_FILE, metavar="TAPE", help="Take all answers from this file, and ask no model.")
@click.option("--run", "thread_id", metavar="NAME", help="The evaluation's name; one that has ended is shown again.")
@click.option("--fresh", is_flag=True, help="Do not go on with an evaluation that was left.")
@click.option("--min-pass", type=click.FloatRange(0, 1), metavar="SHARE", help="The least share of trials that pass.")
@click.option("--junit", type=_FILE, metavar="FILE", help="Write JUnit XML.")
@click.option("--html", type=_FILE, metavar="FILE", help="Write a page.")
@click.option("--save", type=_FILE, metavar="FILE", help="Write the report as JSON.")
@click.option("--json", "as_json", is_flag=True, callback=_claim_output, help="Print the report as JSON.")
@click.pass_context
def evaluate_command(
    ctx: click.Context,
    *,
    cases: Path,
    agent: str | None,
    against: str | None,
    baseline: Path | None,
    words: tuple[str, ...],
    repeats: int | None,
    concurrency: int | None,
    judge: str | None,
    record: Path | None,
    replay: Path | None,
    thread_id: str | None,
    fresh: bool,
    min_pass: float | None,
    junit: Path | None,
    html: Path | None,
    save: Path | None,
    as_json: bool,
    checkpointer: str | None,
) -> int:
    """Run an agent on the cases of a YAML file, check what it did, and count.

    \b
    locus eval desk.eval.yaml --agent shop.py:agent
    locus eval desk.eval.yaml -a shop.py:agent -n 5 --min-pass 0.9 --junit report.xml
    locus eval desk.eval.yaml -a shop.py:new --against shop.py:old
    locus eval desk.eval.yaml -a shop.py:agent --record tape.jsonl --save before.json
    locus eval desk.eval.yaml -a shop.py:agent --replay tape.jsonl --baseline before.json

    Each trial is kept when it ends. After Ctrl-C, a crash or a kill the same command goes on with those that are left.

    Exit status: 0 all thresholds are met; 1 one is not, or a recorded answer is missing; 2 the command line, the
    cases or the agent are wrong; 130 Ctrl-C.
    """  # noqa: D301  click reads the character
    suite = read_cases(cases)
    suite = evolve(suite, repeats=repeats or suite.repeats, concurrency=concurrency or suite.concurrency).select(words)
    before = None if baseline is None else _read_report(baseline)
    if before is not None and against is not None:
        raise InputError("--against and --baseline both say what to compare with; give one of them")
    if record is not None and replay is not None:
        raise InputError("--record asks models and --replay does not; give one of them")
    if record is not None and against is not None:
        raise InputError("--record is for the answers of one agent; leave out --against, and record each by itself")
    if agent is None and suite.agent is None:
        raise InputError(f"no agent; give --agent FILE:NAME, or `agent:` in {cases}")
    _check_places({"--junit": junit, "--html": html, "--save": save})
    tape = None if record is None and replay is None else Tape(record or replay or "", replays=replay is not None)
    wanted = _Wanted(
        suite=suite,
        agent=agent or suite.agent or "",
        against=against,
        thread_id=thread_id,
        fresh=fresh,
        judge=judge,
        tape=tape,
        folder=None if agent is not None else cases.parent,
    )
    try:
        with cli.open_journals(ctx, checkpointer, writes=True) as journals:
            other, report = _evaluate(journals, wanted)
    except KeyboardInterrupt:
        cli.say("stopped; what has ended is kept, and the same command goes on with the rest")
        return _STOPPED
    if min_pass is not None:
        report = evolve(report, thresholds={**report.thresholds, "pass": min_pass})
    before = before or other
    comparison = None if before is None else compare(before, report)
    _write(junit, lambda: write_junit(report))
    _write(html, lambda: draw_page(report, comparison))
    _write(save, lambda: json.dumps(report.to_json(), ensure_ascii=True, indent=1) + "\n")
    return _print(report, comparison, as_json=as_json)


def _evaluate(journals: Any, wanted: _Wanted) -> tuple[Report | None, Report]:
    def one(text: str, folder: Path | None, name: str | None) -> Report:
        progress = Progress(cli.say, text)
        found: Report = journals.run(
            evaluate(
                load_agent(text, folder=folder),
                wanted.suite,
                store=journals.store,
                thread_id=name,
                fresh=wanted.fresh,
                judge=wanted.judge,
                tape=wanted.tape,
                label=text,
                on_trial=progress.add,
            )
        )
        return found

    before = None
    if wanted.against is not None:
        name = None if wanted.thread_id is None else f"{wanted.thread_id}/against"
        before = one(wanted.against, None, name)
    return before, one(wanted.agent, wanted.folder, wanted.thread_id)


def _print(report: Report, comparison: Comparison | None, *, as_json: bool) -> int:
    unmet = report.find_unmet()
    if as_json:
        form = report.to_json() | {"unmet": list(unmet)}
        if comparison is not None:
            form["comparison"] = {
                "with": comparison.before.agent,
                "better": list(comparison.better),
                "worse": list(comparison.worse),
                "ties": comparison.ties,
                "left_out": list(comparison.left_out),
                "difference": comparison.difference,
                "p": comparison.p,
            }
        cli.print_json(form)
    else:
        cli.print_rows(HEADER, table_rows(report))
        for line in describe_report(report):
            cli.say(line)
        if comparison is not None:
            for line in describe_comparison(comparison):
                cli.print_text(f"{line}\n")
    for line in unmet:
        cli.say(cli.one_line(line))
    return 1 if unmet else 0


def _read_report(path: Path) -> Report:
    try:
        return Report.from_json(json.loads(path.read_text(encoding="utf-8")))
    except OSError as e:
        raise InputError(f"{path} cannot be read: {e.strerror}") from e
    except ValueError as e:
        raise InputError(f"{path}: {e}") from e


def _check_places(places: Mapping[str, Path | None]) -> None:
    """Refuse a report that could not be written: said at the end, it would cost the whole evaluation.

    Args:
        places: the option of each report, and its file.

    Raises:
        InputError: the folder of one is missing, or may not be written to.
    """
    for option, path in places.items():
        if path is None:
            continue
        folder = path.parent
        if not folder.is_dir():
            raise InputError(f"{option}: {path} cannot be written: the folder {folder} does not exist")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise InputError(f"{option}: {path} cannot be written: no permission to write in the folder {folder}")


def _write(path: Path | None, make: Callable[[], str]) -> None:
    if path is None:
        return
    try:
        path.write_text(make(), encoding="utf-8", errors="backslashreplace")
    except OSError as e:
        raise InputError(f"{path} cannot be written: {e.strerror}") from e
