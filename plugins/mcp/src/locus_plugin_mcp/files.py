"""Servers from a JSON file in the ``mcpServers`` shape, which several programs share.

What only other programs read is left alone; an unknown key is an error, because a filter that is
misspelled filters nothing. ``${NAME}`` and ``${NAME:-default}`` in the values of ``env`` and ``headers`` are variables
of the environment, as elsewhere, and secrets like everything there.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from locus.core import FrozenDict
from locus.core.errors import SettingsError
from locus.plugins import Layer, Secret, structure
from locus_plugin_mcp.settings import McpSettings, ServerSettings

__all__ = ["with_file"]

#: What other programs keep beside a server's own keys, and what means nothing here.
_OTHERS = frozenset(
    {"alwaysAllow", "autoApprove", "description", "disabledTools", "gallery", "icon", "id", "name", "note", "version"}
)
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


@frozen
class _Servers:
    """What is read of the file."""

    mcpServers: Mapping[str, ServerSettings]  # noqa: N815


def with_file(settings: McpSettings, environ: Mapping[str, str] | None = None) -> McpSettings:
    """The settings with the servers of their file among them, and all under one name.

    Raises:
        SettingsError: the file cannot be read, or what it says is wrong.
    """
    servers = {**settings.servers, **settings.mcpServers}
    if settings.file is not None:
        found = _read(settings.file, os.environ if environ is None else environ)
        twice = sorted(set(servers) & set(found))
        if twice:
            raise SettingsError([f"{settings.file}: {', '.join(map(repr, twice))} is configured elsewhere as well"])
        servers |= found
    return evolve(settings, servers=servers, mcpServers={}, file=None)


def _read(path: Path, environ: Mapping[str, str]) -> Mapping[str, ServerSettings]:
    try:
        data = json.loads(path.expanduser().read_text(encoding="utf-8"))
    except OSError as e:
        raise SettingsError([f"{path}: {e.strerror}; mcp.file is a JSON file with mcpServers"]) from e
    except ValueError as e:
        raise SettingsError([f"{path}: is not JSON: {e}"]) from e
    servers = data.get("mcpServers") if isinstance(data, dict) else None
    if not isinstance(servers, dict):
        raise SettingsError([f'{path}: has no servers; expected {{"mcpServers": {{"name": {{...}}}}}}'])
    known = {name: _expand(each, environ) for name, each in servers.items()}
    read = structure(_Servers, [Layer(str(path), "", {"mcpServers": known})], environ)
    return FrozenDict(read.mcpServers)


def _expand(server: Any, environ: Mapping[str, str]) -> Any:
    if not isinstance(server, dict):
        return server
    made = {key: value for key, value in server.items() if key not in _OTHERS}
    for key in ("env", "headers"):
        if isinstance(made.get(key), dict):
            made[key] = {name: _value(value, environ) for name, value in made[key].items()}
    return made


def _value(value: Any, environ: Mapping[str, str]) -> Any:
    if not isinstance(value, str) or not _VARIABLE.search(value):
        return value
    whole = _VARIABLE.fullmatch(value)
    if whole is not None and whole[2] is None:
        return {"env": whole[1]}  # the settings say what is wrong with it
    missing = [name for name, default in _VARIABLE.findall(value) if name not in environ and not default]
    if missing:
        return {"env": missing[0]}
    return Secret(_VARIABLE.sub(lambda m: environ.get(m[1]) or m[2] or "", value))
