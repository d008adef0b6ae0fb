"""The list: a line a thread."""

from __future__ import annotations

from pathlib import Path

from locus.journal import ThreadInfo
from locus_plugin_cli import status
from locus_plugin_cli.journals import Journals
from locus_plugin_cli.output import print_json, print_rows, say
from locus_plugin_cli.overview import as_json as thread_as_json
from locus_plugin_cli.overview import describe_status, list_threads, search_threads
from locus_plugin_cli.text import format_age, one_line
from locus_plugin_cli.view.tally import count_of

__all__ = ["DEFAULT_LIMIT", "print_threads"]

#: How many threads a person is shown unless more are asked for.
DEFAULT_LIMIT = 20


def print_threads(journals: Journals, *, as_json: bool, limit: int | None, search: str | None = None) -> int:
    """Write the list; gives the exit status.

    Args:
        journals: the store.
        as_json: one JSON object a line.
        limit: the most threads; 0 = all, None = as many as suit the form.
        search: words that all have to be in a thread; None = every thread.
    """
    every = journals.run(list_threads(journals.store))
    if search is not None and every:
        every, unread = journals.run(search_threads(journals.store, every, search))
        if unread:
            say(f"{count_of(unread, 'thread')} cannot be read, and only the title was searched")
        if not every:
            say(f"no thread in {one_line(journals.kept.name)} has {one_line(search)!r}")
            return status.OK
    if limit is None:
        limit = 0 if as_json else DEFAULT_LIMIT
    chosen = every[:limit] if limit else every
    if as_json:
        for info in chosen:
            print_json(thread_as_json(info), indent=None)
        return status.OK
    if not every:
        path = getattr(journals.store, "path", None)
        is_missing = journals.kept.asked and isinstance(path, Path) and not path.exists()
        say(f"no threads in {journals.kept.name}" + ("; there is no such file" if is_missing else ""))
        return status.OK
    print_rows(("THREAD", "LAST", "STATUS", "TITLE"), [_row(each) for each in chosen])
    if len(every) > len(chosen):
        say(f"{len(every) - len(chosen):,} more; --limit 0 lists all")
    return status.OK


def _row(info: ThreadInfo) -> tuple[str, ...]:
    last = format_age(info.updated_at) if info.updated_at is not None else "-"
    return one_line(info.thread_id), last, describe_status(info), one_line(info.title) or "-"
