"""`McpServers`: connections to the servers of a configuration, all opened at once and all left together."""

from __future__ import annotations

from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

import anyio
from attrs import evolve

from locus_kit.schematool import SchemaTool, schema_tool
from locus_plugin_mcp.connection import ServerConnection
from locus_plugin_mcp.errors import McpToolsChanged
from locus_plugin_mcp.events import McpReport
from locus_plugin_mcp.files import with_file
from locus_plugin_mcp.naming import names

if TYPE_CHECKING:
    from collections.abc import Collection

    from anyio.abc import TaskGroup

    from locus_plugin_mcp.settings import McpSettings

__all__ = ["McpServers"]


class McpServers:
    """The servers of a configuration, connected for as long as the block lasts.

    A hook makes one for each run. Held by a program, many runs share it::

        async with McpServers(settings) as servers:
            agent = Agent(model, hooks=[McpHook(servers)])

    Args:
        settings: which servers.
    """

    def __init__(self, settings: McpSettings) -> None:
        self.settings = with_file(settings)
        self.links: tuple[ServerConnection, ...] = ()
        self._group: TaskGroup | None = None

    async def __aenter__(self) -> McpServers:
        """Connect to all of them at once.

        Raises:
            McpServerError: one that is required cannot be used, or a command has to ask about changed tools.
        """
        wanted = self.settings.servers.items()
        self.links = tuple(
            ServerConnection(name, server, self.settings) for name, server in wanted if not server.disabled
        )
        self._group = group = anyio.create_task_group()
        await group.__aenter__()
        try:
            for link in self.links:
                group.start_soon(link)
            for link in self.links:
                await link.wait_open()
            for link in self.links:
                if link.error is not None and (link.server.required or isinstance(link.error, McpToolsChanged)):
                    raise link.error
        except BaseException:
            await self._leave()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._leave()

    async def _leave(self) -> None:
        for link in self.links:
            link.close()
        group, self._group = self._group, None
        if group is not None:
            # The links keep their failures to themselves; what the block raised does not concern the group.
            await group.__aexit__(None, None, None)

    def tools(self, taken: Collection[str] = ()) -> tuple[SchemaTool, ...]:
        """The tools of all of them, in the order of the configuration and of their lists.

        Args:
            taken: names that other tools have.
        """
        offered = [(link, offer) for link in self.links if link.error is None for offer in link.listing.offers]
        known = names([(link.name, offer.tool) for link, offer in offered], taken)
        settings = self.settings
        for link in self.links:
            mine = tuple(known[link.name, offer.tool] for of, offer in offered if of is link)
            link.report = evolve(link.report, tools=mine)
        return tuple(
            schema_tool(
                partial(link.call, offer.tool, offer.effect),
                name=known[link.name, offer.tool],
                description=offer.description,
                parameters=offer.parameters,
                origin=f"tool {offer.tool!r} of the MCP server {link.name!r}",
                effect=offer.effect,
                timeout=link.server.timeout,
                max_result_chars=settings.max_result_chars,
                reads=offer.labels.reads,
                targets=offer.labels.targets,
                egress=offer.labels.egress,
            )
            for link, offer in offered
        )

    @property
    def report(self) -> McpReport:
        """What became of each of them by now."""
        return McpReport(tuple(link.report for link in self.links))

    def __repr__(self) -> str:
        return f"<McpServers {', '.join(self.settings.servers) or 'none'}>"
