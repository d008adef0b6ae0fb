"""What the plugin offers, readable without importing the rest of it."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="serve",
    api=(1, 0),
    summary="Puts an agent behind an address: `locus serve FILE:AGENT`.",
    provides={"commands": "locus_plugin_serve.registration"},
    settings="locus_plugin_serve.settings:ServeSettings",
    compat_paths={
        "locus.serve:ServeSettings": "locus_plugin_serve.settings:ServeSettings",
        "locus.serve:make_app": "locus_plugin_serve.app:make_app",
        "locus.serve:serve": "locus_plugin_serve.server:serve",
    },
)
