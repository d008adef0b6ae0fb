"""Threads as text: one JSON object a line, a header first; nothing is lost, and nothing damaged is taken in.

Each line carries a checksum of itself and of all lines before it, so that a line that was changed, lost or moved is
found. An import is the same run in another place, not another run: it keeps the run's ids, and with them the keys under
which services know its effects.

A checksum says nothing about who wrote the file. So of the node under way only what is data is taken in: what calls
came to, and what a tool asks. A person's answer, the approval of a guard, what a guard's own model said, and
what the model answered last are not: they decide what runs here, and are asked for again.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, cast

import anyio
from attrs import evolve

from locus.core.errors import CheckpointError, CheckpointTooNew, Fenced, JournalError
from locus.core.journal import (
    BLANK,
    END,
    EXECUTE,
    FORK,
    START,
    Answered,
    Asked,
    Body,
    Fold,
    Intent,
    ModelFailed,
    Outcome,
    Paused,
    PauseKind,
    Retried,
    Submitted,
    Transition,
    entry_from_json,
    entry_to_json,
)
from locus.core.state import SCHEMA
from locus.journal import Appended, read_entries
from locus.loop import thread_name
from locus.loop.router import Node
from locus_plugin_timetravel.histories import Source, store_of
from locus_plugin_timetravel.json_text import canonical, decode, encode
from locus_plugin_timetravel.pages import EntryBatch, FormStore
from locus_plugin_timetravel.tainting import Tainting

if TYPE_CHECKING:
    from locus.core.state import AgentState
    from locus.journal import JournalStore

__all__ = ["FORMAT", "IMPORTED", "export_thread", "import_thread"]

#: The version of the file's own layout; that of the entries in it is `locus.core.state.SCHEMA`.
FORMAT = 1

_KIND = "locus.thread"

#: Why an open run that was imported is paused.
IMPORTED = "imported"

# How the id of a guard's question ends, which is asked before the call. See `Asked.interrupt_id`.
_DECISION = "?decide"

#: Entries from snapshot to snapshot of an import.
_SNAPSHOT_EVERY = 2048


async def export_thread(source: Source, thread_id: str) -> Iterator[str]:
    """The lines of a thread, without line ends: a header, and one line an entry. Each is made when it is asked for.

    Args:
        source: the agent, or the store where the thread is kept; a run may hold it meanwhile.
        thread_id: the thread. The threads of child runs are threads of their own.

    Raises:
        NothingToResume: the thread does not exist.
        JournalError: the store keeps no history.
    """
    store = store_of(source)
    forms = await store.read_forms(thread_id) if isinstance(store, FormStore) and store.keeps_history else ()
    if forms:
        # Decoded one by one: a million objects at once would keep the garbage collector busy.
        return _lines(thread_id, len(forms), ((n, writer, parent, decode(text)) for n, writer, parent, text in forms))
    entries = await read_entries(store, thread_id)
    return _lines(thread_id, len(entries), ((e.n, e.writer, e.parent, entry_to_json(e.body)) for e in entries))


def _lines(thread_id: str, head: int, forms: Iterable[tuple[int, str, str, dict[str, Any]]]) -> Iterator[str]:
    chain = _Chain()
    yield chain.line({"kind": _KIND, "format": FORMAT, "schema": SCHEMA, "thread_id": thread_id, "head": head})
    for n, writer, parent, body in forms:
        yield chain.line({"n": n, "writer": writer, "parent": parent, "body": body})


async def import_thread(
    source: Source,
    lines: Iterable[str] | AsyncIterable[str],
    *,
    into: str | None = None,
    trusted: bool = False,
) -> str:
    """Store a thread that was exported; gives its id.

    All of it is read and checked before anything is stored, and it is stored in one write. An open run is paused, with
    `IMPORTED` as the reason; its pending calls run when it is resumed. The labels of the state and of each result are
    untrusted from then on, and what the user is said to have written in it does not count as the user's.

    Args:
        source: the agent, or the store that is to keep it.
        lines: what `export_thread` gave, or the lines of a file with it.
        into: another id than the thread had.
        trusted: the text cannot have been changed by others: the answers and approvals that an open run has on record
            count here, too, what the model said last is not asked for again, and labels stay what they are.

    Raises:
        CheckpointError: the text is damaged, cut off or out of order; the message says at which line.
        CheckpointTooNew: a newer version wrote it.
        JournalError: there is a thread of that id, or the store keeps no history.
        InputError: ``into`` is not a valid name.
    """
    store = store_of(source)
    batch = store.new_batch() if isinstance(store, FormStore) else _Bodies()
    read = _Reading(batch, trusted=trusted)
    exported = await read.thread(lines)
    name = exported if into is None else thread_name(into)
    if not store.keeps_history:
        raise JournalError(f"cannot import a thread into {type(store).__name__}: it keeps no history")
    taken = JournalError(f"cannot import into thread {name!r}: that thread exists already; import it into another one")
    if await store.peek(name) is not None:
        raise taken
    claim = await store.claim(name, "import")
    try:
        if claim.head:
            raise taken
        if isinstance(batch, _Bodies):
            got = await store.append(claim, batch.bodies)
        else:
            got = await cast(FormStore, store).append_batch(claim, batch)
        if got is not Appended.OK:
            raise Fenced(f"thread {name!r}: the import was not stored ({got.value}); import it again")
        for at, state, last in read.snapshots():
            # Else the first claim would fold the whole thread.
            await store.snapshot(claim, at, state, last)
    except BaseException as e:
        with anyio.CancelScope(shield=True):
            await store.release(claim)
            if not claim.head:
                await _undone(store, name, e)
        raise
    await store.release(claim)
    return name


async def _undone(store: JournalStore, name: str, error: BaseException) -> None:
    """Take back what an import may have stored."""
    try:
        await store.delete(name)
    except Exception as e:  # noqa: BLE001  what was wrong first is what is raised
        error.add_note(f"thread {name!r} could not be deleted: {type(e).__name__}: {e}")


class _Bodies:
    """A batch for a store that takes entries as they are."""

    def __init__(self) -> None:
        self.bodies: list[Body] = []

    def add(self, body: Body, text: bytes) -> None:
        """One more entry."""
        self.bodies.append(body)


class _Reading:
    """Reads the lines of a thread, checks each, and folds the thread on trial.

    What is decoded is of the right types, and may be invalid nevertheless: more items kept than there are, a node that
    does not exist. That must not be found out by those who use the thread.

    Args:
        batch: what is read goes there.
        trusted: all of it; else of the node under way only what is data.
    """

    def __init__(self, batch: EntryBatch, *, trusted: bool) -> None:
        self._batch = batch
        self._trusted = trusted
        self._tainting = None if trusted else Tainting()
        #: The entries of the unfinished node, after the newest transition, with their text.
        self._under_way: list[tuple[Body, bytes]] = []
        self._chain = _Chain()
        self._line = self._entries = 0
        self._head: int | None = None
        self._thread_id = self._newest = ""
        #: Entry number, state and transition, of every so many entries and of the newest transition.
        self._snapshots: list[tuple[int, AgentState, Transition]] = []
        self._last: tuple[int, Transition] | None = None
        self._fold = Fold(BLANK)
        self._newest_transition: Transition | None = None
        self._asks = False

    def snapshots(self) -> list[tuple[int, AgentState, Transition]]:
        """Entry number, state and transition of each place where a snapshot is worth its room, the last one included.

        Several, as a run writes them: a fork in the middle starts from one, and none is as large as the whole state.
        """
        last = () if self._last is None else ((self._last[0], self._fold.state(), self._last[1]),)
        return [*self._snapshots, *last]

    async def thread(self, lines: Iterable[str] | AsyncIterable[str]) -> str:
        """Read everything; gives the exported thread's id.

        Raises:
            CheckpointError, CheckpointTooNew: as for `import_thread`.
        """
        if isinstance(lines, AsyncIterable):
            async for line in lines:
                self._read(line)
        else:
            for line in lines:
                self._read(line)
        if self._head is None:
            raise CheckpointError("line 1", "the header is missing: this is not an exported thread")
        if self._entries != self._head:
            raise CheckpointError(
                f"line {self._line}",
                f"the thread has {self._head} entries and {self._entries} are here; it is cut off",
            )
        self._finish()
        return self._thread_id

    def _finish(self) -> None:
        """Add the entries of the unfinished node."""
        newest = self._newest_transition
        if self._trusted or newest is None:
            self._flush()
            return
        self._under_way = [(body, text) for body, text in self._under_way if _is_data(body)]
        self._flush()
        if newest.next_node != END:
            kind: PauseKind = "interrupted" if self._asks else "yielded"
            pause = Paused(run_id=newest.run_id, segment=newest.segment, kind=kind, reason=IMPORTED)
            self._batch.add(pause, encode(entry_to_json(pause)))

    def _flush(self) -> None:
        for body, text in self._under_way:
            self._batch.add(body, text)
        self._asks = any(isinstance(body, Asked) for body, _ in self._under_way)
        self._under_way = []

    def _read(self, line: str) -> None:
        self._line += 1
        number = self._line
        if not line.strip():
            return
        form = _parse(line, number)
        if self._head is None:
            _check_readable(form)
        self._chain.check(line, form, number)
        if self._head is None:
            self._head, self._thread_id = _header(form)
            return
        n = self._entries + 1
        if form.get("n") != n or form.get("parent") != self._newest:
            raise CheckpointError(f"line {number}", f"expected entry {n}, got entry {form.get('n')!r}")
        found = body = _body(form, number)
        if type(body) is Transition:
            body = self._newest_transition = self._add(body, n, number)
        elif self._tainting is not None:
            body = self._tainting.step(body)
        self._under_way.append((body, encode(form["body"] if body is found else entry_to_json(body))))
        if type(body) is Transition:
            self._flush()
        self._entries, self._newest = n, f"{n}:{form.get('writer')}"

    def _add(self, made: Transition, n: int, number: int) -> Transition:
        """Fold a transition on trial; gives it as it is taken in."""
        try:
            _check(self._fold, made)
            if self._tainting is not None:
                made = evolve(made, delta=self._tainting.delta(made.delta))
            self._fold.add(made.delta)
        # Whatever folding raises, the entry is what is wrong.
        except Exception as e:
            raise CheckpointError(f"line {number}", f"the transition cannot be folded: {e}") from e
        self._last = n, made
        if n - (self._snapshots[-1][0] if self._snapshots else 0) >= _SNAPSHOT_EVERY:
            self._snapshots.append((n, self._fold.state(), made))
            self._last, self._fold = None, Fold(self._snapshots[-1][1])
        return made


def _is_data(body: Body) -> bool:
    """Whether an entry of the node under way says what happened, and decides nothing about what runs next."""
    if isinstance(body, Asked):
        # A tool asks again with its next words; what a guard asks is for the guard here to say.
        return not body.interrupt_id.endswith(_DECISION)
    if isinstance(body, Intent | Outcome | ModelFailed | Retried):
        return body.step_id.root.node == EXECUTE
    return not isinstance(body, Answered | Submitted)


def _check(before: Fold, made: Transition) -> None:
    """Raise what is wrong with a transition from a state, where folding it does not."""
    if made.node not in (START, FORK):
        Node(made.node)
    if made.next_node != END:
        Node(made.next_node)
    for name, (keep, _) in made.delta.grown.items():
        if type(keep) is not int or not 0 <= keep <= before.length(name):
            raise ValueError(f"{name} grows from {keep!r} of {before.length(name)} items")


def _parse(line: str, number: int) -> dict[str, Any]:
    try:
        form = decode(line)
    except (ValueError, RecursionError) as e:
        raise CheckpointError(f"line {number}", f"it cannot be read: {e}") from e
    if not isinstance(form, dict):
        raise CheckpointError(f"line {number}", f"expected a JSON object, got {line:.80}")
    return form


def _check_readable(form: dict[str, Any]) -> None:
    """Whether this version can read what begins so; asked first, for a newer one may check otherwise."""
    if form.get("kind") != _KIND:
        raise CheckpointError("line 1", f"kind is {form.get('kind')!r}: this is not an exported thread")
    for key, newest in (("format", FORMAT), ("schema", SCHEMA)):
        found = form.get(key)
        if type(found) is not int or found < 1:
            raise CheckpointError("line 1", f"{key} is {found!r}; a version is an integer from 1")
        if found > newest:
            raise CheckpointTooNew(found, newest)


def _header(form: dict[str, Any]) -> tuple[int, str]:
    head, thread_id = form.get("head"), form.get("thread_id")
    if type(head) is not int or head < 1 or not isinstance(thread_id, str):
        raise CheckpointError("line 1", f"a header names a thread and the number of its entries, not {form!r:.200}")
    return head, thread_id


def _body(form: dict[str, Any], number: int) -> Body:
    body = form.get("body")
    if not isinstance(body, dict):
        raise CheckpointError(f"line {number}", "the line holds no entry")
    try:
        return entry_from_json(body)
    except CheckpointError as e:
        raise CheckpointError(f"line {number}", str(e)) from e


class _Chain:
    """Puts a checksum of everything so far at the end of each line, or looks for it there."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=8)

    def line(self, form: dict[str, Any]) -> str:
        text = canonical(form)
        self._hash.update(text.encode())
        return f'{text[:-1]},"sum":"{self._hash.hexdigest()}"}}'

    def check(self, line: str, form: dict[str, Any], number: int) -> None:
        found = form.pop("sum", None)
        # The line as it was made, mostly; a form of the same name twice in it would have another checksum.
        end = f',"sum":"{found}"}}'
        text = line.strip()
        if text.endswith(end):
            made = self._hash.copy()
            made.update(text[: -len(end)].encode(errors="surrogatepass") + b"}")
            if made.hexdigest() == found:
                self._hash = made
                return
        # The same however the text is spaced or ordered; escapes keep half a surrogate pair what it is.
        self._hash.update(canonical(form).encode())
        if found != self._hash.hexdigest():
            raise CheckpointError(
                f"line {number}", "the checksum does not fit: this line, or one before it, was changed or moved"
            )
