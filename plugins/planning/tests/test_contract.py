"""The promises of any plugin."""

from __future__ import annotations

from locus_testkit import PluginContract


class TestPlanning(PluginContract):
    """With a model that cannot plan, the agent runs as without the plugin."""

    name = "planning"
