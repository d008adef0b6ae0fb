"""The command that the plugin adds to ``locus``."""

from __future__ import annotations

from locus.plugin import hookimpl

__all__ = ["locus_register_commands"]


@hookimpl
def locus_register_commands() -> list[object]:
    """``locus mcp serve`` and ``lock``, imported when they are called."""
    return ["locus_plugin_mcp.command:mcp"]
