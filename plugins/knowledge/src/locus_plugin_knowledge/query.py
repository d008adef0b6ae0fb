"""What a search of a catalog is made into: FTS5's query, and conditions over columns, with every value bound."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from attrs import frozen

from locus.core.errors import closest
from locus_plugin_knowledge.protocol import KnowledgeRow

__all__ = ["Found", "check_number", "conditions_of", "match_of", "quote_name", "storable"]

_WORD = re.compile(r"\w+")
#: How many words of a query count, and how many characters of each.
_MOST_WORDS, _LONGEST = 64, 64

#: The ints that a column can have.
_LEAST, _MOST = -(2**63), 2**63 - 1

_OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


@frozen
class Found:
    """A row that a search found.

    Args:
        row: the row.
        score: how well it fits, by bm25; larger is better; 0.0 where no words were searched for.
    """

    row: KnowledgeRow
    score: float


def storable(text: str) -> str:
    """A text that SQLite can keep: lone surrogates, which are not text, are replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")


def check_number(where: str, value: object) -> None:
    """Refuse an int that SQLite cannot keep in a column.

    Raises:
        ValueError: it has more than 64 bits; the message begins with ``where``.
    """
    if isinstance(value, int) and not _LEAST <= value <= _MOST:
        # Thousands of digits are not written out: Python refuses to.
        raise ValueError(f"{where}: expected an int of at most 64 bits, got one of {value.bit_length() + 1:,} bits")


def match_of(query: str) -> str:
    """FTS5's query for any of the words of a text: each is a string of its own, so nothing in it is an operator."""
    words = dict.fromkeys(word[:_LONGEST] for word in _WORD.findall(storable(query).lower()))
    return " OR ".join(f'"{word}"' for word in [*words][:_MOST_WORDS])


def quote_name(name: str) -> str:
    """A name as SQL's identifier."""
    return '"' + name.replace('"', '""') + '"'


def conditions_of(where: Mapping[str, Any], columns: Collection[str]) -> tuple[str, list[Any]]:
    """SQL's condition, with a ``?`` for each value, and the values.

    Args:
        where: column -> value, or ``(operator, value)`` with one of ``= != < <= > >=``; None is SQL's NULL.
        columns: those there are.

    Raises:
        ValueError: the column or the operator is unknown, or no column can have the value.
    """
    parts, values = ["1"], []
    for name, wanted in where.items():
        if name not in columns:
            near = closest(str(name), columns)
            hint = f"; did you mean {near!r}?" if near else f"; its columns are {', '.join(sorted(columns))}"
            raise ValueError(f"the catalog has no column {name!r:.80}{hint}")
        operator, value = wanted if isinstance(wanted, tuple) and len(wanted) == 2 else ("=", wanted)
        if operator not in _OPERATORS:
            raise ValueError(f"expected one of {' '.join(_OPERATORS)}, got {operator!r:.80}")
        if not isinstance(value, str | int | float | None):
            raise ValueError(f"the value of {name!r} must be a str, a number, a bool or None, got {value!r:.80}")
        check_number(f"the value of {name!r}", value)
        column = quote_name(name)
        if value is None:
            parts.append(f"{column} IS {'NOT ' if operator == '!=' else ''}NULL")
        else:
            parts.append(f"{column} {operator} ?")
            values.append(storable(value) if isinstance(value, str) else value)
    return " AND ".join(parts), values
