"""The promises of any plugin."""

from __future__ import annotations

from typing import ClassVar

from locus_testkit import PluginContract


class TestApproval(PluginContract):
    name = "approval"
    #: The tool of the contract's run has an effect, and nobody is there to ask.
    settings: ClassVar = {"except_tools": ["echo"]}
