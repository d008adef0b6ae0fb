"""What the model reads of files and listings: as much as fits, and how to get the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from locus.files import MAX_PAGE_CHARS, FileInfo
from locus_plugin_filesystem.text import MAX_LINE_CHARS

__all__ = ["as_json", "count_bytes", "cut_page", "show_listing"]

#: Entries of a listing that are shown.
_ENTRIES = 1_000


def cut_page(page: str, offset: int, limit: int) -> str:
    """At most so many lines and characters of a page that has one line more, and where to read on."""
    lines = page.split("\n") if page else []
    kept = lines[:limit] if limit > 0 else lines
    length = 0
    for i, line in enumerate(kept):
        length += len(line) + 1
        if length > MAX_PAGE_CHARS and i:
            kept = kept[:i]
            break
    shown = "\n".join(kept)
    if len(kept) == len(lines) and len(page) <= MAX_PAGE_CHARS:
        return shown
    last = offset + len(kept)
    return f"{shown}\n[lines {offset + 1:,} to {last:,}; offset={last} goes on]"


#: A line of a page: its number, its text, and what is said where the text is cut.
_LINE = re.compile(rf" *[0-9]+\t(.{{{MAX_LINE_CHARS}}}(?= \[and [0-9,]+ characters more\]$)|.*)", re.DOTALL)


def count_bytes(shown: str) -> int:
    """The bytes of the text of a file that is on a page, in UTF-8: without numbers of lines, and what is said of them.

    Args:
        shown: see `cut_page`; of a backend that does not number lines all of it counts.
    """
    found = [line[1] for line in map(_LINE.match, shown.split("\n")) if line is not None]
    return len(("\n".join(found) if found else shown).encode(errors="replace"))


def show_listing(found: Sequence[FileInfo]) -> str:
    """Entries as JSON, and how many were left out."""
    shown, count = as_json(
        [
            {
                "path": each.path,
                "is_dir": each.is_dir,
                "size": each.size,
                "modified_at": each.modified_at.isoformat() if each.modified_at else None,
            }
            for each in found[:_ENTRIES]
        ]
    )
    if count == len(found):
        return shown
    return f"{shown}\n[the first {count:,} of {len(found):,} entries; narrow the path or the pattern]"


def as_json(items: Sequence[Any]) -> tuple[str, int]:
    """A list of as many items as fit a result, and how many these are."""
    parts: list[str] = []
    length = 0
    for each in items:
        part = json.dumps(each, ensure_ascii=False)
        length += len(part) + 2
        if length > MAX_PAGE_CHARS:
            break
        parts.append(part)
    return f"[{', '.join(parts)}]", len(parts)
