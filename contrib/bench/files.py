"""What it costs to search, to list and to write files, by where they are.

    python contrib/bench/files.py [rounds]

For each backend, the least of the rounds, in milliseconds of CPU and, for a write, of time as well: searches in 8 MB of
text (80 files of 100 kB) that find 80 lines, nothing, one line, and more than is shown; patterns over 10,000 files in
100 directories; a write of 4 kB and of 1 MB. Beside them what the same takes without a backend: `re` over the bytes of
the files, `os.walk` with `fnmatch`, and `Path.write_bytes` without and with ``fsync``.
"""

from __future__ import annotations

import fnmatch
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from locus_plugin_filesystem import CompositeBackend, FilesystemBackend, StateBackend, StoreBackend
from locus_plugin_filesystem.descriptors import can_resolve_beneath

#: A line of text, as source code and notes have them.
LINE = "the quick brown fox jumps over the lazy dog, and {n} more of them follow it home\n"
FILES, FILE_BYTES, MANY, FOLDERS = 80, 100_000, 10_000, 100


def texts() -> dict[str, str]:
    """8 MB of text."""
    made = {}
    for n in range(FILES):
        lines = "".join(LINE.format(n=at) for at in range(FILE_BYTES // len(LINE)))
        made[f"/d{n % 8}/f{n}.txt"] = lines + f"needle number {n:03} of them\n"
    return made


def least(rounds: int, call: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """Milliseconds: the least of some rounds."""
    taken = []
    for _ in range(rounds):
        began = clock()
        call()
        taken.append(clock() - began)
    return min(taken) * 1000


def searched(backend: Any, pattern: str, found: int) -> Callable[[], None]:
    """A search, whose result is looked at."""

    def search() -> None:
        assert len(backend.grep(pattern)) == found

    return search


def listed(backend: Any, pattern: str, found: int) -> Callable[[], None]:
    """A pattern of names, whose result is looked at."""

    def look() -> None:
        assert len(backend.glob(pattern)) == found

    return look


def plain_search(folder: Path) -> None:
    """The same search without a backend: Python's `re` over each file."""
    pattern, found = re.compile(rb"needle number \d+"), 0
    for path in folder.rglob("*.txt"):
        found += len(pattern.findall(path.read_bytes()))
    assert found == FILES


def plain_listing(folder: Path) -> None:
    """The same pattern without a backend, and without sizes and times."""
    found = [name for _, _, names in os.walk(folder) for name in fnmatch.filter(names, "*.md")]
    assert len(found) == MANY // 2


def synced(path: Path, data: bytes) -> None:
    """A write that survives a power cut."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def backends(folder: Path) -> dict[str, Any]:
    """A fresh one of each kind."""
    made: dict[str, Any] = {"state": StateBackend(), "directory": FilesystemBackend(folder / "directory")}
    if can_resolve_beneath():
        walking = FilesystemBackend(folder / "walked")
        walking._root.follows_links = False  # noqa: SLF001  # what is done where there is no openat2
        made["directory, walked"] = walking
    made["one SQLite file"] = StoreBackend(folder / "files.db")
    routes = {f"/d{n}/": FilesystemBackend(folder / "composite" / str(n)) for n in range(4)}
    made["composite, 4 routes"] = CompositeBackend(FilesystemBackend(folder / "composite" / "rest"), routes)
    return made


def row(name: str, *numbers: float) -> None:
    """One row of a table."""
    print(f"| {name} | " + " | ".join(f"{each:,.1f}" if each < 100 else f"{each:,.0f}" for each in numbers) + " |")


def search_table(rounds: int, folder: Path) -> None:
    """Searches in 8 MB."""
    print("| grep in 8 MB, CPU ms | 80 lines | none | a text in one file | every line, 1,000 at most |")
    print("|---|---|---|---|---|")
    for name, backend in backends(folder).items():
        for path, text in texts().items():
            backend.write(path, text)
        patterns = ((r"needle number \d+", FILES), (r"nothing like \w+ it", 0), ("number 042 of", 1), ("o", 1000))
        row(name, *(least(rounds, searched(backend, pattern, found)) for pattern, found in patterns))
    row("`re` over each file", least(rounds, lambda: plain_search(folder / "directory")))


def listing_table(rounds: int, folder: Path) -> None:
    """A pattern over 10,000 files."""
    print("\n| glob over 10,000 files, CPU ms | `**/*.md`, 5,000 of them | `d1*/f?.txt` |")
    print("|---|---|---|")
    made = backends(folder)
    for name, backend in made.items():
        for n in range(MANY):
            path = f"d{n % FOLDERS}/f{n // FOLDERS}.{'md' if n % 2 else 'txt'}"
            if isinstance(backend, FilesystemBackend):
                (backend.root / path).parent.mkdir(exist_ok=True)
                (backend.root / path).touch()
            elif isinstance(backend, StateBackend):
                backend.write(path, "")
        if isinstance(backend, FilesystemBackend | StateBackend):
            few = len([n for n in range(0, MANY, 2) if f"{n % FOLDERS}".startswith("1") and n // FOLDERS < 10])
            patterns = (("**/*.md", MANY // 2), ("d1*/f?.txt", few))
            row(name, *(least(rounds, listed(backend, pattern, found)) for pattern, found in patterns))
    row("`os.walk` and `fnmatch`", least(rounds, lambda: plain_listing(folder / "directory")))


def write_table(rounds: int, folder: Path) -> None:
    """Writes of two sizes, each over a file that is there."""
    print("\n| a write over an old file, ms: CPU, time | 4 kB | | 1 MB | |")
    print("|---|---|---|---|---|")
    small, large = "x" * 99 + "\n", "y" * 99 + "\n"
    contents = (small * 40, large * 10_000)
    plain = folder / "plain"
    plain.mkdir()
    calls: dict[str, Callable[[str], object]] = {
        "`write_bytes`": lambda text: (plain / "a").write_bytes(text.encode()),
        "`write_bytes` and `fsync`": lambda text: synced(plain / "a", text.encode()),
    }
    for name, backend in backends(folder).items():
        calls[name] = lambda text, backend=backend: backend.write("/d0/a.txt", text)
    for name, call in calls.items():
        numbers = []
        for text in contents:
            call(text)
            for clock in (time.process_time, time.perf_counter):
                numbers.append(least(rounds * 5, lambda call=call, text=text: call(text), clock))
        print(f"| {name} | " + " | ".join(f"{each:.2f}" for each in numbers) + " |")


def main() -> None:
    """Print the tables."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    for table in (search_table, listing_table, write_table):
        with tempfile.TemporaryDirectory() as folder:
            table(rounds, Path(folder))


if __name__ == "__main__":
    main()
