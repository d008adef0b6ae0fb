"""A report and a comparison as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from locus_plugin_eval.checks import shorten
from locus_plugin_eval.comparison import Comparison
from locus_plugin_eval.report import Report, Tally

__all__ = [
    "HEADER",
    "describe_comparison",
    "describe_report",
    "show_cost",
    "show_interval",
    "show_seconds",
    "show_share",
    "table_rows",
]

HEADER = ("case", "passed", "95 % interval", "tokens", "cost", "seconds", "why not")


def show_share(tally: Tally) -> str:
    """How many passed."""
    return f"{tally.passed}/{tally.size}"


def show_interval(tally: Tally) -> str:
    """The interval of the share, in percent."""
    return "-" if tally.share is None else f"{tally.low:.0%} to {tally.high:.0%}"


def show_cost(cost: float | None) -> str:
    """Dollars, or ``"-"`` where no price is known."""
    return "-" if cost is None else f"${cost:.4f}"


def show_seconds(seconds: float | None) -> str:
    """Seconds, or ``"-"`` where answers were replayed."""
    return "-" if seconds is None else f"{seconds:.1f}"


def table_rows(report: Report) -> list[tuple[str, ...]]:
    """A row for each case, and one for all."""
    rows = [
        (
            row.case,
            show_share(row.tally),
            show_interval(row.tally),
            f"{row.tokens:.0f}",
            show_cost(row.cost),
            show_seconds(row.seconds),
            shorten("; ".join(row.reasons), 200),
        )
        for row in report.rows
    ]
    tally, count = report.tally, len(report.trials)
    each = report.tokens / count if count else 0.0
    cost = None if report.cost is None else report.cost / count
    return [
        *rows,
        (
            "all",
            show_share(tally),
            show_interval(tally),
            f"{each:.0f}",
            show_cost(cost),
            show_seconds(report.seconds),
            "",
        ),
    ]


def describe_report(report: Report) -> Iterator[str]:
    """What the table does not say."""
    for kind, tally in report.kinds.items():
        if kind != "ended" or tally.passed < tally.size:
            yield f"{kind}: {show_share(tally)} passed, {show_interval(tally)}"
    spent = f"{report.tokens:,} tokens"
    if report.cost is not None:
        spent += f", {show_cost(report.cost)}"
    if report.judge_tokens:
        spent += f"; judges: {report.judge_tokens:,} tokens"
    yield f"{len(report.trials)} trials: {spent}"
    if report.replayed:
        yield "answers were replayed: tokens and dollars are those that were recorded, and seconds say nothing"
    yield from (f"note: {each}" for each in report.notes)


def describe_comparison(found: Comparison) -> Iterator[str]:
    """Which side is better, and how sure that is."""
    before, after = found.before, found.after
    yield f"{before.agent}: {show_share(before.tally)} passed, {show_interval(before.tally)}"
    yield f"{after.agent}: {show_share(after.tally)} passed, {show_interval(after.tally)}"
    if found.difference is not None:
        yield f"difference: {found.difference:+.1%}; p = {found.p:.3f} (McNemar's exact test over cases, two-sided)"
    yield f"better: {_names(found.better)}; worse: {_names(found.worse)}; the same: {found.ties}"
    if found.left_out:
        yield f"not compared, as answers are not on the tape: {_names(found.left_out)}"


def _names(names: tuple[str, ...]) -> str:
    return f"{len(names)} ({', '.join(names[:20])}{', ...' if len(names) > 20 else ''})" if names else "0"
