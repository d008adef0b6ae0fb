"""What is below a directory, by path, from descriptors alone: see `locus_plugin_filesystem.descriptors`."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from locus.files import BackendError, FileInfo, virtual_path
from locus_plugin_filesystem.descriptors import Root, find_form, is_temporary, reading
from locus_plugin_filesystem.matching import Deadline

__all__ = ["Entry", "entries_below"]


class Entry(NamedTuple):
    """Something in a directory.

    Args:
        path: as it is on the disk, from the root.
        shown: as `locus.files.virtual_path` has it.
        found: what it is, behind a link what that leads to.
        is_link: whether it is a link, which is not gone down.
    """

    path: str
    shown: str
    found: os.stat_result
    is_link: bool

    @property
    def is_dir(self) -> bool:
        """Whether it can be gone down, or a link leads to something that can."""
        return stat.S_ISDIR(self.found.st_mode)

    def info(self) -> FileInfo:
        """What listings say of it."""
        try:
            modified = datetime.fromtimestamp(self.found.st_mtime, UTC)
        except (OverflowError, ValueError, OSError):
            modified = None
        return FileInfo(self.shown, self.is_dir, 0 if self.is_dir else self.found.st_size, modified)


def entries_below(root: Root, path: str, deadline: Deadline, *, recursive: bool) -> Iterator[Entry]:
    """What is in a directory, or everywhere below it, by path. At one time one directory is open."""
    found = root.exists(path)
    if found is not None and stat.S_ISREG(found.st_mode):
        yield Entry(path, path, found, is_link=False)
        return
    if found is not None and not stat.S_ISDIR(found.st_mode):
        raise BackendError("permission_denied", f"{path}: it is neither a file nor a directory")
    todo = _list(root, path, path, deadline, links=True)
    while todo:
        entry = todo.pop()
        deadline.check()
        yield entry
        if recursive and entry.is_dir and not entry.is_link:
            with contextlib.suppress(BackendError):  # it vanished, was swapped, or may not be read
                todo += _list(root, entry.path, entry.shown, deadline, links=False)


def _list(root: Root, path: str, shown: str, deadline: Deadline, *, links: bool) -> list[Entry]:
    """One directory, backwards by path: the last one is the first to be shown."""
    entries: list[Entry] = []
    with root.directory(path, links=links) as directory, reading(shown), os.scandir(directory) as scanned:
        for each in scanned:
            deadline.check()
            made = _look(root, each, path.rstrip("/"), shown.rstrip("/"))
            if made is not None:
                entries.append(made)
    entries = _leave_out_hidden(entries)
    # By their whole paths: what is in the directory `a` comes behind the file `a.txt`.
    entries.sort(key=lambda entry: f"{entry.shown}/" if entry.is_dir else entry.shown, reverse=True)
    return entries


def _leave_out_hidden(entries: list[Entry]) -> list[Entry]:
    """The entries that their paths lead to: of two forms of one name, that is the one which `find_form` gives."""
    reached: dict[str, Entry] = {}
    for entry in entries:
        other = reached.setdefault(entry.shown, entry)
        if other is not entry:
            names = {each.path.rpartition("/")[2]: each for each in (other, entry)}
            reached[entry.shown] = names.get(find_form(entry.shown.rpartition("/")[2], names.__contains__), other)
    return [*reached.values()]


def _look(root: Root, each: os.DirEntry[str], path: str, shown: str) -> Entry | None:
    name = each.name
    if is_temporary(name):
        return None
    place, as_shown = f"{path}/{name}", f"{shown}/{name}"
    if not (as_shown.isascii() and as_shown.isprintable()) or len(as_shown) > 4096:
        try:
            as_shown = virtual_path(as_shown)
        except BackendError:
            return None
    try:
        found: os.stat_result | None = each.stat(follow_symlinks=False)
    except OSError:  # it vanished
        return None
    is_link = found is not None and stat.S_ISLNK(found.st_mode)
    if is_link:
        found = root.exists(place) if root.follows_links else None
    if found is None or not (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)):
        return None
    return Entry(place, as_shown, found, is_link)
