"""The promises of any plugin, and the fixed import path."""

from __future__ import annotations

import importlib

import locus_plugin_knowledge
from locus_testkit import PluginContract


class TestKnowledge(PluginContract):
    name = "knowledge"


def test_the_compat_path_has_the_names() -> None:
    compat = importlib.import_module("locus.deepagent.protocol")
    for name in ("KnowledgeProvider", "KnowledgeRow", "ItemRef", "Grounding"):
        assert getattr(compat, name) is getattr(locus_plugin_knowledge, name)
