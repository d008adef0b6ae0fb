"""What the plugin offers, readable without importing the rest of it."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="viewer",
    api=(1, 0),
    summary="Shows threads and runs on a local web page: `locus view`.",
    provides={"commands": "locus_plugin_viewer.commands.registration"},
    compat_paths={
        "locus.viewer:Viewer": "locus_plugin_viewer.viewer:Viewer",
        "locus.viewer:make_app": "locus_plugin_viewer.app:make_app",
    },
)
