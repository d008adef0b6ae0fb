"""What a site allows programs to read, as RFC 9309 says: https://www.rfc-editor.org/rfc/rfc9309.

The parser of the standard library knows no wildcards in the Pythons that are supported, and a library that makes
regular expressions of them can be kept busy by a file of ``/*a*a*a*a``. Here a pattern is matched in one pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote, unquote_to_bytes

from attrs import frozen

__all__ = ["ALLOW_ALL", "FORBID_ALL", "MAX_BYTES", "Robots", "parse_robots"]

#: Bytes of the file that are read; RFC 9309 section 2.5 wants at least these.
MAX_BYTES = 512_000
_MAX_RULES = 5_000
_PRODUCT = re.compile(r"[a-z_-]+")


@frozen
class Robots:
    """The rules for one program.

    Args:
        rules: patterns of paths, and whether what they match may be read.
    """

    rules: tuple[tuple[str, bool], ...] = ()

    def allows(self, path: str) -> bool:
        """Whether a path, with its query, may be read: the longest pattern decides, of equal ones that which allows."""
        path = _normalize(path or "/")
        found = [(len(pattern), allowed) for pattern, allowed in self.rules if _matches(pattern, path)]
        return max(found)[1] if found else True


ALLOW_ALL = Robots()
FORBID_ALL = Robots((("/", False),))


def parse_robots(text: str, product: str) -> Robots:
    """The rules for a program.

    Args:
        text: the file.
        product: the program's name, in lower case; rules for ``*`` count if none are for it.
    """
    groups: dict[str, list[tuple[str, bool]]] = {}
    agents: list[str] = []
    is_open = False  # further user agents join the group until its first rule
    for key, value in _lines(text):
        if key == "user-agent":
            if not is_open:
                agents = []
            is_open = True
            name = "*" if value == "*" else _product(value)
            agents.append(name)
            groups.setdefault(name, [])
        elif key in ("allow", "disallow"):
            is_open = False
            for name in agents if value else ():
                if len(groups[name]) < _MAX_RULES:
                    groups[name].append((_normalize(value), key == "allow"))
    return Robots(tuple(groups.get(product, groups.get("*", ()))))


def _lines(text: str) -> Iterable[tuple[str, str]]:
    for line in text.removeprefix("\ufeff").splitlines():
        key, colon, value = line.partition("#")[0].partition(":")
        if colon:
            yield key.strip().lower(), value.strip()


def _product(value: str) -> str:
    found = _PRODUCT.match(value.lower())
    return found[0] if found else ""


def _normalize(path: str) -> str:
    """The one way to write a path: what may be written plainly is, and all else is escaped."""
    return quote(unquote_to_bytes(re.sub(r"%2[fF]", "%252F", path)), safe="/*$?&=;:@!'()+,~-._%")


def _matches(pattern: str, path: str) -> bool:
    is_whole = pattern.endswith("$")
    first, *others = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    at = len(first)
    last = others.pop() if others and is_whole else None
    for part in others:
        at = path.find(part, at)
        if at < 0:
            return False
        at += len(part)
    if not is_whole:
        return True
    return at == len(path) if last is None else len(path) - at >= len(last) and path.endswith(last)
