"""What the plugin is, readable without importing click or rich."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="cli",
    api=(1, 0),
    summary="The `locus` command: run, chat, inspect and write plugins from a terminal.",
)
