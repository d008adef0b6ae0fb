r"""What a store writes for one append: each text once, and a large one apart, under the hash of its content.

A tool's result occurs two or three times in an entry: what the tool returned, what the model gets, what the state
keeps. A short row is left alone, a longer one is compressed. In a long one the texts are lifted out before; in one of
more than `LIMIT`, the long texts become rows of their own. So a row has one of three forms::

    [...]                 the entries, compressed or not
    [...] newline [...]   the texts, then the entries, where "\0<n>" denotes the n-th of the texts and "\0\0..." for
                          a text "\0..."; in place of a text may be {"blob": "<hash>"}; compressed
    {"blob": "<hash>"}    all of that lies in a blob, because it is large without any long text; compressed

The texts are put back into the JSON before it is parsed: walking the parsed form would take longer than parsing it.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from attrs import field, frozen

from locus_kit.compression import compress, decompress
from locus_kit.entry_json import from_bytes, to_bytes

__all__ = ["LIMIT", "NEAR", "Row", "pack", "pack_texts", "unpack", "unpack_texts"]

#: Bytes of JSON up to which a row holds everything itself.
LIMIT = 256 * 1024

#: Characters from which a text in a row larger than that becomes a blob.
_LONG = 32 * 1024

#: Bytes of JSON up to which neither lifting nor compressing is worth its time.
_SHORT = 1500

#: Bytes of JSON within which zlib finds a text again by itself, in less time than lifting it takes.
NEAR = 16 * 1024

#: Characters from which a text is lifted out of a row that is longer than that.
_LIFTED = 64

_MARK = "\0"

#: What replaces a text. A quote within a text has a backslash before it, the name of a field a colon behind it. The
#: backslash is looked for last: `re` finds a pattern that begins with plain bytes ten times as fast.
_REFERENCE = re.compile(rb'"\\u0000(?<!\\"\\u0000)(\d+)"(?!:)')
_ESCAPED = b'"\\u0000\\u0000'

_raw_texts = msgspec.json.Decoder(list[msgspec.Raw]).decode


@frozen
class Row:
    """What is written for one append.

    Args:
        body: of the row.
        blobs: hash -> content of what was taken out of it.
    """

    body: bytes
    blobs: Mapping[str, bytes] = field(factory=dict)


def pack(forms: list[Any], limit: float = LIMIT) -> Row:
    """A row from the JSON forms of its entries.

    Args:
        forms: of its entries.
        limit: bytes of JSON up to which it holds everything itself; infinite for a store whose rows may be of any size.
    """
    plain = to_bytes(forms)
    return _short(plain) or _long(forms, plain, limit)


def pack_texts(texts: Sequence[bytes]) -> Row:
    """A row from the JSON texts of its entries."""
    plain = b"[" + b",".join(texts) + b"]"
    return _short(plain) or _long(from_bytes(plain), plain, LIMIT)


def _short(plain: bytes) -> Row | None:
    if len(plain) <= _SHORT:
        return Row(plain)
    return Row(compress(plain)) if len(plain) <= NEAR else None


def _long(forms: list[Any], plain: bytes, limit: float) -> Row:
    found: dict[str, int] = {}
    entries = _lift(forms, found)
    blobs: dict[str, bytes] = {}
    texts: list[Any] = list(found)
    if len(plain) > limit:
        texts = [text if len(text) < _LONG else {"blob": _add(to_bytes(text), blobs)} for text in texts]
    lifted = to_bytes(texts) + b"\n" + to_bytes(entries)
    if len(lifted) > limit:
        lifted = to_bytes({"blob": _add(lifted, blobs)})
    return Row(compress(lifted), blobs)


def _lift(form: Any, found: dict[str, int]) -> Any:
    kind = type(form)
    if kind is str:
        if form[:1] == _MARK:
            return _MARK + form
        return form if len(form) < _LIFTED else f"{_MARK}{found.setdefault(form, len(found))}"
    if kind is dict:
        return {key: _lift(value, found) for key, value in form.items()}
    if kind is list or kind is tuple:
        return [_lift(value, found) for value in form]
    return form


def _add(content: bytes, blobs: dict[str, bytes]) -> str:
    sha = hashlib.sha256(content).hexdigest()
    blobs[sha] = content
    return sha


def unpack(body: bytes, blobs: Mapping[str, bytes]) -> list[Any]:
    """The JSON forms of a row's entries.

    Args:
        body: of the row.
        blobs: hash -> compressed content, with at least those that the row uses.

    Raises:
        ValueError, LookupError, TypeError, zlib.error: it is damaged.
    """
    text, is_escaped = _unpack(body, blobs)
    form = from_bytes(text)
    if is_escaped:
        form = _unescape(form)
    if not isinstance(form, list):
        raise TypeError(f"a list of entries was expected, not {form!r:.60}")
    return form


def unpack_texts(body: bytes, blobs: Mapping[str, bytes]) -> list[bytes]:
    """The JSON texts of a row's entries; arguments and errors as for `unpack`."""
    text, is_escaped = _unpack(body, blobs)
    if not is_escaped:
        try:
            return [bytes(raw) for raw in _raw_texts(text)]
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass  # half of a surrogate pair, or damaged
    return [to_bytes(form) for form in unpack(body, blobs)]


def _unpack(body: bytes, blobs: Mapping[str, bytes]) -> tuple[bytes, bool]:
    """The JSON text of a row, and whether texts in it are escaped."""
    text = body if body[:1] == b"[" else decompress(body)
    if text[:1] == b"{":
        text = _content(text, blobs)
    texts, lifted, entries = text.partition(b"\n")
    return (_restore(texts, entries, blobs), _ESCAPED in entries) if lifted else (text, False)


def _content(reference: bytes, blobs: Mapping[str, bytes]) -> bytes:
    sha = from_bytes(reference)["blob"]
    content = zlib.decompress(blobs[sha])
    if hashlib.sha256(content).hexdigest() != sha:
        raise ValueError(f"the blob {sha} is not what was written")
    return content


def _restore(texts: bytes, entries: bytes, blobs: Mapping[str, bytes]) -> bytes:
    try:
        raw = [bytes(text) for text in _raw_texts(texts)]
    except (msgspec.DecodeError, UnicodeDecodeError):
        raw = [to_bytes(text) for text in json.loads(texts)]
    known = [_content(text, blobs) if text[:1] == b"{" else text for text in raw]
    return _REFERENCE.sub(lambda found: known[int(found[1])], entries)


def _unescape(form: Any) -> Any:
    kind = type(form)
    if kind is str:
        return form[1:] if form[:1] == _MARK else form
    if kind is dict:
        return {key: _unescape(value) for key, value in form.items()}
    if kind is list:
        return [_unescape(value) for value in form]
    return form
