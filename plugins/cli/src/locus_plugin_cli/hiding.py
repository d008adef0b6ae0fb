"""Configurations for display: without credentials and prompts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from locus.plugins import redact

__all__ = ["HIDDEN", "hide", "hide_in_prose", "is_place", "looks_like_key"]

HIDDEN = "(hidden)"

_WORDS = r"key|token|secret|passw|passphrase|pwd|credential|auth|bearer|cookie|signature"

#: Settings with these names are hidden whatever their type: not every author knows `Secret`.
_NAMES = re.compile(_WORDS, re.IGNORECASE)

#: Names of numbers and switches that only sound like that.
_COUNTS = re.compile(
    r"(?:^|_)(?:max|num|min)_.*tokens|tokens?_field|token_budget|_tokens$|^author|keep|monkey|keyword", re.IGNORECASE
)

#: Tables whose values are sent elsewhere unchanged, and are often secrets.
_TABLES = re.compile(r"headers?$|^env(?:ironment)?$|^cookies$", re.IGNORECASE)

#: Texts for a model: long, and private.
_PROMPTS = re.compile(r"prompt|instructions", re.IGNORECASE)

#: An option that takes a secret: ``--api-token``, ``-H``.
_OPTION = re.compile(rf"--?[\w-]*(?:{_WORDS}|header)[\w-]*|--(?:[\w-]+[-_])?pat|-[Hpu]|--user", re.IGNORECASE)

_OPTION_WITH_VALUE = re.compile(
    rf"(--?[\w.-]*(?:{_WORDS}|header)[\w.-]*[= ]|--(?:[\w-]+[-_])?pat[= ]|[\w.-]*(?:{_WORDS})[\w.-]*[=:]\s*)\S.*",
    re.I | re.S,
)

#: What keys look like: the beginnings that vendors give theirs.
_KEYS = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|key|hf|ghp|gho|ghs|glpat|github_pat|xox[abpr]|AKIA|AIza)[-_]?[A-Za-z0-9_-]{8,}"
    r"|[Bb]earer\s+\S{8,}|-----BEGIN "
)

#: A user without a password, which on the web is a token.
_USER_INFO = re.compile(r"(https?://)[^\s/@:'\"]+@", re.IGNORECASE)


def looks_like_key(text: str) -> bool:
    """Whether a text contains something that looks like a vendor's key."""
    return _KEYS.search(text) is not None


def hide(value: Any, name: str = "") -> Any:
    """Plain data with private values replaced; ``{ env = "NAME" }`` says where a secret is, and stays.

    Args:
        value: text, numbers, lists and tables.
        name: the key of the value, which matters as much as the value itself.
    """
    if is_place(value):
        return dict(value)
    secretive = _NAMES.search(name) is not None and _COUNTS.search(name) is None
    if isinstance(value, Mapping):
        inside = secretive or _TABLES.search(name) is not None
        return {
            str(key): HIDDEN if inside and not is_place(each) else hide(each, str(key)) for key, each in value.items()
        }
    if value is None or isinstance(value, bool):
        return value
    if secretive:
        return HIDDEN
    if isinstance(value, str):
        if _PROMPTS.search(name):
            return f"({len(value):,} characters)"
        return HIDDEN if _TABLES.search(name) else _text(value)
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes):
        return _arguments([*value], name)
    return value


def hide_in_prose(text: str) -> str:
    """A sentence about a configuration, which may quote a value of it."""
    return _KEYS.sub(HIDDEN, _USER_INFO.sub(rf"\1{HIDDEN}@", text))


def is_place(value: Any) -> bool:
    """Whether it says in which variable of the environment a secret is."""
    return isinstance(value, Mapping) and set(value) == {"env"} and isinstance(value["env"], str)


def _text(value: str) -> str:
    if looks_like_key(value):
        return HIDDEN
    return _USER_INFO.sub(rf"\1{HIDDEN}@", redact(value))


def _arguments(items: list[Any], name: str) -> list[Any]:
    """A list, in which an option may be followed by a secret."""
    shown: list[Any] = []
    secret_next = False
    for item in items:
        if not isinstance(item, str):
            shown.append(hide(item, name))
            secret_next = False
        elif secret_next and not item.startswith("--"):
            shown.append(HIDDEN)
            secret_next = False
        else:
            secret_next = _OPTION.fullmatch(item) is not None
            shown.append(item if secret_next else _OPTION_WITH_VALUE.sub(rf"\1{HIDDEN}", _text(item)))
    return shown
