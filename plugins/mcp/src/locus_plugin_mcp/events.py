"""The plugin's events about its servers, and its report in ``result.reports["mcp"]``."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from locus.plugin import Event, register_event
from locus_plugin_mcp.lock import ToolChange

__all__ = ["McpReport", "McpServerEvent", "ServerReport", "Status"]

#: ``"connected"``; ``"failed"``: it was never there; ``"lost"``: it went away while the run was in progress.
Status = Literal["connected", "failed", "lost"]


@frozen(kw_only=True)
class ServerReport:
    """One server in one run.

    Args:
        server: its name in the settings.
        status: see `Status`.
        detail: why it failed or was lost, or ``""``.
        tools: the names under which the model knows its tools.
        left_out: its tools that are not used, each with why.
        held_back: its tools that are new or have changed since they were accepted; they are also in ``left_out``.
        first_use: its tools were seen for the first time, and are accepted as they are.
        changed: it said that its list of tools has changed; the run keeps the list that it began with.
        protocol: the version of the protocol, or ``""``.
    """

    server: str
    status: Status
    detail: str = ""
    tools: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    held_back: tuple[ToolChange, ...] = ()
    first_use: bool = False
    changed: bool = False
    protocol: str = ""


@frozen
class McpReport:
    """The servers of one run."""

    servers: tuple[ServerReport, ...] = ()

    def of(self, server: str) -> ServerReport | None:
        """One server's, or None."""
        return next((each for each in self.servers if each.server == server), None)


@register_event
@frozen(kw_only=True)
class McpServerEvent(Event):
    """A server was connected for the run, or could not be.

    Args:
        server: its name in the settings.
        status: ``"connected"`` or ``"failed"``.
        detail: why it failed, or ``""``.
        tools: the names under which the model knows its tools.
        held_back: the names, on the server, of tools that are new or have changed since they were accepted.
        first_use: its tools were seen for the first time, and are accepted as they are.
    """

    server: str = ""
    status: str = "connected"
    detail: str = ""
    tools: tuple[str, ...] = ()
    held_back: tuple[str, ...] = ()
    first_use: bool = False
