"""The header of a journal's message: with it each message says all there is to know of its thread.

So a claim reads one message, and a listing reads no bodies. Times are microseconds since 1970.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any

from attrs import fields, frozen

from locus.core.errors import JournalDamaged
from locus.journal.listing import About, Progress
from locus_kit.entry_json import to_bytes
from locus_plugin_nats.subjects import new_token

__all__ = [
    "HEADER",
    "Head",
    "Tip",
    "about_from_form",
    "about_to_form",
    "decode",
    "from_micros",
    "make_tip",
    "micros",
    "parse_time",
]

#: The name of the header.
HEADER = "Locus"

#: Version of the format.
_FORMAT = 1

_EPOCH = datetime.fromtimestamp(0, UTC)


def micros(at: datetime) -> int:
    """Microseconds since 1970."""
    return (at - _EPOCH) // timedelta(microseconds=1)


def from_micros(at: int) -> datetime:
    """The inverse."""
    return _EPOCH + timedelta(microseconds=at)


def parse_time(text: str) -> int:
    """The server's time, in microseconds; it has up to nine digits behind the point."""
    whole, _, rest = text.removesuffix("Z").partition(".")
    return micros(datetime.fromisoformat(f"{whole}+00:00")) + int(rest[:6].ljust(6, "0") or 0)


@frozen(kw_only=True)
class Head:
    """What the header of one message says.

    Args:
        id: of the thread.
        n: number of the newest entry.
        count: how many entries this message holds: those up to ``n``.
        token: of the claim that wrote it.
        parent: id of the entry before those of this message.
        write: names this write, so that it is found again when its answer was lost.
        base: sequence of the message that ended the thread that had this id before, or 0.
        worker: the store that holds the thread, or ``""``.
        holder: what the holder calls itself.
        host: where it runs.
        pid: its process.
        since: when it claimed the thread, by its own clock; for people.
        not_before: when the run wants to go on, or None.
        snapshot: of the newest one: the number of its entry, the sequence of the message that holds that, the name and
            the chunks of its payload.
        grown: bytes of entries since then.
        status: how the newest run is.
        node: where it goes on.
        about: title, model, agent and metadata, where these are short.
        about_blob: name and chunks of the payload that holds them, where they are long.
        created: when the thread was claimed first.
        origins: the threads that it is a fork of, the nearest first: id and base.
        blobs: name -> chunks of the payloads of this message.
        body: name and chunks of the payload that holds the body, where that is too long for a message.
        shared: of a fork: how many of its entries it shares, name and chunks of the payload that holds them.
        queue: where it was submitted to.
        priority: of a submit.
        due: when it is to be offered first, or None.
        is_queued: whether it was ever submitted.
        purge: of a deleted thread: the last sequence of the stream of payloads that may be its own.
    """

    id: str
    n: int = 0
    count: int = 0
    token: str = ""
    parent: str = ""
    write: str = ""
    base: int = 0
    worker: str = ""
    holder: str = ""
    host: str = ""
    pid: int = 0
    since: int = 0
    not_before: int | None = None
    snapshot: tuple[int, int, str, int] | None = None
    grown: int = 0
    status: str = "new"
    node: str = ""
    about: dict[str, Any] | None = None
    about_blob: tuple[str, int] | None = None
    created: int = 0
    origins: tuple[tuple[str, int], ...] = ()
    blobs: dict[str, int] | None = None
    body: tuple[str, int] | None = None
    shared: tuple[int, str, int] | None = None
    queue: str = ""
    priority: int = 0
    due: int | None = None
    is_queued: bool = False
    purge: int = 0

    @property
    def last(self) -> str:
        """The id of the newest entry, or ``""``."""
        return f"{self.n}:{self.token}" if self.count else self.parent

    @property
    def progress(self) -> Progress:
        """How far the newest run is."""
        return Progress(self.status, self.node)

    def next(self, **changes: Any) -> Head:
        """The header of the next message, under a name of its own; it holds no entries unless the changes say so."""
        return self.change(**(_OWN | {"parent": self.last, "write": new_token()} | changes))

    def change(self, **changes: Any) -> Head:
        """The header with other values; `attrs.evolve` looks at the class each time, and each write makes several."""
        return Head(**(dict(zip(_NAMES, _get_values(self), strict=True)) | changes))

    def encode(self) -> str:
        """One line of ASCII."""
        given = zip(_NAMES, _get_values(self), _DEFAULTS, strict=True)
        found: dict[str, Any] = {"v": _FORMAT} | {name: value for name, value, default in given if value != default}
        text = to_bytes(found)
        return text.decode() if text.isascii() else json.dumps(found, separators=(",", ":"))


_NAMES = tuple(each.name for each in fields(Head))
_DEFAULTS = tuple(each.default for each in fields(Head))
_get_values = attrgetter(*_NAMES)

#: What belongs to one message only, as the next one begins.
_OWN: dict[str, Any] = {
    "count": 0,
    "blobs": None,
    "body": None,
    "shared": None,
    "queue": "",
    "priority": 0,
    "due": None,
}


def decode(text: str) -> Head:
    """The inverse of `Head.encode`.

    Raises:
        ValueError, TypeError, LookupError: it is damaged, or from a newer version.
    """
    found = json.loads(text)
    version = found.pop("v")
    if version != _FORMAT:
        raise ValueError(f"format {version!r} is not known; a newer version of the plugin wrote it")
    for name in ("snapshot", "about_blob", "body", "shared"):
        if found.get(name) is not None:
            found[name] = tuple(found[name])
    if "origins" in found:
        found["origins"] = tuple((str(name), int(base)) for name, base in found["origins"])
    return Head(**found)


@frozen
class Tip:
    """The newest message of a thread, or one before it.

    Args:
        seq: its sequence.
        head: its header.
        at: when the server stored it, in microseconds.
        data: its body.
        kind: what it is: claim, entries, snapshot, release, fork or deletion.
    """

    seq: int
    head: Head
    at: int
    data: bytes
    kind: str

    @property
    def is_gone(self) -> bool:
        """Whether the thread was deleted with this message."""
        return self.kind == "d"


def make_tip(subject: str, seq: int, headers: Mapping[str, str], at: str | int, data: bytes) -> Tip:
    """A message that was stored.

    Args:
        subject: of the message; its fourth word is the kind.
        seq: its sequence.
        headers: of the message.
        at: when the server stored it, as the server writes that, or in microseconds.
        data: its body.

    Raises:
        JournalDamaged: its header is not what was written.
    """
    try:
        micros_at = at if isinstance(at, int) else parse_time(at)
        return Tip(seq, decode(headers[HEADER]), micros_at, data, subject.split(".")[3])
    except (ValueError, TypeError, LookupError) as e:
        raise JournalDamaged(f"message {seq} of {subject} cannot be read: {type(e).__name__}: {e}", store="nats") from e


def about_to_form(about: About) -> dict[str, Any]:
    """The JSON form of what a thread is about; what is empty is left out."""
    found = {"t": about.title, "m": about.model, "a": about.agent_id, "d": dict(about.metadata)}
    return {name: value for name, value in found.items() if value}


def about_from_form(form: dict[str, Any] | None) -> About:
    """The inverse."""
    found = form or {}
    return About(found.get("t", ""), found.get("m", ""), found.get("a", ""), found.get("d", {}))
