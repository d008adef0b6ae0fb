"""Stores that break one law each, as somebody in a hurry would write them: the proofs must find them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.durability.filestore import FileStore, Journal
from tests.durability.subjects import Files, Sqlite

from locus.core.journal import Body, entry_to_json
from locus.journal.store import Appended, Claim
from locus_plugin_sqlite import SqliteStore
from locus_plugin_sqlite.entries import Appending
from locus_plugin_sqlite.session import Session

__all__ = ["BROKEN"]


class _Unfenced(FileStore):
    """Believes whoever says that he holds the thread."""

    def allows(self, journal: Journal, claim: Claim) -> bool:
        return True


class UnfencedFiles(Files):
    name = "files: fencing off"
    store = _Unfenced


class _Stealing(Appending):
    """Takes the thread from whoever holds it, and adds entries."""

    def apply(self, session: Session) -> None:
        session.db.execute("UPDATE threads SET token=? WHERE name=?", (self.claim.token, self.claim.thread_id))
        session.held.pop(self.claim.token, None)
        super().apply(session)


class _UnfencedSqlite(SqliteStore):
    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        return await self._do(_Stealing(claim, bodies))

    post: None = None  # type: ignore[assignment]


class UnfencedSqlite(Sqlite):
    name = "sqlite: fencing off"
    store = _UnfencedSqlite


class _SaveThenDispatch(FileStore):
    """Saves the entries, and says in a second write how many there are; between the two there are none."""

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        forms = [entry_to_json(body) for body in bodies]
        with self._open(claim.thread_id) as (journal, file):
            if not self.allows(journal, claim):
                return Appended.FENCED
            upto = len(journal.entries) + len(bodies)
            self.write(file, {"is": "saved", "token": claim.token, "bodies": forms})
            self.point("file: saved and not dispatched")
            self.write(file, {"is": "dispatched", "upto": upto})
            return Appended.OK


class SaveThenDispatch(Files):
    name = "files: save, then dispatch"
    store = _SaveThenDispatch


class _AckFirst(FileStore):
    """Says that it is written, and writes it with the next one."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._later: tuple[Claim, Sequence[Body]] | None = None

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        await self._flush()
        self._later = claim, bodies
        return Appended.OK

    async def release(self, claim: Claim, not_before: Any = None) -> None:
        await self._flush()
        await super().release(claim, not_before)

    async def _flush(self) -> None:
        later, self._later = self._later, None
        if later is not None:
            await super().append(*later)


class AckFirst(Files):
    name = "files: acknowledgement first"
    store = _AckFirst


BROKEN = {subject.name: subject for subject in (UnfencedFiles, UnfencedSqlite, SaveThenDispatch, AckFirst)}
