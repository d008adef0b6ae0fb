"""The configuration files that the user trusts to start programs, load code, and name addresses and secrets.

Trust covers one path with one content. An untrusted file may only set harmless entries, which is a short list: a
few limits of the agent, and the settings that a plugin's manifest declares ``harmless``.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from locus.config import ConfigFile
from locus.core.errors import ConfigError, LocusError
from locus.plugin import Plugin
from locus.plugins import Catalogue

__all__ = ["Screened", "TrustStore", "Trusted", "includes_of", "screen"]

#: What an untrusted ``[agent]`` may set: limits, all of them numbers.
_LIMITS = frozenset(
    {"max_iterations", "max_tool_calls_per_turn", "max_concurrent_tools", "model_timeout", "tool_timeout"}
)

_FOLDER = "trusted"


@frozen
class Screened:
    """The harmless part of a configuration that is not trusted.

    Args:
        file: the file with its harmless entries.
        held: the dotted names of the other entries, in the order of the file.
    """

    file: ConfigFile
    held: tuple[str, ...] = ()


@frozen
class Trusted:
    """The record of a trusted file.

    Args:
        path: where it was.
        digest: SHA-256 of what it contained, in hexadecimal digits.
    """

    path: str
    digest: str


def screen(file: ConfigFile, installed: Catalogue) -> Screened:
    """Remove the entries of a configuration that could do harm.

    Args:
        file: as it was read.
        installed: the plugins, whose manifests say which of their settings are harmless.
    """
    held: list[str] = []
    kept: dict[str, Any] = {}
    for key, value in file.data.items():
        if key == "agent" and isinstance(value, Mapping):
            kept[key] = {k: v for k, v in value.items() if k in _LIMITS and isinstance(v, int | float)}
            held += [f"agent.{k}" for k in value if k not in kept[key]]
        elif key == "plugins" and isinstance(value, Mapping):
            kept[key] = {}
            for name, table in value.items():
                harmless = _harmless(str(name), installed)
                if not isinstance(table, Mapping):
                    held.append(f"plugins.{name}")
                    continue
                kept[key][name] = {k: v for k, v in table.items() if k in harmless and not isinstance(v, Mapping)}
                held += [f"plugins.{name}.{k}" for k in table if k not in kept[key][name]]
        else:
            held.append(str(key))
    return Screened(evolve(file, data=kept), tuple(held))


def _manifest(name: str, installed: Catalogue) -> Plugin | None:
    try:
        return installed.manifest(name)
    except LocusError:
        return None


def _harmless(name: str, installed: Catalogue) -> tuple[str, ...]:
    manifest = _manifest(name, installed)
    return () if manifest is None else manifest.harmless


def includes_of(file: ConfigFile, installed: Catalogue) -> tuple[Path, ...]:
    """The further configuration files that a file names; trusting it covers them as they are."""
    tables = file.data.get("plugins")
    found: list[Path] = []
    for name, table in tables.items() if isinstance(tables, Mapping) else ():
        manifest = _manifest(str(name), installed) if isinstance(table, Mapping) else None
        for key in () if manifest is None else manifest.includes:
            if isinstance(table.get(key), str):
                # From the working directory, as the plugin will read it.
                found.append(Path(table[key]).expanduser().absolute())
    return tuple(found)


def _digest(file: ConfigFile, installed: Catalogue) -> str:
    found = hashlib.sha256(file.content)
    for path in includes_of(file, installed):
        content = path.read_bytes() if path.is_file() else b""
        found.update(f"\0{path}\0".encode() + hashlib.sha256(content).digest())
    return found.hexdigest()


class TrustStore:
    """The files that are trusted: one small file each, which its owner alone can read and write.

    Args:
        folder: where the user's data is; the place for these is made in it when there is something to keep.
        installed: the plugins, whose manifests say which settings name further files.
    """

    def __init__(self, folder: Path, installed: Catalogue) -> None:
        self._folder = folder / _FOLDER
        self._installed = installed

    def trusts(self, file: ConfigFile) -> bool:
        """Whether the file was trusted with this content."""
        known = self._read(self._entry(_place(file.source)))
        return known is not None and known == Trusted(_place(file.source), _digest(file, self._installed))

    def add(self, file: ConfigFile) -> None:
        """Trust the file with this content, in place of another one that it had.

        Raises:
            ConfigError: that cannot be written down.
        """
        place = _place(file.source)
        entry = self._entry(place)
        fresh = entry.with_name(f".{entry.name}.{secrets.token_hex(8)}")
        text = json.dumps({"path": place, "sha256": _digest(file, self._installed)})
        try:
            self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder.mkdir(mode=0o700, exist_ok=True)
            number = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(number, "w", encoding="utf-8") as opened:
                opened.write(text)
                opened.flush()
                os.fsync(opened.fileno())
            fresh.replace(entry)
        except OSError as e:
            with suppress(OSError):
                fresh.unlink()
            raise ConfigError(f"{entry} cannot be written: {e.strerror or e}") from e

    def revoke(self, path: str | Path) -> bool:
        """Stop trusting the file, which need not exist; returns whether any content of it was trusted.

        Raises:
            ConfigError: that cannot be written down.
        """
        entry = self._entry(_place(path))
        try:
            entry.unlink()
        except FileNotFoundError:
            return False
        except OSError as e:
            raise ConfigError(f"{entry} cannot be deleted: {e.strerror or e}") from e
        return True

    def every(self) -> Iterator[Trusted]:
        """What is trusted, by path."""
        known = (self._read(entry) for entry in self._folder.glob("*.json"))
        yield from sorted((each for each in known if each is not None), key=lambda each: each.path)

    def _entry(self, place: str) -> Path:
        return self._folder / f"{hashlib.sha256(place.encode(errors='surrogateescape')).hexdigest()}.json"

    def _read(self, entry: Path) -> Trusted | None:
        """The record in a file; None if somebody else could have written it."""
        try:
            number = os.open(entry, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        except OSError:
            return None
        with os.fdopen(number, encoding="utf-8") as opened:
            found = os.fstat(opened.fileno())
            if not stat.S_ISREG(found.st_mode):
                return None
            if os.name == "posix" and (found.st_uid != os.geteuid() or found.st_mode & 0o022):
                return None
            try:
                data = json.loads(opened.read())
                return Trusted(str(data["path"]), str(data["sha256"]))
            except (ValueError, KeyError, TypeError):
                return None


def _place(path: str | Path) -> str:
    """The canonical path of a file: its folder is resolved, its name is not, because that may be a link to anything."""
    given = Path(path).expanduser().absolute()
    return str(given.parent.resolve() / given.name)
