"""The promises of any plugin."""

from __future__ import annotations

from locus_testkit import PluginContract


class TestWeb(PluginContract):
    name = "web"
