"""What the plugin offers, readable without importing the MCP SDK."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="mcp",
    api=(1, 0),
    summary="Tools of MCP servers, over stdio and streamable HTTP; and tools of an agent served over MCP.",
    hooks=("locus_plugin_mcp.hook:McpHook", "locus_plugin_mcp.registration"),
    provides={
        "doctor": "locus_plugin_mcp.doctor:examine",
        "command_session": "locus_plugin_mcp.review:command_session",
    },
    settings="locus_plugin_mcp.settings:McpSettings",
    includes=("file",),
    keywords={"mcp_config": "file"},
    compat_paths={"locus.mcp:McpEndpoint": "locus_plugin_mcp.endpoint:McpEndpoint"},
)
