"""The state after an entry of a thread, from the snapshots before it."""

from __future__ import annotations

from locus.core.journal import BLANK, Transition
from locus.core.state import AgentState
from locus_plugin_sqlite.claims import find_thread
from locus_plugin_sqlite.journal_rows import Journal, fold, read_journal
from locus_plugin_sqlite.operation import Operation
from locus_plugin_sqlite.session import Session

__all__ = ["ReadingState"]


class ReadingState(Operation[AgentState | None]):
    """The state after the first entries of a thread; None where it has fewer."""

    __slots__ = ("_found", "_n", "_name")
    writes = False

    def __init__(self, name: str, n: int) -> None:
        super().__init__(None)
        self._name, self._n = name, n
        self._found: Journal | None = None

    def apply(self, session: Session) -> None:
        """Read the snapshots, and the entries from the newest on."""
        row = find_thread(session, self._name)
        if row is not None and 0 < self._n <= row.head:
            self._found = read_journal(session.db, session.path, row, None, self._n)

    def finish(self, session: Session) -> None:
        """Fold them."""
        found = self._found
        if found is None:
            return
        changes = found.deltas()
        for entry in found.entries(max(1, found.at)):
            if found.at < entry.n <= self._n and isinstance(entry.body, Transition):
                changes.append(entry.body.delta)
        self.result = fold(BLANK, changes)
