"""The one JSON object that an answer must be, for plugins that let a model decide something.

Nothing is searched for between the words of an answer, as the kernel does for typed answers, which are only read: a
judge that quotes a hostile text would quote its verdict as well.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from locus.core.errors import LocusError

__all__ = ["NotOneObject", "parse_json_object"]


class NotOneObject(LocusError):
    """An answer is not one JSON object and nothing else. The message says why, and never quotes the answer."""


def parse_json_object(text: str, *, longest: int) -> dict[str, Any]:
    """Parse a text that is one JSON object, with at most one fence around it.

    Args:
        text: the answer.
        longest: the most characters that an answer may have; a longer one is rejected without parsing it.

    Raises:
        NotOneObject: the text is too long or not one JSON object, a key is repeated, or a number is not JSON's.
    """
    if len(text) > longest:
        raise NotOneObject(f"the answer has {len(text)} characters; at most {longest} are allowed")
    body = text.strip()
    lines = body.splitlines()
    if len(lines) > 2 and lines[0] in ("```", "```json") and lines[-1] == "```":
        body = "\n".join(lines[1:-1])
    try:
        form = json.loads(body, object_pairs_hook=_make_object, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        form = None
    if not isinstance(form, dict):
        raise NotOneObject("the answer is not one JSON object and nothing else")
    return form


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    form = dict(pairs)
    if len(form) != len(pairs):
        raise NotOneObject("a key is repeated in one object")
    return form


def _refuse_constant(name: str) -> NoReturn:
    raise NotOneObject(f"{name} is not JSON")
