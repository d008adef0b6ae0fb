"""``server__tool``: the names under which models know the tools of servers.

A name is made of letters that every provider takes, is never longer than 64 of them, and is unique. What had to
be changed for that and is not alone with the result ends with a short hash of what it was, so that the names do not
depend on the order in which a server lists its tools.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from hashlib import blake2b

__all__ = ["IDEMPOTENCY_KEY", "Key", "names"]

#: Where, in the `_meta` of a call, a server that knows it finds what is the same on every attempt at the call.
IDEMPOTENCY_KEY = "locus/idempotency-key"

#: A server and one of its tools.
Key = tuple[str, str]

LONGEST = 64
_HASH = 6


def names(keys: Iterable[Key], taken: Collection[str] = ()) -> dict[Key, str]:
    """A name for each tool.

    Args:
        keys: servers and their tools, each once.
        taken: names that others have.
    """
    wanted = {key: _clean(key) for key in keys}
    count = Counter(wanted.values())
    made: dict[Key, str] = {}
    used = set(taken)
    # Names that are kept unchanged come first, then the others in a fixed order.
    for key in sorted(wanted, key=lambda k: (f"{k[0]}__{k[1]}" != wanted[k], k)):
        name = wanted[key]
        exact = name == f"{key[0]}__{key[1]}"
        attempt = 0
        if (count[name] > 1 and not exact) or name in used or len(name) > LONGEST:
            name = _with_hash(wanted[key], key, attempt)
        while name in used:
            attempt += 1
            name = _with_hash(wanted[key], key, attempt)
        used.add(name)
        made[key] = name
    return {key: made[key] for key in wanted}


def _clean(key: Key) -> str:
    server, tool = (re.sub(r"[^A-Za-z0-9_-]", "_", part) or "_" for part in key)
    return f"{server}__{tool}"


def _with_hash(name: str, key: Key, attempt: int) -> str:
    digest = blake2b("\0".join((*key, str(attempt))).encode("utf-8", "replace"), digest_size=_HASH // 2).hexdigest()
    return f"{name[: LONGEST - _HASH - 1]}_{digest}"
