"""The promises of any plugin."""

from __future__ import annotations

from typing import ClassVar

from locus_testkit import PluginContract


class TestSteering(PluginContract):
    name = "steering"
    #: The model of the contract's run cannot judge, so its tool must not need a vote.
    settings: ClassVar = {"never": ["echo"]}
