"""Tools of MCP servers for Locus agents, and Locus tools served over MCP."""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_mcp.errors import (
        McpCallRefused,
        McpConnectionLost,
        McpProtocolError,
        McpResultInvalid,
        McpServerError,
        McpStartError,
        McpToolError,
    )
    from locus_plugin_mcp.events import McpReport, McpServerEvent, ServerReport
    from locus_plugin_mcp.hook import McpHook
    from locus_plugin_mcp.servers import McpServers
    from locus_plugin_mcp.serving import http_app, serve
    from locus_plugin_mcp.settings import McpSettings, ServerSettings

__all__ = [
    "McpCallRefused",
    "McpConnectionLost",
    "McpHook",
    "McpProtocolError",
    "McpReport",
    "McpResultInvalid",
    "McpServerError",
    "McpServerEvent",
    "McpServers",
    "McpSettings",
    "McpStartError",
    "McpToolError",
    "ServerReport",
    "ServerSettings",
    "http_app",
    "serve",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "McpCallRefused": "locus_plugin_mcp.errors",
        "McpConnectionLost": "locus_plugin_mcp.errors",
        "McpHook": "locus_plugin_mcp.hook",
        "McpProtocolError": "locus_plugin_mcp.errors",
        "McpReport": "locus_plugin_mcp.events",
        "McpResultInvalid": "locus_plugin_mcp.errors",
        "McpServerError": "locus_plugin_mcp.errors",
        "McpServerEvent": "locus_plugin_mcp.events",
        "McpServers": "locus_plugin_mcp.servers",
        "McpSettings": "locus_plugin_mcp.settings",
        "McpStartError": "locus_plugin_mcp.errors",
        "McpToolError": "locus_plugin_mcp.errors",
        "ServerReport": "locus_plugin_mcp.events",
        "ServerSettings": "locus_plugin_mcp.settings",
        "http_app": "locus_plugin_mcp.serving",
        "serve": "locus_plugin_mcp.serving",
    },
)
