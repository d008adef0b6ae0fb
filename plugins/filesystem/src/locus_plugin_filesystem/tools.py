"""`make_filesystem_tools`: the six tools by which a model works with files."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import asdict
from typing import Any, TypeVar

from attrs import evolve

from locus.core.errors import ConfigError
from locus.files import MAX_MATCHES, MAX_PAGE_CHARS, BackendError, BackendProtocol, FileStore, virtual_path
from locus.plugin import Lazy
from locus.tools import Tool, ToolOptions, call_in_thread, tool
from locus_kit.pdf import is_pdf
from locus_plugin_filesystem.images import MAX_IMAGE_BYTES, show_image
from locus_plugin_filesystem.operations import AsyncStoreFiles, StoreFiles
from locus_plugin_filesystem.pages import as_json, count_bytes, cut_page, show_listing
from locus_plugin_filesystem.pdfs import MAX_PDF_BYTES, show_pdf
from locus_plugin_filesystem.permissions import Rules
from locus_plugin_filesystem.text import MAX_FILE_BYTES, encode

__all__ = ["as_backend", "call_backend", "make_filesystem_tools", "make_tools"]

#: Imported with the first file that is written or read.
signals: Any = Lazy("locus.observability.emit")

T = TypeVar("T")

_CALLS = ("write", "read", "edit", "ls", "glob", "grep")

#: Codes that are the whole answer: the path is what the model gave.
_PLAIN = frozenset({"file_not_found", "is_directory", "permission_denied", "invalid_path"})

_GLOB_SECONDS = 20.0

#: The tools by what they are made of, without a body: that would keep its backend.
_DESCRIBED: dict[object, Tool[..., Any]] = {}


def as_backend(place: object) -> BackendProtocol:
    """A backend of whatever keeps files: a backend as it is, a `locus.files.FileStore` with what it lacks.

    Raises:
        ConfigError: it is neither.
    """
    if isinstance(place, BackendProtocol):
        return place
    if isinstance(place, FileStore):
        return AsyncStoreFiles(place) if inspect.iscoroutinefunction(place.load) else StoreFiles(place)
    raise ConfigError(f"expected a backend for files, see locus.files.BackendProtocol, got {place!r:.80}")


async def call_backend(backend: BackendProtocol, name: str, *args: Any) -> Any:
    """Call a backend from the event loop: a sync method in a worker thread."""
    method = getattr(backend, name)
    if inspect.iscoroutinefunction(method):
        return await method(*args)
    return await call_in_thread(functools.partial(method, *args))


def make_filesystem_tools(backend: BackendProtocol) -> list[Any]:
    """The six tools over a backend: write_file, read_file, ls, edit_file, glob, grep.

    What fails with a `BackendError` is answered with its code, which the model reads as the tool's result.

    Args:
        backend: see `locus.files`; of a sync one the tools are sync as well, and can be called as functions.

    Raises:
        ConfigError: it is not a backend.
    """
    return make_tools(backend, Rules())


def make_tools(backend: object, rules: Rules, max_depth: int = 64, *, images: bool = False) -> list[Any]:
    """The six tools, as settings have them.

    Args:
        backend: see `make_filesystem_tools`.
        rules: what listings and searches may not show.
        max_depth: how many parts a path may have.
        images: whether the model is shown images.
    """
    backend = as_backend(backend)
    is_async = any(inspect.iscoroutinefunction(getattr(backend, name)) for name in _CALLS)
    # A write that a crash interrupted is made again: the file is then what it was to be. An edit is not found again
    # where it was made, unless the files in memory have gone with the process.
    is_kept = not getattr(backend, "in_memory", False)
    # A write to files in memory changes the run alone, and what is read from them is untrusted.
    changing: ToolOptions = {"reads": "user", "targets": ("path",) if is_kept else (), "egress": False}
    writing: ToolOptions = {**changing, "effect": "keyed"}
    editing: ToolOptions = {**changing, "effect": "once", "ask_on_unknown": True} if is_kept else writing
    # What they return is bounded by them, so nothing is cut from its middle.
    looking: ToolOptions = {"effect": "pure", "egress": False, "max_result_chars": 2 * MAX_PAGE_CHARS}
    tools = _Tools(backend, rules, max_depth, images=images, is_async=is_async)
    every: tuple[tuple[Callable[..., Any], ToolOptions], ...] = (
        (tools.write_file, writing),
        (tools.read_file, looking),
        (tools.ls, looking),
        (tools.edit_file, editing),
        (tools.glob, looking),
        (tools.grep, looking),
    )
    return [_tool(fn, options, is_async=is_async) for fn, options in every]


def _tool(fn: Callable[..., Coroutine[Any, Any, Any]], options: ToolOptions, *, is_async: bool) -> Tool[..., Any]:
    """A tool whose failures of the backend are texts; in a sync one nothing is ever waited for."""

    @functools.wraps(fn)
    async def answering(*args: Any, **kwargs: Any) -> Any:
        try:
            return await fn(*args, **kwargs)
        except BackendError as e:
            return e.code if e.code in _PLAIN and not e.detail.startswith("quota") else str(e)

    @functools.wraps(fn)
    def at_once(*args: Any, **kwargs: Any) -> Any:
        running = answering(*args, **kwargs)
        try:
            running.send(None)
        except StopIteration as e:
            return e.value
        finally:
            running.close()
        raise RuntimeError("a backend whose methods are sync returned something to wait for")

    body: Callable[..., Any] = answering if is_async else at_once
    # What a tool says of itself is read once: most of what an agent with files takes to build.
    key = (fn.__name__, is_async, *sorted(options.items()))
    if key not in _DESCRIBED:
        named: ToolOptions = {**options, "name": fn.__name__}
        _DESCRIBED[key] = evolve(tool(body, **named), fn=str)
    return evolve(_DESCRIBED[key], fn=body)


class _Tools:
    """The bodies. Each of them sees paths as `virtual_path` gives them."""

    def __init__(self, backend: BackendProtocol, rules: Rules, max_depth: int, *, images: bool, is_async: bool) -> None:
        self._backend, self._rules, self._max_depth = backend, rules, max_depth
        self._images, self._is_async = images, is_async

    def _path(self, path: str) -> str:
        path = virtual_path(path)
        if path.count("/") > self._max_depth:
            raise BackendError("invalid_path")
        return path

    async def _emit(self, signal: str, path: str, size: int) -> None:
        if self._is_async:
            await signals.emit(signal, path=path, byte_count=size)
        else:
            signals.emit_sync(signal, path=path, byte_count=size)

    async def write_file(self, path: str, contents: str) -> str:
        """Create a file, or overwrite it. Directories above it are created.

        Returns the path, or what went wrong: is_directory, permission_denied, invalid_path.

        Args:
            path: where, from the root: /notes/draft.md
            contents: the whole text of the file.
        """
        path = self._path(path)
        data = encode(contents, MAX_FILE_BYTES)
        await _value(self._backend.write(path, contents))
        await self._emit(signals.EV_DEEPAGENT_FS_WRITE, path, len(data))
        return path

    async def read_file(self, path: str, offset: int = 0, limit: int = 100) -> Any:
        """Read lines of a text file; each comes with its number, counted from 1.

        Returns the lines, or what went wrong: file_not_found, is_directory, permission_denied, invalid_path.

        Args:
            path: the file.
            offset: how many lines to leave out.
            limit: how many lines to read at most; 0 for all.
        """
        more = limit + 1 if limit > 0 else 0
        path = self._path(path)
        try:
            page = await _value(self._backend.read(path, offset=offset, limit=more))
        except BackendError as e:
            start = await self._read_start(path, MAX_IMAGE_BYTES + 1) if e.code == "not_text" else b""
            if is_pdf(start):
                return await self._read_pdf(path, start, max(offset, 0), limit)
            image = show_image(path, start, is_wanted=self._images)
            if image is None:
                raise
            await self._emit(signals.EV_DEEPAGENT_FS_READ, path, len(start))
            return image
        shown = cut_page(page, max(offset, 0), limit)
        await self._emit(signals.EV_DEEPAGENT_FS_READ, path, count_bytes(shown))
        return shown

    async def _read_pdf(self, path: str, data: bytes, offset: int, limit: int) -> str:
        if len(data) > MAX_IMAGE_BYTES:
            data = await self._read_start(path, MAX_PDF_BYTES + 1)
        page = await show_pdf(path, data, offset, limit, is_async=self._is_async)
        await self._emit(signals.EV_DEEPAGENT_FS_READ, path, count_bytes(page))
        return page

    async def _read_start(self, path: str, size: int) -> bytes:
        """The first bytes of a file; none where the backend gives lines alone."""
        read = getattr(self._backend, "read_start", None)
        return b"" if read is None else await _value(read(path, size))

    async def ls(self, path: str = "/", recursive: bool = False) -> str:  # noqa: FBT001, FBT002
        """List a directory, as JSON: path, is_dir, size and modified_at of each entry.

        Args:
            path: the directory.
            recursive: everything below it, too.
        """
        path = self._path(path)
        return show_listing(self._rules.show(await _value(self._backend.ls(path, recursive=recursive)), path))

    async def edit_file(self, path: str, old_str: str, new_str: str) -> str:
        """Replace a text in a file. It must occur there exactly once: give enough of what is around it.

        Returns the path, or what went wrong.

        Args:
            path: the file.
            old_str: the text as it is in the file, without line numbers.
            new_str: what to put in its place.
        """
        path = self._path(path)
        try:
            await _value(self._backend.edit(path, old_str, new_str))
        except ValueError as e:
            return str(e)
        return path

    async def glob(self, pattern: str, path: str = "/") -> str:
        """Find files by a pattern, as JSON: path, is_dir, size and modified_at of each.

        Args:
            pattern: such as notes-*.txt, **/*.md or {src,tests}/**/*.py; * stays within a directory, ** does not.
            path: the directory to look in.
        """
        path = self._path(path)
        found = await _value(self._backend.glob(pattern, path=path, timeout_s=_GLOB_SECONDS))
        return show_listing(self._rules.show(found, path))

    async def grep(self, pattern: str, path: str = "/", recursive: bool = True) -> str:  # noqa: FBT001, FBT002
        """Search the text of files, as JSON: path, line (counted from 1) and text of each line that matches.

        Args:
            pattern: a regular expression, RE2 syntax; (?i) at its beginning ignores case.
            path: a directory, or a file.
            recursive: whether to look in subdirectories.
        """
        path = self._path(path)
        found = await _value(self._backend.grep(pattern, path=path, recursive=recursive))
        matches = self._rules.show(found, path)[:MAX_MATCHES]
        shown, count = as_json([asdict(each) for each in matches])
        if len(found) < MAX_MATCHES and count == len(matches):
            return shown
        return f"{shown}\n[the first {count:,} matches; narrow the pattern or the path]"


async def _value(given: T | Awaitable[T]) -> T:
    return await given if inspect.isawaitable(given) else given
