"""Threads as text: one JSON object a line, a header first; nothing is lost, and nothing damaged is taken in.

Each line carries a checksum of itself and of all lines before it, so that a line that was changed, lost or moved is
found. An import is the same run in another place, not another run: it keeps the run's ids, and with them the keys under
which services know its effects.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import anyio

from locus.core.errors import CheckpointError, CheckpointTooNew, Fenced, JournalError
from locus.core.journal import Body, entry_from_json, entry_to_json
from locus.core.state import SCHEMA
from locus.journal import Appended, recorded_entries
from locus.loop.input import thread_name
from locus_plugin_timetravel.histories import Source, store_of

if TYPE_CHECKING:
    from locus.core.journal import Entry
    from locus.journal import JournalStore

__all__ = ["FORMAT", "export_thread", "import_thread"]

#: The version of the file's own layout; that of the entries in it is `locus.core.state.SCHEMA`.
FORMAT = 1

_KIND = "locus.thread"


async def export_thread(source: Source, thread_id: str) -> Iterator[str]:
    """The lines of a thread, without line ends: a header, and one line an entry. Each is made when it is asked for.

    Args:
        source: the agent, or the store where the thread is kept; a run may hold it meanwhile.
        thread_id: the thread. The threads of child runs are threads of their own.

    Raises:
        NothingToResume: there is no such thread.
        JournalError: the store keeps no history.
    """
    return _lines(thread_id, await recorded_entries(store_of(source), thread_id))


def _lines(thread_id: str, entries: Sequence[Entry]) -> Iterator[str]:
    chain = _Chain()
    yield chain.line({"kind": _KIND, "format": FORMAT, "schema": SCHEMA, "thread_id": thread_id, "head": len(entries)})
    for entry in entries:
        yield chain.line(_form(entry))


def _form(entry: Entry) -> dict[str, Any]:
    return {"n": entry.n, "writer": entry.writer, "parent": entry.parent, "body": entry_to_json(entry.body)}


async def import_thread(source: Source, lines: Iterable[str] | AsyncIterable[str], *, into: str | None = None) -> str:
    """Store a thread that was exported; gives its id.

    All of it is read and checked before anything is stored, and it is stored in one write.

    Args:
        source: the agent, or the store that is to keep it.
        lines: what `export_thread` gave, or the lines of a file with it.
        into: another id than the thread had.

    Raises:
        CheckpointError: the text is damaged, cut off or out of order; the message says at which line.
        CheckpointTooNew: a newer version wrote it.
        JournalError: there is a thread of that id, or the store keeps no history.
        InputError: ``into`` is not a valid name.
    """
    store = store_of(source)
    bodies, exported = _read([line async for line in lines] if isinstance(lines, AsyncIterable) else lines)
    name = exported if into is None else thread_name(into)
    if not store.keeps_history:
        raise JournalError(f"cannot import a thread into {type(store).__name__}: it keeps no history")
    taken = JournalError(f"cannot import into thread {name!r}: there is such a thread; import it into another")
    if await store.peek(name) is not None:
        raise taken
    claim = await store.claim(name, "import")
    try:
        if claim.head:
            raise taken
        got = await store.append(claim, bodies)
        if got is not Appended.OK:
            raise Fenced(f"thread {name!r}: the import was not stored ({got.value}); import it again")
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


def _read(lines: Iterable[str]) -> tuple[list[Body], str]:
    chain, head, thread_id, number = _Chain(), None, "", 0
    bodies: list[Body] = []
    newest = ""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        form = _parsed(line, number)
        if head is None:
            _readable(form)
        chain.check(form, number)
        if head is None:
            head, thread_id = _header(form)
            continue
        n = len(bodies) + 1
        if form.get("n") != n or form.get("parent") != newest:
            raise CheckpointError(f"line {number}", f"entry {form.get('n')!r} stands where entry {n} belongs")
        bodies.append(_body(form, number))
        newest = f"{n}:{form.get('writer')}"
    if head is None:
        raise CheckpointError("line 1", "there is no header: this is no exported thread")
    if len(bodies) != head:
        raise CheckpointError(
            f"line {number}", f"the thread has {head} entries and {len(bodies)} are here; it is cut off"
        )
    return bodies, thread_id


def _parsed(line: str, number: int) -> dict[str, Any]:
    try:
        form = json.loads(line, parse_constant=_no_constant)
    except (ValueError, RecursionError) as e:
        raise CheckpointError(f"line {number}", f"it cannot be read: {e}") from e
    if not isinstance(form, dict):
        raise CheckpointError(f"line {number}", f"it is no JSON object but {line:.80}")
    return form


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _readable(form: dict[str, Any]) -> None:
    """Whether this version can read what begins so; asked first, for a newer one may check otherwise."""
    if form.get("kind") != _KIND:
        raise CheckpointError("line 1", f"kind is {form.get('kind')!r}: this is no exported thread")
    for key, newest in (("format", FORMAT), ("schema", SCHEMA)):
        found = form.get(key)
        if type(found) is not int or found < 1:
            raise CheckpointError("line 1", f"{key} is {found!r}; it is a version, from 1")
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
        raise CheckpointError(f"line {number}", "it holds no entry")
    try:
        return entry_from_json(body)
    except CheckpointError as e:
        raise CheckpointError(f"line {number}", str(e)) from e


class _Chain:
    """Puts a checksum of everything so far on each line, or looks for it there."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=8)

    def _sum(self, form: dict[str, Any]) -> str:
        # The same however the text is spaced or ordered; escapes keep half a surrogate pair what it is.
        self._hash.update(json.dumps(form, sort_keys=True, separators=(",", ":"), allow_nan=False).encode())
        return self._hash.copy().hexdigest()

    def line(self, form: dict[str, Any]) -> str:
        return json.dumps({**form, "sum": self._sum(form)}, separators=(",", ":"), allow_nan=False)

    def check(self, form: dict[str, Any], number: int) -> None:
        if form.pop("sum", None) != self._sum(form):
            raise CheckpointError(
                f"line {number}", "the checksum does not fit: this line, or one before it, was changed or moved"
            )
