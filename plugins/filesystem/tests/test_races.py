"""A thread swaps a directory for a link to outside, again and again: nothing from there is read, listed or written.

The swap is one call of the system, ``renameat2`` with ``RENAME_EXCHANGE``: at every moment there is a directory or a
link. What checks a path and then opens it leaks by that within a second: the last test shows that the attack works.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from locus.files import BackendError
from locus_plugin_filesystem import FilesystemBackend
from locus_plugin_filesystem.descriptors import _openat2

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the attack is a call of Linux")

_QUICK = os.environ.get("LOCUS_PROOFS", "quick") == "quick"

#: Seconds of each attack.
SECONDS = 1.0 if _QUICK else 30.0

#: Seconds within which the attack must have succeeded on what is not protected.
_PATIENCE = 60.0

_AT_FDCWD, _EXCHANGE = -100, 2
_SECRET = "secret of outside"


@contextmanager
def attacked(folder: Path) -> Iterator[Path]:
    """A root in which ``d`` is now a directory, now a link to outside."""
    root, outside = folder / "root", folder / "outside"
    for each in (root / "d", outside):
        each.mkdir(parents=True)
    (root / "d" / "a.txt").write_text("inside")
    (outside / "a.txt").write_text(_SECRET)
    (root / "link").symlink_to(outside)
    exchange = ctypes.CDLL(None, use_errno=True).renameat2
    one, other = os.fsencode(root / "d"), os.fsencode(root / "link")
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            assert exchange(_AT_FDCWD, one, _AT_FDCWD, other, _EXCHANGE) == 0

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield root
    finally:
        done.set()
        thread.join()


def attempts(backend: FilesystemBackend, n: int) -> list[Callable[[], object]]:
    return [
        lambda: backend.read("/d/a.txt"),
        lambda: backend.ls("/d"),
        lambda: backend.ls("/", recursive=True),
        lambda: backend.glob("**/*.txt"),
        lambda: backend.grep("."),
        lambda: backend.write(f"/d/new-{n % 10}.txt", "written"),
        lambda: backend.write(f"/d/sub-{n % 10}/new.txt", "written"),
        lambda: backend.edit("/d/a.txt", "side", "side"),
    ]


@pytest.mark.parametrize("way", ["resolved beneath", "walked"])
def test_swap_of_a_directory_for_a_link_leaks_nothing(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "walked":
        monkeypatch.setattr("locus_plugin_filesystem.descriptors.can_resolve_beneath", lambda: False)
    worked = failed = 0
    with attacked(tmp_path) as root:
        backend = FilesystemBackend(root)
        until, n = time.monotonic() + SECONDS, 0
        # Both ends of the swap are met; on a busy machine that may take longer.
        while time.monotonic() < until or not (worked and failed):
            n += 1
            for attempt in attempts(backend, n):
                try:
                    seen = attempt()
                    worked += 1
                except BackendError:
                    failed += 1
                else:
                    # A size that is that of the file outside would be a leak, too.
                    assert _SECRET not in str(seen)
                    assert f"size={len(_SECRET)}" not in str(seen)
    assert [each.name for each in (tmp_path / "outside").iterdir()] == ["a.txt"]
    assert (tmp_path / "outside" / "a.txt").read_text() == _SECRET


def leaks(folder: Path, read: Callable[[Path], str]) -> bool:
    """Whether something reads the file outside before the patience ends."""
    with attacked(folder) as root:
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            try:
                if read(root) == _SECRET:
                    return True
            except (OSError, PermissionError):
                pass
    return False


def check_then_open(root: Path) -> str:
    path = (root / "d" / "a.txt").resolve()
    if not path.is_relative_to(root):
        raise PermissionError
    return path.read_text()


def resolve_without_the_flag(root: Path) -> str:
    top = os.open(root, os.O_RDONLY)
    try:
        with os.fdopen(_openat2(top, "d/a.txt", os.O_RDONLY, 0)) as file:
            return file.read()
    finally:
        os.close(top)


@pytest.mark.parametrize("way", [check_then_open, resolve_without_the_flag])
def test_what_is_not_protected_leaks(tmp_path: Path, way: Callable[[Path], str]) -> None:
    assert leaks(tmp_path, way)
