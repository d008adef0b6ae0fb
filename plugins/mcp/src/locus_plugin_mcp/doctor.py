"""``locus plugins doctor mcp``: starts the servers, and says what they offer or why they cannot be used."""

from __future__ import annotations

from attrs import evolve

from locus.core.errors import UnknownName
from locus_plugin_mcp.files import with_file
from locus_plugin_mcp.servers import McpServers
from locus_plugin_mcp.settings import McpSettings

__all__ = ["examine"]


async def examine(settings: McpSettings, wanted: str) -> list[tuple[str, str, str]]:
    """Connect to servers and leave them again.

    Args:
        settings: which servers there are.
        wanted: the name of one of them, which is started also where it is disabled; ``""`` for all that are not.

    Returns:
        For each server its name, what is wrong or ``""``, and what is worth knowing.

    Raises:
        UnknownName: no server of that name is configured.
    """
    every = with_file(settings).servers
    if wanted and wanted not in every:
        raise UnknownName("MCP server", wanted, every)
    chosen = [wanted] if wanted else [name for name, server in every.items() if not server.disabled]
    found = [(name, "", "disabled; name it to start it") for name in every if name not in chosen and not wanted]
    servers = {name: evolve(every[name], required=False, disabled=False) for name in chosen}
    async with McpServers(evolve(settings, servers=servers, mcpServers={}, file=None)) as connected:
        connected.tools()
        for report in connected.report.servers:
            offers = ", ".join(report.tools) or "no tools"
            left_out = f"; left out: {'; '.join(report.left_out)}" if report.left_out else ""
            found.append((report.server, report.detail, "" if report.detail else f"offers {offers}{left_out}"))
    return found or [("", "", "no server is configured in [plugins.mcp]")]
