"""What names a store or a model may hold a password: it is used as it is, and shown without.

The texts are other people's formats, so whatever looks like a secret is taken for one: a password too many that is
hidden costs less than one that stands in somebody's log.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["redacted", "scrubbed", "shown_values"]

_HIDDEN = "***"

_NAMES = r"password|passwd|passphrase|pwd|secret|token|credentials?|api[_-]?key|access[_-]?key|auth|signature"
#: Where a secret is, and none itself: ``api_key = { env = "NAME" }``.
_PLACE = r"\{\s*env\s*=\s*\"\w+\"\s*\}"
#: ``token=``, ``db_password =``; the short ones only where a query has them: ``key=`` may be anything elsewhere.
_NAMED = rf"((?:^|[^\w.-])[\w.-]*(?:{_NAMES})\s*=\s*+(?!{_PLACE})|[?&;](?:key|pass|sig|code)=)"

# Of a text that is known to be one connection, everything between the user and the last "@" is the password.
_WHOLE = (
    re.compile(r"(//[^\s:/@]*:).*@", re.DOTALL),
    re.compile(r"(^[\w+.-]+:[^\s:/\\@]+:)[^/\\]*@", re.DOTALL),
    re.compile(rf"{_NAMED}('[^']*'|\"[^\"]*\"|[^&;\s]*)", re.IGNORECASE),
)
# In prose it ends with the word.
_WITHIN = (
    re.compile(r"(//[^\s:/@'\"]*:)\S*@"),
    re.compile(rf"{_NAMED}('[^']*'|\"[^\"]*\"|[^&;\s'\")\]}}]*)", re.IGNORECASE),
)


def redacted(text: str) -> str:
    """The text that names a store or a model, such as ``"pg://user:***@host/db?token=***"``.

    Args:
        text: nothing but that, however it is written: passwords of a user, and parameters called after a secret.
    """
    return _hidden(text, _WHOLE)


def scrubbed(text: str) -> str:
    """The same for prose and tracebacks in which such texts may stand."""
    return _hidden(text, _WITHIN)


def shown_values(values: Mapping[str, Any]) -> str:
    """The `repr` of a table in which such texts may stand."""
    return repr({key: redacted(value) if isinstance(value, str) else value for key, value in values.items()})


def _hidden(text: str, patterns: tuple[re.Pattern[str], ...]) -> str:
    for pattern in patterns:
        text = pattern.sub(lambda found: f"{found[1]}{_HIDDEN}{'@' if found[0].endswith('@') else ''}", text)
    return text
