"""In which order queues are asked for work: each of a pattern's in turn, so that no tenant waits for another's backlog.

A worker that always asked its first queue first would never get to the second one while the first is full. So each
look begins one queue further than the look before. Names are found by pattern, as in a shell: ``tenant:*``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from locus.core.errors import ConfigError

__all__ = ["Rota", "is_pattern"]

#: What makes a name a pattern.
_WILD = frozenset("*?[")


def is_pattern(text: str) -> bool:
    """Whether a text may match several queues."""
    return not _WILD.isdisjoint(text)


class Rota:
    """The queues of a worker, in turn.

    Args:
        wanted: names and patterns.

    Raises:
        ConfigError: no name is given, or one of them is empty.
    """

    __slots__ = ("_next", "_patterns", "names", "wanted")

    def __init__(self, wanted: Iterable[str]) -> None:
        given = tuple(dict.fromkeys(wanted))
        if not given or not all(given):
            raise ConfigError(f"expected the names of queues, such as 'default' or 'tenant:*', got {given!r}")
        #: What was asked for.
        self.wanted = given
        self._patterns = tuple(text for text in given if is_pattern(text))
        #: The queues as they are known now; those that were named come first.
        self.names: tuple[str, ...] = tuple(text for text in given if not is_pattern(text))
        self._next = 0

    @property
    def has_patterns(self) -> bool:
        """Whether further queues may turn up."""
        return bool(self._patterns)

    def group(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """What was asked for, each with the queues that it covers now and that were not asked for by name."""
        return tuple(
            (each, tuple(n for n in self.names if fnmatchcase(n, each) and n not in self.wanted))
            if each in self._patterns
            else (each, (each,))
            for each in self.wanted
        )

    def add(self, found: Iterable[str]) -> tuple[str, ...]:
        """Take up the queues of a store that a pattern covers; gives those that are new."""
        new = tuple(
            sorted({each for each in found if any(fnmatchcase(each, p) for p in self._patterns)}.difference(self.names))
        )
        self.names += new
        return new

    def turn(self) -> Sequence[str]:
        """The queues for the next look, the one whose turn it is first."""
        if not self.names:
            return ()
        at = self._next % len(self.names)
        self._next = at + 1
        return (*self.names[at:], *self.names[:at])
