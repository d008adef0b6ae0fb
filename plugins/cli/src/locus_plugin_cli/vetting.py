"""Decides how much of a configuration counts that was found rather than named: anybody may have written it.

A trusted file counts in full, and of any other file only harmless entries count. If it has more than those, the user is
asked on a terminal; elsewhere it is an error, because running without the configuration would be a different program.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from locus.config import ConfigFile, find_config, read_file, search_folders
from locus.core.errors import ConfigError
from locus.plugins import Catalogue
from locus_kit.state import state_folder
from locus_plugin_cli.common_options import CommonOptions
from locus_plugin_cli.hiding import hide
from locus_plugin_cli.output import say
from locus_plugin_cli.streams import confirm, standard
from locus_plugin_cli.text import one_line
from locus_plugin_cli.trust import Screened, TrustStore, screen

__all__ = [
    "describe_held",
    "find_passed_over",
    "find_vetted",
    "installed_for",
    "open_trust",
    "trust_command",
    "trusted_or_screened",
    "vet_found",
]


def open_trust(file: ConfigFile | None = None) -> TrustStore:
    """The files that the user trusts.

    Args:
        file: the one that will be looked up.

    Raises:
        ConfigError: the user has no folder for it.
    """
    try:
        return TrustStore(state_folder(), installed_for(file))
    except RuntimeError as e:
        raise ConfigError(f"no folder for the list of trusted files: {e}; set LOCUS_STATE") from e


def trusted_or_screened(file: ConfigFile) -> Screened:
    """The whole file if it is trusted, else its harmless part and the names of the other entries."""
    try:
        if open_trust(file).trusts(file):
            return Screened(file)
    except (ConfigError, OSError):  # a file that cannot be looked up is not trusted
        pass
    return screen(file, installed_for(file))


def find_vetted(
    given: CommonOptions, *, path: str | None = None, start: str | None = None, asks: bool = True
) -> ConfigFile | None:
    """The configuration of a command, as far as it may be used.

    Args:
        given: the common options; a file that they name is trusted.
        path: a file that somebody else named, such as a conversation, in place of a search.
        start: where to look from; the working directory when None.
        asks: on a terminal, ask about a file that is not trusted, once per command.

    Raises:
        ConfigError: it cannot be read, or is not trusted and has more than harmless entries.
    """
    if given.config is not None:
        return read_file(Path(given.config))
    place = (path, start)
    if place not in given.vetted:
        if path is None:
            for found in find_passed_over(start):
                say(f"warning: {one_line(found)} is not read: other users can write to its folder; --config names it")
        file = find_config(start) if path is None else read_file(Path(path))
        if file is not None:
            content = (file.source, file.content)
            if content not in given.vetted:
                given.vetted[content] = _vet(file, asks=asks)
            file = given.vetted[content]
        given.vetted[place] = file
    known: ConfigFile | None = given.vetted[place]
    return known


def vet_found(file: ConfigFile) -> ConfigFile:
    """What counts of a file that a program found with ``load_config()``; the program's user is not asked.

    Raises:
        ConfigError: it is not trusted, and has more than harmless entries.
    """
    return _vet(file, asks=False)


def find_passed_over(start: str | None = None) -> Iterator[str]:
    """The files that a search skips because others can write to their folders."""
    for folder, is_safe in search_folders(start):
        if is_safe and ((folder / "locus.toml").is_file() or (folder / "pyproject.toml").is_file()):
            return
        if not is_safe and (folder / "locus.toml").is_file():
            yield str(folder / "locus.toml")


def describe_held(file: ConfigFile, held: tuple[str, ...]) -> Iterator[str]:
    """The entries without effect, one line each, without secrets."""
    for key in held:
        value: Any = file.data
        for part in _parts(key, file.data):
            value = value[part]
        shown = json.dumps(hide(value, key.rpartition(".")[2]), ensure_ascii=False, default=str)
        yield one_line(f"{key} = {shown}")


def _parts(key: str, data: Mapping[str, Any]) -> list[str]:
    """A dotted name as keys; those of the last table may have dots in them."""
    first, _, rest = key.partition(".")
    if not rest:
        return [key]
    if first == "agent":
        return [first, rest]
    tables = data["plugins"]
    for name in tables:
        if rest == name:
            return [first, name]
        if rest.startswith(f"{name}.") and isinstance(tables[name], Mapping) and rest[len(name) + 1 :] in tables[name]:
            return [first, name, rest[len(name) + 1 :]]
    return [first, rest]


def installed_for(file: ConfigFile | None) -> Catalogue:
    """The plugins whose manifests may be read to judge a file."""
    allow = None if file is None else file.data.get("allow")
    if allow is None:
        return Catalogue()
    listed = allow if isinstance(allow, list | tuple) else ()
    return Catalogue().allowing([item for item in listed if isinstance(item, str)])


def _vet(file: ConfigFile, *, asks: bool) -> ConfigFile:
    screened = trusted_or_screened(file)
    if not screened.held:
        return file
    source = one_line(file.source)
    if not (asks and sys.stdin.isatty() and standard().err.is_terminal):
        keys = one_line(", ".join(screened.held))
        raise ConfigError(
            f"{source} is not trusted, and sets what could start programs, load code, or name addresses and secrets: "
            f"{keys}; read it, then run `{trust_command(file)}`, or name the file"
        )
    say(f"{source} is not trusted, and sets what could start programs, load code, or name addresses and secrets:")
    for line in describe_held(file, screened.held):
        say(f"  {line}")
    if confirm("Trust this file as it is now?"):
        open_trust(file).add(file)
        return file
    if "required" in screened.held:
        raise ConfigError(f"{source} requires plugins, and is not trusted; nothing was run")
    say("warning: continuing without these entries")
    return screened.file


def trust_command(file: ConfigFile) -> str:
    """What the user types to trust a file."""
    found = None
    with suppress(ConfigError):
        found = find_config()
    is_found = found is not None and found.source == str(Path(file.source).absolute())
    return "locus config trust" if is_found else f"locus config trust {shlex.quote(file.source)}"
