"""`McpHook`: adds the tools of the servers to each run, and reports what became of the servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from locus.plugin import Hook, Lazy, RunContext, StashKey, hookimpl
from locus_plugin_mcp.events import McpServerEvent
from locus_plugin_mcp.files import with_file
from locus_plugin_mcp.settings import McpSettings

if TYPE_CHECKING:
    from locus import TerminateEvent
    from locus_kit.schematool import SchemaTool
    from locus_plugin_mcp import servers
    from locus_plugin_mcp.servers import McpServers
else:
    # The SDK of the protocol takes as long to import as several of Locus; an agent without servers does without.
    servers = Lazy("locus_plugin_mcp.servers")

__all__ = ["McpHook"]

_SERVERS: StashKey[McpServers] = StashKey("mcp servers")


class McpHook(Hook):
    """Connects to the servers for as long as a run is under way.

    Args:
        settings: which servers; or `McpServers` that are already open, which all runs then share.
    """

    name = "mcp"

    def __init__(self, settings: McpSettings | McpServers | None = None) -> None:
        held = settings is not None and not isinstance(settings, McpSettings)
        self._held: McpServers | None = settings if held else None  # type: ignore[assignment]
        self.settings: McpSettings = with_file(McpSettings()) if self._held is None else self._held.settings
        if isinstance(settings, McpSettings):
            self.settings = with_file(settings)
        if any(not server.disabled for server in self.settings.servers.values()):
            servers.McpServers  # noqa: B018 - imported while the agent is built, not while others wait in a run

    @hookimpl
    @asynccontextmanager
    async def locus_run_session(self, run: RunContext) -> AsyncIterator[Iterable[SchemaTool] | None]:
        """Connect, or share what is connected, and give the run its tools."""
        if self._held is not None:
            yield await self._collect_tools(self._held, run)
        elif all(server.disabled for server in self.settings.servers.values()):
            yield None
        else:
            async with servers.McpServers(self.settings) as connected:
                yield await self._collect_tools(connected, run)

    async def _collect_tools(self, connected: McpServers, run: RunContext) -> tuple[SchemaTool, ...]:
        tools = connected.tools(run.registry.names)
        run.stash[_SERVERS] = connected
        for each in connected.report.servers:
            await run.emit(
                McpServerEvent(
                    server=each.server,
                    status=each.status,
                    detail=each.detail,
                    tools=each.tools,
                    held_back=tuple(change.tool for change in each.held_back),
                    first_use=each.first_use,
                )
            )
        return tools

    def on_terminate(self, event: TerminateEvent, run: RunContext) -> None:
        """Report what became of the servers."""
        connected = run.stash.get(_SERVERS, None)
        if connected is not None:
            run.report("mcp", connected.report)
