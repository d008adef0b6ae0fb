"""Fingerprints: a few letters for the parts that every request of a run repeats.

They follow the digest of a model step, ``scripted:model:3#p1f0c22a9t77d0e1b2``, one part for the system prompt
(p), the tools (t), the settings (s) and the output schema (o). A replay reads them to say what was changed; a resume
ignores them, because a recorded answer is kept, whatever the next request will look like.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b

__all__ = ["PARTS", "bare", "fingerprint", "parts_of", "short_hash"]

#: What the parts are called, by their letter.
PARTS = {"p": "the system prompt", "t": "the tools", "s": "the model settings", "o": "the output schema"}

_MARK = r"#((?:[ptso][0-9a-f]{8})*)\Z"


def short_hash(text: str) -> str:
    """Eight hex digits of a text, the same in every process."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def fingerprint(parts: Mapping[str, str]) -> str:
    """The parts by letter, in the form that follows a digest."""
    return "#" + "".join(f"{letter}{value}" for letter, value in parts.items())


def bare(digest: str) -> str:
    """A digest without its fingerprint."""
    return re.sub(_MARK, "", digest)


def parts_of(digest: str) -> dict[str, str] | None:
    """The parts of a digest's fingerprint by letter, or None when it has none."""
    found = re.search(_MARK, digest)
    if found is None:
        return None
    text = found.group(1)
    return {text[i]: text[i + 1 : i + 9] for i in range(0, len(text), 9)}
