"""The CLI is a plugin like any other."""

from __future__ import annotations

from locus_testkit import PluginContract


class TestCli(PluginContract):
    name = "cli"
