"""`ConfigFile`: where a configuration is looked for, and what is read there, once.

A search stops at the root of the repository, at the user's home folder or at a file system boundary, and skips
folders that others can write to.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field

from locus.core.errors import ConfigError
from locus.core.frozen import frozen
from locus.core.lazy import Lazy

if TYPE_CHECKING:
    import tomllib
else:
    tomllib = Lazy("tomllib")

_OWN, _SHARED = "locus.toml", "pyproject.toml"
_TOOL = "tool.locus"

#: What the root of a repository has.
_ROOTS = (".git", ".hg", ".jj")

#: Bytes of the largest file that is read.
_MOST_BYTES = 4_000_000


@frozen
class ConfigFile:
    """A file of configuration as it was read, so that later changes of the file cannot matter after it was checked.

    Args:
        source: its path.
        prefix: the table with the configuration: ``""`` for the whole file, or ``"tool.locus"``.
        data: the entries.
        content: the bytes that the entries come from: the file's, or those of the table.
    """

    source: str
    prefix: str
    data: Mapping[str, Any] = field(repr=False)
    content: bytes = field(repr=False)


def find_config(start: str | Path | None = None) -> ConfigFile | None:
    """The nearest configuration from a folder upwards, or None; see `search_folders`.

    Args:
        start: where to look from; the working directory when None.

    Raises:
        ConfigError: the file cannot be read, is not TOML, or a folder has both kinds of file.
    """
    for folder, is_safe in search_folders(start):
        if not is_safe:
            continue
        own, shared = folder / _OWN, folder / _SHARED
        table = _shared_table(shared) if shared.is_file() else None
        if own.is_file():
            if table is not None:
                raise ConfigError(f"{own} and [{_TOOL}] in {shared} both configure Locus; keep one of them")
            return read_file(own)
        if table is not None:
            return table
    return None


def read_file(path: Path) -> ConfigFile:
    """A file that was named.

    Raises:
        ConfigError: it cannot be read, is not TOML, or is a ``pyproject.toml`` without the table.
    """
    if path.name != _SHARED:
        content = _read(path)
        return ConfigFile(str(path), "", _parse(path, content), content)
    table = _shared_table(path)
    if table is None:
        raise ConfigError(f"{path} has no [{_TOOL}] table")
    return table


def search_folders(start: str | Path | None = None) -> Iterator[tuple[Path, bool]]:
    """The folders in which a configuration is searched for, each with whether a file in it counts.

    It does not if users other than this one and root can write there, because any of them may have written it.

    Args:
        start: the first; the working directory when None.
    """
    folder = (Path.cwd() if start is None else Path(start)).absolute()
    try:
        home: Path | None = Path.home().resolve()
    except RuntimeError:  # no home is known
        home = None
    while True:
        yield folder, not _is_open_to_others(folder)
        above = folder.parent
        if above == folder or folder.resolve() == home or any((folder / name).exists() for name in _ROOTS):
            return
        try:
            if folder.stat().st_dev != above.stat().st_dev:
                return
        except OSError:  # a folder that was deleted; those above may be there
            pass
        folder = above


def _is_open_to_others(folder: Path) -> bool:
    """Whether users other than this one and root can put a file into the folder."""
    if os.name != "posix":
        return False  # permissions are lists there, and a home folder is its user's alone
    try:
        found = folder.stat()
    except OSError:
        return False
    # A group that may write is everybody in it, unless it is the one that systems make for each user.
    grouped = found.st_mode & 0o020 and not (found.st_gid == os.getegid() == os.geteuid())
    return found.st_uid not in (0, os.geteuid()) or bool(found.st_mode & 0o002 or grouped)


def _shared_table(path: Path) -> ConfigFile | None:
    data = _parse(path, _read(path))
    tool = data.get("tool")
    table = tool.get("locus") if isinstance(tool, Mapping) else None
    # The rest of the file belongs to other tools: it may change without any effect here.
    return ConfigFile(str(path), _TOOL, table, repr(table).encode()) if isinstance(table, Mapping) else None


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as e:
        raise ConfigError(f"{path} cannot be read: {e.strerror or e}") from e
    if len(content) > _MOST_BYTES:
        raise ConfigError(f"{path} has more than {_MOST_BYTES:,} bytes, and is not read as a configuration")
    return content


def _parse(path: Path, content: bytes) -> Mapping[str, Any]:
    try:
        data: Mapping[str, Any] = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as e:  # not UTF-8, not TOML, or nested without end
        raise ConfigError(f"{path} is not valid TOML: {e}") from e
    return data
