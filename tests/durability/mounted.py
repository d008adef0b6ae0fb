"""File systems of a test's own. Mounting is root's; where it is refused, the test fails and says so."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["copied", "formatted", "image", "memory", "resized"]


def _do(*command: str | Path) -> None:
    try:
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
        said = done.stderr.strip() if done.returncode else ""
    except OSError as e:
        said = str(e)
    if said:
        raise RuntimeError(
            f"{' '.join(map(str, command))}: {said}\n"
            "This test mounts file systems: run `tox -e privileged` as root, on Linux with loop devices and mkfs.ext4"
        )


@contextmanager
def memory(folder: Path, size: int) -> Iterator[None]:
    """A file system in memory, of so many bytes."""
    folder.mkdir()
    _do("mount", "-t", "tmpfs", "-o", f"size={size}", "locus", folder)
    try:
        yield
    finally:
        _do("umount", "--lazy", folder)  # a test that failed may have left files open


def resized(folder: Path, size: int) -> None:
    """Give it more room."""
    _do("mount", "-o", f"remount,size={size}", folder)


def formatted(path: Path, size: int) -> None:
    """Make the image of a disk with an empty file system."""
    with path.open("wb") as file:
        file.truncate(size)
    _do("mkfs.ext4", "-q", "-F", path)


@contextmanager
def image(path: Path, folder: Path) -> Iterator[None]:
    """The file system in an image, which writes as a disk does: what is synced, and the rest when it likes."""
    folder.mkdir()
    _do("mount", "-o", "loop", path, folder)
    try:
        yield
    finally:
        _do("umount", "--lazy", folder)  # a test that failed may have left files open


def copied(path: Path, into: Path) -> None:
    """Copy an image as it was at one moment: the system may write to it meanwhile, then it is copied again."""
    content, again = b"", path.read_bytes()
    while content != again:
        content, again = again, path.read_bytes()
    into.write_bytes(content)
