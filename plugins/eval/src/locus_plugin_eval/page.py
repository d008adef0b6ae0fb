"""A report as one self-contained page, which loads nothing and runs nothing: it can be kept, sent and opened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape

from locus_kit.invisible import escape_invisible
from locus_plugin_eval.comparison import Comparison
from locus_plugin_eval.report import CaseRow, Report
from locus_plugin_eval.text import (
    HEADER,
    describe_comparison,
    describe_report,
    show_cost,
    show_seconds,
    table_rows,
)
from locus_plugin_eval.trials import Call, Trial

__all__ = ["draw_page"]

#: Characters of an answer, and of a call, that the page shows.
_ANSWER, _CALL = 4_000, 500

_STYLE = """:root { color-scheme: light dark }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; padding: 0 1rem; max-width: 70rem }
table { border-collapse: collapse; width: 100% } summary { cursor: pointer; padding: .2rem 0 }
th, td { text-align: left; vertical-align: top; padding: .35rem .7rem .35rem 0; border-bottom: 1px solid #8884 }
tr.all { font-weight: 600 } pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #8881; padding: .6rem }
.bar { display: block; width: 8rem; height: .9rem; background: #8883; position: relative }
.bar i { position: absolute; height: 100%; background: #3a7bd577 }
.bar b { position: absolute; width: 2px; height: 100%; background: currentColor }
.failed, .error, .missing { color: #b3261e } .passed { color: #2b7a2b }
@media (prefers-color-scheme: dark) { .failed, .error, .missing { color: #ff8a80 } .passed { color: #8bd48b } }"""

#: Nothing is loaded and nothing is run, whatever an answer has in it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def draw_page(report: Report, comparison: Comparison | None = None) -> str:
    """The page of a report.

    Args:
        report: the report.
        comparison: with another one, shown above it; or None.
    """
    title = f"{report.suite}: {report.agent}"
    head = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(title)}</title><style>{_STYLE}</style>"
    )
    return f"{head}<body><main>{''.join(_parts(report, comparison, title))}</main></body></html>\n"


def _parts(report: Report, comparison: Comparison | None, title: str) -> Iterator[str]:
    yield f"<h1>{_text(title)}</h1><p>evaluation {_text(report.thread)}</p>"
    unmet = report.find_unmet()
    yield "".join(f'<p class="failed">{_text(each)}</p>' for each in unmet)
    if comparison is not None:
        lines = "".join(f"<li>{_text(line)}</li>" for line in describe_comparison(comparison))
        yield f"<h2>Compared with {_text(comparison.before.agent)}</h2><ul>{lines}</ul>"
    yield "<h2>Cases</h2><table><thead><tr>"
    yield "".join(f'<th scope="col">{_text(name)}</th>' for name in HEADER)
    yield "</tr></thead><tbody>"
    *rows, every = table_rows(report)
    for row, cells in zip(report.rows, rows, strict=True):
        tally = row.tally
        bar = "" if tally.share is None else _bar(tally.low, tally.high, tally.share)
        cells = (*map(_text, cells[:2]), f"{bar}{_text(cells[2])}", *map(_text, cells[3:]))
        yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    yield f'<tr class="all">{"".join(f"<td>{_text(cell)}</td>" for cell in every)}</tr></tbody></table>'
    yield "".join(f"<p>{_text(line)}</p>" for line in describe_report(report))
    yield "<h2>Trials</h2>"
    for row in report.rows:
        yield from _trials(row)


def _bar(low: float, high: float, share: float) -> str:
    return (
        f'<span class="bar" aria-hidden="true"><i style="left:{low:.1%};width:{high - low:.1%}"></i>'
        f'<b style="left:{share:.1%}"></b></span>'
    )


def _trials(row: CaseRow) -> Iterator[str]:
    for trial in row.trials:
        is_open = "" if trial.status == "passed" else " open"
        name = f"{trial.case}, {trial.repeat} of {len(row.trials)}" if len(row.trials) > 1 else trial.case
        facts = f"{trial.stop_reason}, {trial.tokens} tokens, {show_cost(trial.cost)}, {show_seconds(trial.seconds)} s"
        yield f'<details{is_open}><summary><span class="{trial.status}">{trial.status}</span> {_text(name)}</summary>'
        yield f"<p>{_text(facts)}; thread {_text(trial.thread)}</p>{''.join(_checks(trial))}"
        yield "".join(f"<pre>{_text(_call(call))}</pre>" for call in trial.calls)
        yield f"<pre>{_text(_cut(trial.text, _ANSWER))}</pre></details>"


def _checks(trial: Trial) -> Iterator[str]:
    if trial.missing:
        yield f'<p class="missing">{_text(trial.missing)}</p>'
    for each in trial.checks:
        said = f"{each.status}: {each.kind} {each.check}"
        yield f'<p class="{each.status}">{_text(f"{said}: {each.detail}" if each.detail else said)}</p>'


def _call(call: Call) -> str:
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False, default=repr)
    said = f"error: {call.error}" if call.error else str(call.result)
    return f"{call.name}({_cut(arguments, _CALL)})\n{_cut(said, _CALL)}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} ... ({len(text):,} characters)"


def _text(text: str) -> str:
    return escape(escape_invisible(text))
