"""What the plugin offers, readable without importing its parts."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="shell",
    api=(1, 0),
    summary="A tool that runs shell commands in a sandbox, without network and without the host's files.",
    hooks=("locus_plugin_shell.hook:ShellHook",),
    settings="locus_plugin_shell.settings:ShellSettings",
    guard=True,
    provides={"doctor": "locus_plugin_shell.doctor:examine"},
)
