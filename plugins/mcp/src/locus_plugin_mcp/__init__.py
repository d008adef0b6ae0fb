"""Tools of MCP servers for Locus agents, and Locus tools served over MCP."""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_mcp.endpoint import McpEndpoint
    from locus_plugin_mcp.errors import (
        McpCallCancelled,
        McpCallRefused,
        McpConnectionLost,
        McpProtocolError,
        McpResultInvalid,
        McpServerError,
        McpStartError,
        McpToolChanged,
        McpToolError,
        McpToolsChanged,
    )
    from locus_plugin_mcp.events import McpReport, McpServerEvent, ServerReport
    from locus_plugin_mcp.hook import McpHook
    from locus_plugin_mcp.lock import ToolChange
    from locus_plugin_mcp.servers import McpServers
    from locus_plugin_mcp.serving import http_app, serve
    from locus_plugin_mcp.settings import McpSettings, ServerSettings, ToolLabels

__all__ = [
    "McpCallCancelled",
    "McpCallRefused",
    "McpConnectionLost",
    "McpEndpoint",
    "McpHook",
    "McpProtocolError",
    "McpReport",
    "McpResultInvalid",
    "McpServerError",
    "McpServerEvent",
    "McpServers",
    "McpSettings",
    "McpStartError",
    "McpToolChanged",
    "McpToolError",
    "McpToolsChanged",
    "ServerReport",
    "ServerSettings",
    "ToolChange",
    "ToolLabels",
    "http_app",
    "serve",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "locus_plugin_mcp.endpoint": ("McpEndpoint",),
        "locus_plugin_mcp.errors": (
            "McpCallCancelled",
            "McpCallRefused",
            "McpConnectionLost",
            "McpProtocolError",
            "McpResultInvalid",
            "McpServerError",
            "McpStartError",
            "McpToolChanged",
            "McpToolError",
            "McpToolsChanged",
        ),
        "locus_plugin_mcp.events": ("McpReport", "McpServerEvent", "ServerReport"),
        "locus_plugin_mcp.hook": ("McpHook",),
        "locus_plugin_mcp.servers": ("McpServers",),
        "locus_plugin_mcp.lock": ("ToolChange",),
        "locus_plugin_mcp.serving": ("http_app", "serve"),
        "locus_plugin_mcp.settings": ("McpSettings", "ServerSettings", "ToolLabels"),
    },
)
