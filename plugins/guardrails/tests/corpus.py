"""Labelled lines: what the default rules must find, and what they must leave alone.

A line of a file is a kind, a name of what it is, and a text, in which what is secret or personal is between ``«`` and
``»``. Texts hold the shapes of keys, ``<alnum:36>``, that are filled in from a seed here: no key in the files could be
one, so no scanner of repositories takes them for leaks. ``\\n`` is a line break.

``rules.txt`` and ``development.txt`` are what the rules were written with. The ``held_out`` files were written before
any rule was run on them; what the first run on them found is in ``contrib/bench/RESULTS.md``.
"""

from __future__ import annotations

import random
import re
import string
from pathlib import Path

from attrs import frozen

__all__ = ["CORPUS", "Line", "read"]

CORPUS = Path(__file__).parent / "data" / "corpus"

_ALPHABETS = {
    "alnum": string.ascii_letters + string.digits,
    "letters": string.ascii_letters,
    "upper": string.ascii_uppercase + string.digits,
    "digits": string.digits,
    "hex": string.digits + "abcdef",
    "b32": string.ascii_uppercase + "234567",
    "b64": string.ascii_letters + string.digits + "+/",
    "b64url": string.ascii_letters + string.digits,
    "url": string.ascii_letters + string.digits + "_-",
    "bech": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
}
_SHAPE = re.compile(rf"<({'|'.join(_ALPHABETS)}):(\d+)>|<(uuid)>")


@frozen
class Line:
    """One labelled text.

    Args:
        kind: ``"secret"``, ``"pii"`` or ``"harmless"``.
        name: what it is: ``"aws"``, ``"phone"``, ``"uuid"``.
        text: without marks.
        spans: where something is that must be found.
    """

    kind: str
    name: str
    text: str
    spans: tuple[tuple[int, int], ...]


def read(name: str) -> list[Line]:
    """The lines of a file of the corpus, by its name without ``.txt``."""
    lines = (CORPUS / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return [_line(line, random.Random(f"{name} {number}")) for number, line in enumerate(lines)]


def _line(line: str, dice: random.Random) -> Line:
    kind, name, marked = line.split("\t", 2)

    def fill(shape: re.Match[str]) -> str:
        if shape[3]:
            digits = "".join(dice.choices(_ALPHABETS["hex"], k=32))
            return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
        return "".join(dice.choices(_ALPHABETS[shape[1]], k=int(shape[2])))

    # A line break, unless the backslash is escaped itself, as in JSON within JSON.
    marked = re.sub(r"\\(\\?)n", lambda found: "\\n" if found[1] else "\n", _SHAPE.sub(fill, marked))
    text, spans, begun = "", [], 0
    for char in marked:
        if char == "«":
            begun = len(text)
        elif char == "»":
            spans.append((begun, len(text)))
        else:
            text += char
    return Line(kind, name, text, tuple(spans))
