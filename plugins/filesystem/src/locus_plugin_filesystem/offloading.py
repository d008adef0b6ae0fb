"""Results that are too long for a conversation: they become files, and their beginning and end stay."""

from __future__ import annotations

from hashlib import sha256
from itertools import chain

from locus_plugin_filesystem.text import MAX_LINE_CHARS

__all__ = ["FOLDER", "break_lines", "path_of", "shorten"]

FOLDER = "/large_results"

#: What is shown of a result: its beginning and its end, in characters.
_HEAD, _TAIL = 4_000, 2_000


def path_of(run_id: str, iteration: int, call_id: str) -> str:
    """Where the result of a call is kept.

    A call's id alone does not say which call it is: models use the same ones again in the next turn.
    """
    digest = sha256(f"{run_id}/{iteration}/{call_id}".encode(errors="replace")).hexdigest()
    return f"{FOLDER}/{digest[:16]}"


def break_lines(text: str) -> str:
    """The text with lines that can be read by their numbers: none is longer than is shown of a line."""
    if max(map(len, text.split("\n"))) <= MAX_LINE_CHARS:
        return text
    pieces = (
        [line[i : i + MAX_LINE_CHARS] for i in range(0, len(line), MAX_LINE_CHARS)] or [""] for line in text.split("\n")
    )
    return "\n".join(chain.from_iterable(pieces))


def shorten(text: str, path: str, lines: int) -> str:
    """What the model gets in the place of a text.

    Args:
        text: the whole result.
        path: where it is kept.
        lines: how many lines the file has.
    """
    left_out = len(text) - _HEAD - _TAIL
    where = f'{path}, in {lines:,} lines; read_file(path="{path}", offset=0, limit=100) reads it'
    return (
        f"[this result has {len(text):,} characters; all of it is in {where}. Its beginning and end:]\n"
        f"{text[:_HEAD]}\n[{left_out:,} characters are left out here]\n{text[-_TAIL:]}"
    )
