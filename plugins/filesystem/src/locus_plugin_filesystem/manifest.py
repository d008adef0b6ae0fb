"""What the plugin offers, readable without importing the rest of it."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="filesystem",
    api=(1, 0),
    summary="Gives the agent files: six tools over a place that follows the conversation, or over one of yours.",
    hooks=("locus_plugin_filesystem.permissions:PermissionsHook", "locus_plugin_filesystem.hook:FilesystemHook"),
    settings="locus_plugin_filesystem.settings:FilesystemSettings",
    compat_paths={
        "locus.deepagent.backends:CompositeBackend": "locus_plugin_filesystem.composite:CompositeBackend",
        "locus.deepagent.backends:FilesystemBackend": "locus_plugin_filesystem.directory:FilesystemBackend",
        "locus.deepagent.backends:StateBackend": "locus_plugin_filesystem.state:StateBackend",
        "locus.deepagent.backends:StoreBackend": "locus_plugin_filesystem.store:StoreBackend",
        "locus.deepagent.backends.filesystem:FilesystemBackend": "locus_plugin_filesystem.directory:FilesystemBackend",
        "locus.deepagent.backends.state:StateBackend": "locus_plugin_filesystem.state:StateBackend",
        "locus.deepagent.tools.filesystem:make_filesystem_tools": "locus_plugin_filesystem.tools:make_filesystem_tools",
    },
)
