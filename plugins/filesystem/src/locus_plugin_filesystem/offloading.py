"""Results that are too long for a conversation: they become files, and their beginning and end stay."""

from __future__ import annotations

import re
from hashlib import sha256
from itertools import chain

from locus_plugin_filesystem.text import MAX_LINE_CHARS

__all__ = ["FOLDER", "break_lines", "find_path", "path_of", "shorten", "tell_lost"]

FOLDER = "/large_results"

#: What is shown of a result: its beginning and its end, in characters.
_HEAD, _TAIL = 4_000, 2_000


#: A path that `path_of` gives.
_PATH = re.compile(f"{FOLDER}/[0-9a-f]{{16}}(?![0-9a-f])")


def path_of(run_id: str, iteration: int, call_id: str, text: str | None = None) -> str:
    """Where the result of a call is kept; the same when the turn is repeated after a crash.

    A call's id alone does not say which call it is: models use the same ones again in the next turn.

    Args:
        run_id: the run.
        iteration: its turn.
        call_id: the id of the call.
        text: the result, where other calls of the turn have the same id: only results that are equal have one place.
    """
    place = f"{run_id}/{iteration}/{call_id}"
    if text is not None:
        place = f"{place}/{sha256(text.encode(errors='replace')).hexdigest()}"
    return f"{FOLDER}/{sha256(place.encode(errors='replace')).hexdigest()[:16]}"


def find_path(shown: str) -> str | None:
    """The place that a text says a result is kept at; None where it names none."""
    found = _PATH.search(shown)
    return None if found is None else found[0]


def break_lines(text: str) -> str:
    """The text with lines that can be read by their numbers: none is longer than is shown of a line."""
    if max(map(len, text.split("\n"))) <= MAX_LINE_CHARS:
        return text
    pieces = (
        [line[i : i + MAX_LINE_CHARS] for i in range(0, len(line), MAX_LINE_CHARS)] or [""] for line in text.split("\n")
    )
    return "\n".join(chain.from_iterable(pieces))


def tell_lost(text: str, limit: int) -> str:
    """What the model gets of a text that is larger than a file may be: its beginning and end, and how long it was.

    Args:
        text: the whole result.
        limit: how many characters the model may get.
    """
    note = f"[this result has {len(text):,} characters, which is too much for a file: what is left out is not kept]\n"
    between = "\n[...]\n"
    room = max(0, limit - len(note) - len(between))
    tail = room // 3
    return f"{note}{text[: room - tail]}{between}{text[len(text) - tail :]}"


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
