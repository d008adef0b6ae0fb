"""The one JSON object that an answer must be, for plugins that let a model decide something.

Nothing is looked for between the words of an answer, as `locus.models.extract` does for answers that are only read: a
judge that quotes a hostile text would quote its verdict as well.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from locus.core.errors import LocusError

__all__ = ["NotOneObject", "json_object"]


class NotOneObject(LocusError):
    """An answer is not one JSON object and nothing else. Its text says why, and never quotes the answer."""


def json_object(text: str, *, longest: int) -> dict[str, Any]:
    """The JSON object that a text is, with one fence around it at most.

    Args:
        text: the answer.
        longest: characters of an answer; a longer one is refused unread.

    Raises:
        NotOneObject: it is too long or something else, a key comes twice, or a number is not JSON's.
    """
    if len(text) > longest:
        raise NotOneObject(f"the answer has {len(text)} characters; {longest} are read")
    body = text.strip()
    lines = body.splitlines()
    if len(lines) > 2 and lines[0] in ("```", "```json") and lines[-1] == "```":
        body = "\n".join(lines[1:-1])
    try:
        form = json.loads(body, object_pairs_hook=_pairs, parse_constant=_constant)
    except (ValueError, RecursionError):
        form = None
    if not isinstance(form, dict):
        raise NotOneObject("the answer is not one JSON object and nothing else")
    return form


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    form = dict(pairs)
    if len(form) != len(pairs):
        raise NotOneObject("a key comes twice in one object")
    return form


def _constant(name: str) -> NoReturn:
    raise NotOneObject(f"{name} is not JSON")
