"""`Head`: the one object of a thread that changes, and the only one that decides anything.

It says who may append, and holds the newest entries itself, so an append is one request: the head is written anew, on
the condition that it is still the version that was read. What no longer fits goes into an immutable object before,
which is invisible until a head names it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any

import msgspec
from attrs import field, frozen

from locus_plugin_oci.errors import BucketDamaged, BucketTooNew

__all__ = ["FORMAT", "Batch", "Head", "Part", "pack", "pack_parts", "unpack", "unpack_parts"]

#: The version of the form of everything in a bucket.
FORMAT = 1

_encode = msgspec.json.Encoder().encode
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_batches = msgspec.json.Decoder(list[tuple[int, str, str, int, msgspec.Raw]]).decode


@frozen
class Batch:
    """What one append added.

    Args:
        first: number of its first entry.
        parent: id of the entry before, or ``""``.
        writer: the token of its writer.
        count: how many entries.
        forms: their JSON forms, as the text of a list.
    """

    first: int
    parent: str
    writer: str
    count: int
    forms: bytes = field(repr=False)

    @property
    def last(self) -> int:
        """Number of its last entry."""
        return self.first + self.count - 1

    @property
    def size(self) -> int:
        """Bytes, about."""
        return len(self.forms) + 100


@frozen
class Part:
    """Entries that lie in an object of their own.

    Args:
        name: of the object.
        first: number of the first entry in it.
        last: number of the last one that counts; a fork may need fewer than there are.
        nested: whether the object holds parts, and not entries: then a head stays short however long the thread is.
    """

    name: str
    first: int
    last: int
    nested: bool = False


@frozen(kw_only=True)
class Head:
    """A thread.

    Args:
        thread: its id.
        log: the folder of its own objects.
        write: names this version for ever: a writer that lost an answer finds out whether it was stored.
        token: who may append; ``""`` = the thread is free.
        worker: what the holder calls itself.
        pulse: the store of the holder.
        lease: seconds that a silence of that store may last.
        since: when it was claimed, in microseconds.
        count: number of the newest entry.
        due: when it wants to go on, in microseconds, or None.
        mark: the token that the note about that was made with.
        parts: where the older entries are, oldest first.
        tail: the newest ones.
        parent: the id of the last entry in the parts, or ``""``.
        shares: the logs of other threads that parts lie in.
    """

    thread: str
    log: str
    write: str
    token: str = ""
    worker: str = ""
    pulse: str = ""
    lease: float = 0.0
    since: int = 0
    count: int = 0
    due: int | None = None
    mark: str = ""
    parts: tuple[Part, ...] = ()
    tail: tuple[Batch, ...] = ()
    parent: str = ""
    shares: tuple[str, ...] = ()

    @property
    def last(self) -> str:
        """The id of the newest entry, or ``""``: what the next one names as its parent."""
        return f"{self.tail[-1].last}:{self.tail[-1].writer}" if self.tail else self.parent

    def encode(self) -> bytes:
        """As it is stored."""
        plain = {
            "format": FORMAT,
            "thread": self.thread,
            "log": self.log,
            "write": self.write,
            "token": self.token,
            "worker": self.worker,
            "pulse": self.pulse,
            "lease": self.lease,
            "since": self.since,
            "count": self.count,
            "due": self.due,
            "mark": self.mark,
            "parent": self.parent,
            "shares": self.shares,
            "parts": [_part(each) for each in self.parts],
        }
        return _text(plain)[:-1] + b',"tail":' + _tail(self.tail) + b"}"

    @classmethod
    def decode(cls, data: bytes, bucket: str, name: str) -> Head:
        """The inverse.

        Args:
            data: the content of the object.
            bucket: for messages.
            name: of the object, for messages.

        Raises:
            BucketDamaged: it is something else.
        """
        try:
            plain, tail = _read(data)
            version = plain.pop("format")
            if not isinstance(version, int) or version > FORMAT:
                raise BucketTooNew(bucket, name, version, FORMAT)
            parts = tuple(Part(*each) for each in plain.pop("parts"))
            return cls(**{**plain, "parts": parts, "shares": tuple(plain["shares"]), "tail": tail})
        except (ValueError, LookupError, TypeError, AttributeError) as e:
            raise BucketDamaged(bucket, f"the object {name!r} is not the head of a thread ({type(e).__name__})") from e


def _read(data: bytes) -> tuple[dict[str, Any], tuple[Batch, ...]]:
    try:
        fields = _fields(data)
        tail = tuple(
            Batch(first, parent, writer, n, bytes(raw))
            for first, parent, writer, n, raw in _batches(fields.pop("tail"))
        )
        return {key: msgspec.json.decode(raw) for key, raw in fields.items()}, tail
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Half of a surrogate pair, which JSON can say and this decoder does not take.
        plain = json.loads(data)
        return plain, tuple(_batch(row) for row in plain.pop("tail"))


def _batch(row: list[Any]) -> Batch:
    first, parent, writer, count, forms = row
    return Batch(first, parent, writer, count, _text(forms))


def _text(value: Any) -> bytes:
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def _part(part: Part) -> list[Any]:
    return [part.name, part.first, part.last, part.nested]


def _tail(batches: Sequence[Batch]) -> bytes:
    rows = (_text([b.first, b.parent, b.writer, b.count])[:-1] + b"," + b.forms + b"]" for b in batches)
    return b"[" + b",".join(rows) + b"]"


def pack(batches: Sequence[Batch]) -> bytes:
    """The content of an object of entries."""
    return zlib.compress(b'{"format":%d,"entries":%s}' % (FORMAT, _tail(batches)), 6)


def pack_parts(parts: Sequence[Part]) -> bytes:
    """The content of an object of parts."""
    return zlib.compress(_text({"format": FORMAT, "parts": [_part(each) for each in parts]}), 6)


def unpack(data: bytes, bucket: str, name: str) -> tuple[Batch, ...]:
    """The inverse of `pack`.

    Raises:
        BucketDamaged: it is something else.
    """
    text = _plain(data, bucket, name)
    try:
        try:
            return tuple(Batch(*row[:4], bytes(row[4])) for row in _batches(_fields(text)["entries"]))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return tuple(_batch(row) for row in json.loads(text)["entries"])
    except (ValueError, LookupError, TypeError) as e:
        raise BucketDamaged(bucket, f"the object {name!r} holds no entries ({type(e).__name__})") from e


def unpack_parts(data: bytes, bucket: str, name: str) -> tuple[Part, ...]:
    """The inverse of `pack_parts`.

    Raises:
        BucketDamaged: it is something else.
    """
    try:
        return tuple(Part(*each) for each in json.loads(_plain(data, bucket, name))["parts"])
    except (ValueError, LookupError, TypeError) as e:
        raise BucketDamaged(bucket, f"the object {name!r} holds no parts ({type(e).__name__})") from e


def _plain(data: bytes, bucket: str, name: str) -> bytes:
    try:
        text = zlib.decompress(data)
        version = json.loads(text[: text.index(b",")] + b"}")["format"]
    except (zlib.error, ValueError, LookupError, TypeError) as e:
        raise BucketDamaged(bucket, f"the object {name!r} is not what was written ({type(e).__name__})") from e
    if not isinstance(version, int) or version > FORMAT:
        raise BucketTooNew(bucket, name, version, FORMAT)
    return text
