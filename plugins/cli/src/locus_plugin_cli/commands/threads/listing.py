"""The list: a line a thread."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from locus.journal import ThreadInfo
from locus_plugin_cli import status
from locus_plugin_cli.journals import Journals
from locus_plugin_cli.output import Output, print_rows, say
from locus_plugin_cli.overview import Overview, overview
from locus_plugin_cli.text import ago, dollars, one_line

__all__ = ["DEFAULT_LIMIT", "print_threads"]

#: How many threads a person is shown unless more are asked for.
DEFAULT_LIMIT = 20


def print_threads(journals: Journals, *, as_json: bool, limit: int | None) -> int:
    """Write the list; gives the exit status.

    Args:
        journals: the store.
        as_json: one JSON object a line.
        limit: the most threads; 0 = all, None = as many as suit the form.
    """
    every = journals.run(journals.store.threads())
    if limit is None:
        limit = 0 if as_json else DEFAULT_LIMIT
    chosen = every[:limit] if limit else every
    if as_json:
        out = Output(sys.stdout)
        for found in _each(journals, chosen):
            out.piece(json.dumps(found.as_json()) + "\n")
        return status.OK
    if not every:
        say(f"no threads in {journals.kept.name}")
        return status.OK
    print_rows(
        ("THREAD", "LAST", "ITERATIONS", "TOKENS", "COST", "STATUS"), [_row(each) for each in _each(journals, chosen)]
    )
    if len(every) > len(chosen):
        say(f"{len(every) - len(chosen):,} more; --limit 0 lists all")
    return status.OK


def _each(journals: Journals, infos: tuple[ThreadInfo, ...]) -> Iterator[Overview]:
    for info in infos:
        yield journals.run(overview(journals.store, info, whole=True))


def _row(found: Overview) -> tuple[str, ...]:
    return (
        one_line(found.thread_id),
        ago(found.updated_at) if found.updated_at is not None else "-",
        str(found.iterations) if found.iterations else "-",
        f"{found.usage.total_tokens:,}" if found.iterations else "-",
        dollars(found.usage) or "-",
        str(found),
    )
