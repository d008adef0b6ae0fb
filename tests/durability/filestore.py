"""`FileStore`: a second journal store on disk, as short as the laws allow: one file of JSON lines a thread, one lock.

It is a subject of the proofs beside the real store, so that they hold of the seam and not of one database; and the
base of the broken stores that the proofs must find.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote
from uuid import uuid4

from attrs import define, evolve, field

from locus.core.errors import ThreadBusy
from locus.core.journal import Body, Entry, Transition, entry_from_json, entry_to_json
from locus.core.state import AgentState
from locus.journal.listing import about, page, progress, status_of
from locus.journal.store import Appended, Claim, Snapshot, ThreadInfo, ThreadQuery

__all__ = ["FileStore", "Journal"]


def _now() -> datetime:
    return datetime.now(UTC)


@define(slots=True)
class Journal:
    """What the lines of one file amount to.

    Args:
        entries: what was accepted.
        saved: (writer, form) of entries of a broken store that were written before they were accepted.
        lying: (number, writer) of every entry that was ever written.
    """

    entries: list[Entry] = field(factory=list)
    saved: list[tuple[str, dict[str, Any]]] = field(factory=list)
    lying: list[tuple[int, str]] = field(factory=list)
    snapshot: dict[str, Any] | None = None
    token: str = ""
    worker: str | None = None
    since: str = ""
    until: str = ""
    not_before: str | None = None

    def take(self, line: dict[str, Any]) -> None:
        match line["is"]:
            case "claim":
                self.token, self.worker, self.since = line["token"], line["worker"], line["since"]
                self.not_before = None
            case "entries":
                self.lies(line)
                for form in line["bodies"]:
                    self.accept(line["token"], form)
            case "saved":
                self.lies(line)
                self.saved += [(line["token"], form) for form in line["bodies"]]
            case "dispatched":
                accepted = len(self.entries)
                for writer, form in self.saved[: line["upto"] - accepted]:
                    self.accept(writer, form)
                del self.saved[: line["upto"] - accepted]
            case "snapshot":
                self.snapshot = line
            case "release":
                self.token, self.worker, self.not_before = "", None, line["not_before"]
        self.until = line.get("until", self.until)

    def lies(self, line: dict[str, Any]) -> None:
        first = len(self.entries) + 1
        self.lying += [(n, line["token"]) for n, _ in enumerate(line["bodies"], first)]

    def accept(self, writer: str, form: dict[str, Any]) -> None:
        parent = self.entries[-1].id if self.entries else ""
        self.entries.append(Entry(len(self.entries) + 1, writer, parent, entry_from_json(form)))


class FileStore:
    """Journals in a folder.

    Args:
        folder: where the files are; made if it is not there.
        now: the clock of this process; only who may try depends on it.
        lease: how long a worker counts as alive after its last write.
        snapshot_every: as the protocol says.
        point: called where a process may die inside of a write.
    """

    keeps_history = True
    snapshot_every: int | None = None

    def __init__(
        self,
        folder: Path,
        *,
        now: Callable[[], datetime] = _now,
        lease: timedelta = timedelta(seconds=30),
        snapshot_every: int | None = None,
        point: Callable[[str], None] = lambda where: None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.now, self.lease, self.snapshot_every, self.point = folder, now, lease, snapshot_every, point
        self._read: dict[str, tuple[int, Journal, int]] = {}

    # -- the file -------------------------------------------------------------------------------------

    def path(self, thread_id: str) -> Path:
        """The file of a thread."""
        return self.folder / f"{quote(thread_id, safe='')}.jsonl"

    @contextmanager
    def _open(self, thread_id: str) -> Iterator[tuple[Journal, int]]:
        """The journal and its file, locked. What this handle has read before is not read again."""
        file = os.open(self.path(thread_id), os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            status = os.fstat(file)
            inode, journal, whole = self._read.get(thread_id, (0, Journal(), 0))
            if inode != status.st_ino:
                journal, whole = Journal(), 0
            for line in os.pread(file, status.st_size - whole, whole).splitlines(keepends=True):
                if line.endswith(b"\n"):
                    journal.take(json.loads(line))
                    whole += len(line)
            if whole != status.st_size:
                os.ftruncate(file, whole)  # a line without its end was never acknowledged
            self._read[thread_id] = status.st_ino, journal, whole
            yield journal, file
        finally:
            os.close(file)

    def write(self, file: int, line: dict[str, Any]) -> None:
        """Add a line; it counts once its end is there."""
        if line["is"] != "release":
            line["until"] = (self.now() + self.lease).isoformat()
        data = (json.dumps(line) + "\n").encode()
        self.point("file: before the write")
        os.write(file, data[: len(data) // 2])
        self.point("file: inside the write")
        os.write(file, data[len(data) // 2 :])
        self.point("file: written")

    def rows(self, thread_id: str) -> list[tuple[int, str]]:
        """(number, writer) of everything that lies in a thread's file."""
        with self._open(thread_id) as (journal, _):
            return list(journal.lying)

    # -- the protocol ---------------------------------------------------------------------------------

    async def claim(self, thread_id: str, worker: str) -> Claim:
        with self._open(thread_id) as (journal, file):
            if journal.worker is not None and self.now().isoformat() < journal.until:
                raise ThreadBusy(thread_id, journal.worker, journal.since)
            token, is_abandoned = uuid4().hex, journal.worker is not None
            self.write(file, {"is": "claim", "token": token, "worker": worker, "since": self.now().isoformat()})
            return evolve(_claim(thread_id, token, journal), is_abandoned=is_abandoned)

    def allows(self, journal: Journal, claim: Claim) -> bool:
        """Whether a claim may write."""
        return journal.token == claim.token

    async def append(self, claim: Claim, bodies: Sequence[Body]) -> Appended:
        forms = [entry_to_json(body) for body in bodies]
        with self._open(claim.thread_id) as (journal, file):
            if not self.allows(journal, claim):
                return Appended.FENCED
            self.write(file, {"is": "entries", "token": claim.token, "bodies": forms})
            return Appended.OK

    async def snapshot(self, claim: Claim, at: int, state: AgentState, last: Transition) -> bool:
        with self._open(claim.thread_id) as (journal, file):
            if not self.allows(journal, claim) or at > len(journal.entries):
                return False
            self.write(file, {"is": "snapshot", "at": at, "state": state.to_checkpoint()})
            return True

    async def renew(self, claim: Claim) -> bool:
        with self._open(claim.thread_id) as (journal, file):
            if journal.token == claim.token:
                self.write(file, {"is": "renewal"})
            return journal.token == claim.token

    async def release(self, claim: Claim, not_before: datetime | None = None) -> None:
        with self._open(claim.thread_id) as (journal, file):
            if journal.token == claim.token:
                self.write(file, {"is": "release", "not_before": not_before and not_before.isoformat()})

    def _all(self) -> list[tuple[str, Journal]]:
        newest_first = sorted(self.folder.glob("*.jsonl"), key=lambda path: -path.stat().st_mtime_ns)
        found = []
        for path in newest_first:
            with self._open(unquote(path.stem)) as (journal, _):
                found.append((unquote(path.stem), journal))
        return found

    async def next_ready(self, now: datetime) -> str | None:
        due = [
            (journal.not_before, thread_id)
            for thread_id, journal in self._all()
            if journal.worker is None and journal.not_before is not None and journal.not_before <= now.isoformat()
        ]
        return min(due)[1] if due else None

    async def read(self, thread_id: str, after: int = 0) -> tuple[Entry, ...]:
        if not self.path(thread_id).exists():
            return ()
        with self._open(thread_id) as (journal, _):
            return tuple(journal.entries[after:])

    async def peek(self, thread_id: str) -> Claim | None:
        if not self.path(thread_id).exists():
            return None
        with self._open(thread_id) as (journal, _):
            return _claim(thread_id, "", journal) if journal.entries else None

    async def threads(self, query: ThreadQuery | None = None) -> tuple[ThreadInfo, ...]:
        return page([_listed(thread_id, journal) for thread_id, journal in self._all()], query)

    async def fork(self, thread_id: str, at: int, into: str, bodies: Sequence[Body] = ()) -> None:
        raise NotImplementedError("no proof forks a thread of this store")

    async def delete(self, thread_id: str, *, head: int | None = None) -> bool:
        if not self.path(thread_id).exists():
            return False
        with self._open(thread_id) as (journal, _):
            if journal.worker is not None:
                raise ThreadBusy(thread_id, journal.worker, journal.since)
            if head is not None and len(journal.entries) != head:
                return False
            self.path(thread_id).unlink()
        return True


def _listed(thread_id: str, journal: Journal) -> ThreadInfo:
    bodies = [entry.body for entry in journal.entries]
    found, known = progress(bodies), about(bodies)
    moved = [body.delta.changed.get("updated_at") for body in bodies if isinstance(body, Transition)]
    return ThreadInfo(
        thread_id=thread_id,
        head=len(bodies),
        holder=journal.worker,
        updated_at=max((at for at in moved if at is not None), default=None),
        status=status_of(found.status, is_held=journal.worker is not None),
        node=found.node,
        title=known.title,
        model=known.model,
        agent_id=known.agent_id,
        metadata=known.metadata,
    )


def _claim(thread_id: str, token: str, journal: Journal) -> Claim:
    snapshot, at = None, 0
    if journal.snapshot is not None:
        at = journal.snapshot["at"]
        last = journal.entries[at - 1].body
        assert isinstance(last, Transition)
        snapshot = Snapshot(at, AgentState.from_checkpoint(journal.snapshot["state"]), last)
    head, after = len(journal.entries), tuple(journal.entries[at:])
    return Claim(thread_id=thread_id, token=token, head=head, snapshot=snapshot, entries=after)
