"""`WriteRecords`: what a file was before a call of the agent changed it, as a step of the journal.

The record is durable before the file is touched, and it is not made again when the call is. So whenever the process
dies, the journal knows what the file was, and what it is if the call has changed it.
"""

from __future__ import annotations

import time
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Self

import anyio
import anyio.to_thread
from attrs import frozen

from locus.core.messages import ToolCall
from locus.files import BackendError, virtual_path
from locus.plugin import Hook, RunContext, hookimpl
from locus_plugin_filesystem import VersionedFiles, digest_of
from locus_plugin_filesystem.text import decode, encode, replace_once

__all__ = ["STEP", "WRITES", "FileRecord", "WriteRecords"]

#: The tools that change files.
WRITES: Final = ("write_file", "edit_file")
#: The name of a step with a record begins with this; the call's id follows.
STEP: Final = "deep.before/"


@frozen(kw_only=True)
class FileRecord:
    """A file before a call.

    Args:
        path: the file.
        at: when it was looked at, in nanoseconds.
        before: its content; None = it did not exist.
        after: the digest of what the call makes of it.
        is_lost: whether it was too large to keep, or could not be read.
    """

    path: str
    at: int
    before: bytes | None = None
    after: str = ""
    is_lost: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain data for the journal."""
        kept = None if self.before is None else b64encode(self.before).decode()
        return {"path": self.path, "at": self.at, "before": kept, "after": self.after, "lost": self.is_lost}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The record of plain data.

        Raises:
            ValueError, KeyError, TypeError: it is not one.
        """
        kept = data["before"]
        return cls(
            path=virtual_path(data["path"]),
            at=int(data["at"]),
            before=None if kept is None else b64decode(kept, validate=True),
            after=str(data["after"]),
            is_lost=data["lost"] is True,
        )


class WriteRecords(Hook):
    """Keeps what files were before `write_file` and `edit_file`, of the agent and of its subagents.

    Args:
        files: the folder.
    """

    #: As one, it holds in child runs as well, and without a record nothing is written.
    guard = True
    name = "deep records"

    def __init__(self, files: VersionedFiles) -> None:
        self._files = files
        #: Calls of one turn run side by side; what changes one file waits for what changed it before.
        self._locks: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)

    @hookimpl
    async def locus_wrap_tool_call(
        self, call_next: Callable[[ToolCall], Awaitable[Any]], call: ToolCall, run: RunContext
    ) -> Any:
        """Look at the file, and keep it, before the call runs."""
        if call.name not in WRITES:
            return await call_next(call)
        try:
            path = virtual_path(call.arguments.get("path", "/"))
        except BackendError:
            return await call_next(call)  # which answers with the code

        async def look() -> dict[str, Any] | None:
            return await anyio.to_thread.run_sync(self._look, path, call)

        async with self._locks[path]:
            await run.step(f"{STEP}{call.id}", look, effect="pure")
            return await call_next(call)

    def _look(self, path: str, call: ToolCall) -> dict[str, Any] | None:
        now = time.time_ns()
        try:
            before = self._files.load(path)
        except BackendError as e:
            # What cannot be read may still be written; a directory cannot.
            return None if e.code == "is_directory" else FileRecord(path=path, at=now, is_lost=True).to_json()
        try:
            if call.name == "write_file":
                after = encode(call.arguments["contents"])
            else:
                after = encode(
                    replace_once(decode(before or b""), call.arguments["old_str"], call.arguments["new_str"], path)
                )
        except (BackendError, ValueError, KeyError):
            return None  # the call changes nothing and says why
        return FileRecord(path=path, at=now, before=before, after=digest_of(after)).to_json()
