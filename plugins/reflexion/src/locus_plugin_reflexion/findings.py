"""What a call brought: whether its result is one that says that nothing was found."""

from __future__ import annotations

import json
import re
from typing import Any

from locus.core.state import ToolExecution

__all__ = ["found_nothing"]

#: A longer text has more to say than that nothing was found.
_LONGEST = 300

_THINGS = (
    r"(?:results?|match(?:es)?|hits?|entr(?:y|ies)|records?|items?|documents?|rows?|files?|pages?|articles?|data|"
    r"information|messages?|e-?mails?|flights?|products?|users?|customers?|orders?|events?|answers?)"
)
#: How tools say that they found nothing, in the languages that most of them speak.
_NOTHING = re.compile(
    rf"\b(?:no|zero|0)\s+(?:\w+\s+){{0,2}}{_THINGS}\b"
    rf"|\b{_THINGS}\s*[:=]\s*(?:0|none|null|\[\s*\])(?!\w)"
    r"|\b(?:nothing|none|not|no one|nobody)\s+(?:\w+\s+)?(?:was\s+|were\s+)?(?:found|matche[sd]|available|returned)\b"
    r"|\b(?:could|did|does|do|can)(?:\s+not|n['\u2019]t|not)\s+(?:find|match|exist)\b"
    r"|\bkeine\w*\s+(?:\w+\s+)?(?:ergebnisse|treffer|eintr\u00e4ge|daten)\b|\bnichts?\s+gefunden\b"
    r"|\baucun\w*\s+(?:r\u00e9sultat|entr\u00e9e|donn\u00e9e)|\brien\s+trouv\u00e9"
    r"|\b(?:sin|ning\u00fan)\s+(?:resultados?|coincidencias?)\b|\bno\s+se\s+encontr\w+"
    r"|(?:\u6ca1\u6709|\u672a|\u65e0)(?:\u627e\u5230|\u7ed3\u679c|\u6570\u636e)",
    re.IGNORECASE,
)
#: Under these keys a JSON result has what was found.
_HOLDERS = frozenset(
    {"answers", "articles", "data", "documents", "entries", "events", "files", "found", "hits", "items", "list"}
    | {"matches", "messages", "pages", "records", "result", "results", "rows", "values"}
)


def found_nothing(execution: ToolExecution) -> bool:
    """Whether a call succeeded and its result says that there was nothing to find.

    It may be no text, an empty JSON value, a JSON object whose ``results`` (``items``, ``hits``, ...) are empty, or a
    short text that says so. What the call asked for does not count as said: a result often repeats it.
    """
    text = execution.result
    if text is None or execution.media_at is not None:
        return False
    text = text.strip()
    if not text:
        return True
    if text[0] in '[{"n':
        try:
            return _is_empty(json.loads(text))
        except (ValueError, RecursionError):
            pass
    for asked in sorted(filter(_is_text, execution.arguments.values()), key=len, reverse=True):
        text = text.replace(asked, "")
    return len(text) <= _LONGEST and _NOTHING.search(text) is not None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_empty(value: Any) -> bool:
    if value is None or value == "":
        return True
    if isinstance(value, str):
        return len(value) <= _LONGEST and _NOTHING.search(value) is not None
    if isinstance(value, list):
        return not value
    if not isinstance(value, dict):
        return False
    held = [each for key, each in value.items() if key.casefold() in _HOLDERS and isinstance(each, list | dict | None)]
    return not value or (bool(held) and not any(held))
