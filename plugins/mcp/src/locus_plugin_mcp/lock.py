"""The accepted tool definitions of a server, which its present ones are compared with.

A description is text that a model follows. A server that is harmless when it is reviewed can change its descriptions
the next day, without any change of the configuration. So the names, descriptions and schemas of each server's tools are
recorded on first use (trust on first use), one file per server, and tools that differ are held back until a person
accepts them. The comparison is of what the server sent, including invisible characters, not of what the model reads.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from attrs import frozen

from locus_kit.invisible import escape_invisible
from locus_kit.state import state_folder

if TYPE_CHECKING:
    from mcp.types import Tool

    from locus_plugin_mcp.settings import ServerSettings

__all__ = ["Definition", "ServerLock", "ToolChange", "definition_of"]

_FORMAT = 1

#: The parts of a tool that the model reads or that its effect depends on: this is what a person accepts.
Definition = Mapping[str, Any]


@frozen
class ToolChange:
    """A tool that is new or has changed since the tools of its server were accepted.

    Args:
        tool: its name on the server.
        kind: ``"changed"``, or ``"new"`` for one that was not there.
        diff: what differs, as lines to read, with everything invisible as escapes.
    """

    tool: str
    kind: Literal["changed", "new"]
    diff: str

    @property
    def reason(self) -> str:
        """Why the tool is held back."""
        if self.kind == "new":
            return "it is new since the server's tools were accepted"
        return "its description or schema has changed since it was accepted"


@frozen(kw_only=True)
class ServerLock:
    """The file with the accepted tools of one server.

    Args:
        path: where it is.
        server: the server's name in the settings.
    """

    path: Path
    server: str

    @classmethod
    def of(cls, lock: str | bool, name: str, server: ServerSettings) -> Self | None:  # noqa: FBT001  a setting
        """The lock of a server; None where it is switched off.

        Args:
            lock: the setting: a folder, True for the user's own, or False.
            name: of the server.
            server: how to get there. Another command or address is another server.
        """
        if lock is False:
            return None
        folder = state_folder() / "mcp" if lock is True else Path(lock).expanduser()
        way = json.dumps([server.command, server.args, None if server.cwd is None else str(server.cwd), server.url])
        digest = hashlib.sha256(way.encode("utf-8", "backslashreplace")).hexdigest()[:16]
        return cls(path=folder / f"{re.sub(r'[^A-Za-z0-9_-]', '_', name)}-{digest}.json", server=name)

    def read(self) -> dict[str, Definition] | None:
        """The accepted tools by name; None where none were accepted yet.

        Raises:
            OSError: the file cannot be read.
            ValueError: it is not a lock.
        """
        try:
            form = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        if not isinstance(form, dict) or form.get("format") != _FORMAT or not isinstance(form.get("tools"), dict):
            raise ValueError("it is not a lock of this version")
        tools: dict[str, Definition] = form["tools"]
        for name, kept in tools.items():
            if not isinstance(kept, dict) or kept.get("sha256") != _digest(kept.get("definition")):
                raise ValueError(f"the entry of the tool {name!r:.80} is damaged")
        return {name: kept["definition"] for name, kept in tools.items()}

    def write(self, tools: Mapping[str, Definition]) -> None:
        """Accept these tools, and no others.

        Raises:
            OSError: the file cannot be written.
        """
        entries = {name: {"sha256": _digest(made), "definition": made} for name, made in sorted(tools.items())}
        form = {"format": _FORMAT, "server": self.server, "tools": entries}
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=".lock-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(json.dumps(form, indent=1) + "\n")
            Path(name).replace(self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def changes(self, accepted: Mapping[str, Definition], now: Mapping[str, Definition]) -> tuple[ToolChange, ...]:
        """The tools that are not as they were accepted; one that is gone cannot be called, and does not count."""
        found = []
        for name, made in now.items():
            before = accepted.get(name)
            if before is None or _digest(before) != _digest(made):
                kind: Literal["changed", "new"] = "new" if before is None else "changed"
                found.append(ToolChange(name, kind, _diff(before, made)))
        return tuple(found)


def definition_of(tool: Tool) -> Definition:
    """The definition of a tool as plain data: everything that a model reads or an effect depends on."""
    form: Definition = json.loads(
        tool.model_dump_json(
            by_alias=True,
            exclude_none=True,
            include={"name", "title", "description", "input_schema", "annotations"},
        )
    )
    return form


def _digest(definition: Any) -> str:
    return hashlib.sha256(json.dumps(definition, sort_keys=True).encode()).hexdigest()


def _lines(definition: Definition | None) -> list[str]:
    if definition is None:
        return []
    rest = {name: value for name, value in definition.items() if name not in ("name", "title", "description")}
    words = [f"{name}: {definition[name]}" for name in ("title", "description") if name in definition]
    # As text, without the escapes of JSON, so that a person can read it.
    form = json.dumps(rest, indent=2, sort_keys=True, ensure_ascii=False)
    return [escape_invisible(line) for line in "\n".join([*words, form]).split("\n")]


def _diff(before: Definition | None, now: Definition) -> str:
    return "\n".join(
        line
        for line in difflib.unified_diff(_lines(before), _lines(now), n=1, lineterm="")
        if not line.startswith(("---", "+++", "@@"))
    )
