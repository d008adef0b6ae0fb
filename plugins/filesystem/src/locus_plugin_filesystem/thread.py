"""Files that follow a conversation: in memory, and in the state of the run by path.

The calls of a turn see the files as they were when it began, whatever order they take, and what they change is put into
the state with their results, in one transition. What a call changes is a function of those files and of its arguments,
so that calls which had finished before a crash are applied once more from their records. A turn changes a path once: a
second call gets an error, so the order of calls never matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from datetime import datetime
from typing import Any

from attrs import frozen

from locus.core.messages import ToolCall
from locus.core.state import AgentState, ToolExecution
from locus.files import BackendError, FileInfo, GrepMatch, virtual_path
from locus.plugin import RunContext
from locus_plugin_filesystem.calls import TurnCalls
from locus_plugin_filesystem.matching import SECONDS, is_below
from locus_plugin_filesystem.state import StateBackend, StoredFile
from locus_plugin_filesystem.text import decode, encode, replace_once

__all__ = ["KEY", "PLACE", "Place", "Quota", "ThreadFiles", "Turn", "entries_of", "files_of", "read_entries"]

#: The beginning of the keys in ``state.metadata``; the path, which begins with a slash, follows.
KEY = "files"

#: What changes a file.
_CHANGING = ("write_file", "edit_file")


@frozen
class Quota:
    """How much there may be; see `FilesystemSettings`."""

    files: int = 10_000
    bytes: int = 100_000_000

    def within(self, other: Quota) -> Quota:
        """The lesser of two."""
        return Quota(min(self.files, other.files), min(self.bytes, other.bytes))

    def share(self, base: StateBackend, planned: Mapping[str, int], parts: int) -> Quota:
        """What one of several may fill, however much the others write; no order of theirs changes it.

        Args:
            base: the files that are there.
            planned: the bytes of files that the turn itself writes, by path.
            parts: how many share what is left.
        """
        files, held = base.held
        free_files = max(0, self.files - files - len(planned)) // max(1, parts)
        free_bytes = max(0, self.bytes - held - sum(planned.values())) // max(1, parts)
        return Quota(min(self.files, files + free_files), min(self.bytes, held + free_bytes))

    def check(self, base: StateBackend, path: str, size: int, waiting: Mapping[str, int]) -> None:
        """Refuse a file that is too much.

        Args:
            base: the files that are there.
            path: the file to be written.
            size: its bytes.
            waiting: the bytes of other files that the turn writes, by path.

        Raises:
            BackendError: ``permission_denied: quota``.
        """
        files, held = base.held
        for other, waits in {**waiting, path: size}.items():
            before = base.find(other)
            files += before is None
            held += waits - (0 if before is None else len(before.data))
        if files > self.files:
            raise BackendError("permission_denied", f"quota: at most {self.files:,} files")
        if held > self.bytes:
            raise BackendError("permission_denied", f"quota: at most {self.bytes:,} bytes in all files")


def files_of(state: AgentState) -> Iterator[tuple[str, StoredFile]]:
    """The files that are in a state, by path."""
    return read_entries(state.metadata)


def read_entries(entries: Mapping[str, Any]) -> Iterator[tuple[str, StoredFile]]:
    """The files among entries of ``state.metadata``, by path."""
    for key, entry in entries.items():
        if key.startswith(f"{KEY}/"):
            at = datetime.fromisoformat(entry["modified_at"])
            yield key.removeprefix(KEY), StoredFile(entry["text"].encode(), entry["version"], at)


def entries_of(changes: Mapping[str, StoredFile]) -> dict[str, Any]:
    """Files as entries of ``state.metadata``."""
    return {
        f"{KEY}{path}": {
            "text": each.data.decode(),
            "version": each.version,
            "modified_at": each.modified_at.isoformat(),
        }
        for path, each in changes.items()
    }


class Turn:
    """The files of one turn: as they were when it began, and who may change what.

    Args:
        base: the files, which nothing changes until the turn is over.
        calls: what the model asked for, in its order.
        quota: how much there may be; no more than the share of what the run above has left, whose files the base has
            as well.
        above: the place in the turn of the run above, whose turn this one's changes belong to as well.
        parents: how many of the calls may have child runs.
    """

    def __init__(
        self,
        base: StateBackend,
        calls: Iterable[ToolCall],
        quota: Quota,
        above: Place | None = None,
        parents: int = 0,
    ) -> None:
        self.base = base
        self.quota: Quota = quota if above is None else quota.within(above.turn.child_quota)
        self._above = above
        #: Calls are meant by their names here, which differ where ids do not.
        self.calls = TurnCalls(calls)
        #: Which call changes a path: the first one that names it.
        self._owners: dict[str, str] = {}
        #: The bytes that the calls before a call write, by path.
        self._waiting: dict[str, dict[str, int]] = {}
        #: What the children of calls have changed: by the step with it, once a child is over.
        self.ended: dict[str, Mapping[str, Any]] = {}
        #: Results that are kept as files, by path.
        self.large: dict[str, str] = {}
        sizes: dict[str, int] = {}
        for name, call in self.calls:
            path = _path_of(call)
            if path is not None and not self._rival(path, name):
                self._owners[path] = name
                self._waiting[name] = dict(sizes)
                contents = call.arguments.get("contents")
                sizes[path] = len(contents.encode(errors="replace")) if isinstance(contents, str) else 0
        #: What a call's child run may fill: the calls of a turn that have children share what is left.
        self.child_quota: Quota = self.quota.share(base, sizes, parents)

    def claim(self, path: str, call: str) -> None:
        """Take a path for a call of this turn, and of the turns above.

        Raises:
            BackendError: ``conflict``: another call of the turn changes it, or makes it a directory or its directory a
                file.
        """
        rival = self._rival(path, call)
        if rival:
            raise BackendError("conflict", f"the turn already changes {rival}; change {path} in the next one")
        self._owners[path] = call
        if self._above is not None:
            self._above.turn.claim(path, self._above.call)

    def _rival(self, path: str, call: str) -> str:
        """A path of another call with which a path cannot be changed, or ``""``."""
        for other, owner in self._owners.items():
            if owner != call and (is_below(path, other) or is_below(other, path)):
                return other
        return ""

    def compose(self, call: str, path: str, contents: str) -> bytes:
        """The bytes of a file that a call writes, once all is well.

        Raises:
            BackendError: it cannot be written.
        """
        data = encode(contents)
        self.base.check_save(path)
        self.claim(path, call)
        self.quota.check(self.base, path, len(data), self._waiting.get(call, {}))
        return data

    def compose_edit(self, call: str, path: str, old: str, new: str) -> bytes:
        """The bytes of a file that a call edits; see `compose`.

        Raises:
            ValueError: the text does not occur exactly once.
        """
        text = replace_once(decode(self.base.load(path).data), old, new, path)
        return self.compose(call, path, text)

    def changes(self, done: Iterable[tuple[str, ToolExecution]], now: datetime) -> dict[str, StoredFile]:
        """What calls that have finished change.

        Args:
            done: the calls of this turn by name, with the arguments that their bodies got.
            now: the time of the change.
        """
        found: dict[str, StoredFile] = {}
        for name, each in done:
            if each.tool_name not in _CHANGING or not each.started or each.error is not None:
                continue
            given = each.arguments
            try:
                path = virtual_path(given["path"])
                if each.tool_name == "write_file":
                    data = self.compose(name, path, given["contents"])
                else:
                    data = self.compose_edit(name, path, given["old_str"], given["new_str"])
            except (BackendError, ValueError):
                continue  # what the model was told
            found[path] = StoredFile(data, self._version(path) + 1, now)
        return found

    def _version(self, path: str) -> int:
        before = self.base.find(path)
        return 0 if before is None else before.version


def _path_of(call: ToolCall) -> str | None:
    if call.name not in _CHANGING:
        return None
    try:
        return virtual_path(call.arguments.get("path", "/"))
    except BackendError:
        return None


@frozen
class Place:
    """A call in a turn.

    Args:
        turn: the turn.
        run: the run.
        call: its name in the turn, see `TurnCalls`; ``""`` where none is under way.
    """

    turn: Turn
    run: RunContext
    call: str = ""


#: The call under way; that of the run above in a child run which has no call under way yet.
PLACE: ContextVar[Place | None] = ContextVar("locus_filesystem_place", default=None)


class ThreadFiles:
    """The backend of the files that follow a conversation: each call is about the turn that it is in.

    Outside of a run it is files in memory.
    """

    in_memory = True

    def __init__(self) -> None:
        self._outside = StateBackend()

    @property
    def _files(self) -> StateBackend:
        place = PLACE.get()
        return self._outside if place is None else place.turn.base

    def write(self, path: str, contents: str) -> str:
        """See `locus.files.BackendProtocol`."""
        path, place = virtual_path(path), PLACE.get()
        if place is None:
            return self._outside.write(path, contents)
        place.turn.compose(place.call, path, contents)
        return path

    def read(self, path: str, offset: int = 0, limit: int = 100) -> str:
        """See `locus.files.BackendProtocol`."""
        return self._files.read(path, offset, limit)

    def read_start(self, path: str, size: int) -> bytes:
        """The first bytes of a file, at most ``size``."""
        return self._files.read_start(path, size)

    def edit(self, path: str, old: str, new: str) -> str:
        """See `locus.files.BackendProtocol`."""
        path, place = virtual_path(path), PLACE.get()
        if place is None:
            return self._outside.edit(path, old, new)
        place.turn.compose_edit(place.call, path, old, new)
        return path

    def ls(self, path: str = "/", *, recursive: bool = False) -> list[FileInfo]:
        """See `locus.files.BackendProtocol`."""
        return self._files.ls(path, recursive)

    def glob(self, pattern: str, *, path: str = "/", timeout_s: float = SECONDS) -> list[FileInfo]:
        """See `locus.files.BackendProtocol`."""
        return self._files.glob(pattern, path, timeout_s)

    def grep(self, pattern: str, *, path: str = "/", recursive: bool = True) -> list[GrepMatch]:
        """See `locus.files.BackendProtocol`."""
        return self._files.grep(pattern, path, recursive)
