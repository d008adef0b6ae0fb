"""The dedup key of a call: a hash of the canonical bytes of its name and arguments.

Two calls that mean the same have the same key, whatever the order of their arguments; two that differ never do.
It is computed for every call, so the common case is one pass of msgspec, and it cannot fail. The bytes are MessagePack
and not JSON because JSON has no NaN and no infinity: there they would need a second look at every float.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import lru_cache
from hashlib import blake2b
from operator import itemgetter
from typing import Any

import msgspec

__all__ = ["call_key", "canonical"]


def call_key(name: str, arguments: Any) -> str:
    """The key of a call: 32 hex digits.

    Args:
        name: of the tool.
        arguments: plain data, or a msgspec Struct of it.
    """
    tool = name.encode("utf-8", "surrogatepass")
    return _hash(b"%d:%s" % (len(tool), tool) + canonical(arguments))


@lru_cache(maxsize=2)  # of a call as the model made it, and with the defaults filled in: mostly the same
def _hash(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _by_type(value: Any) -> str:
    # Only a parameter's default can be an object without a JSON form; no argument of a model equals it.
    return f"<{type(value).__module__}.{type(value).__qualname__}>"


_encode = msgspec.msgpack.Encoder(order="sorted", enc_hook=_by_type).encode


def canonical(value: Any) -> bytes:
    """Bytes that are equal exactly when the values are.

    Args:
        value: plain data, or a msgspec Struct of it.
    """
    try:
        return _encode(value)
    except Exception:  # noqa: BLE001  lone surrogates, huge integers, keys that are not strings, great depth
        return _tokens(value)


def _tokens(value: Any) -> bytes:
    """The same for what msgspec cannot write: type, length and content of each value, without recursion."""
    digest, todo = blake2b(digest_size=32), [value]
    while todo:
        it = todo.pop()
        if isinstance(it, msgspec.Struct):
            it = msgspec.structs.asdict(it)
        if isinstance(it, Mapping):
            items = sorted(((_atom(k), v) for k, v in it.items()), key=itemgetter(0))
            text = b"{%d" % len(items) + b"".join(k for k, _ in items)
            todo += [v for _, v in items]
        elif isinstance(it, list | tuple):
            text = b"[%d" % len(it)
            todo += it
        elif isinstance(it, Set):
            members = sorted(map(_tokens, it))
            text = b"(%d" % len(members) + b"".join(members)
        else:
            text = _atom(it)
        digest.update(text)
    return digest.digest()


def _atom(value: Any) -> bytes:
    if isinstance(value, str):
        text = value.encode("utf-8", "surrogatepass")
    elif value is None or isinstance(value, int | float):
        text = hex(value).encode() if type(value) is int else repr(value).encode()
    else:
        try:
            text = _encode(value)
        except Exception:  # noqa: BLE001  as in `canonical`
            text = _by_type(value).encode()
    return b"%s:%d:%s" % (type(value).__name__.encode(), len(text), text)
