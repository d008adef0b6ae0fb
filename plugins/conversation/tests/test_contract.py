"""The plugin keeps the promises of every plugin, and its names are at their fixed import paths."""

from __future__ import annotations

import importlib

import pytest

import locus_plugin_conversation
from locus_testkit import PluginContract


class TestConversation(PluginContract):
    """The installed plugin."""

    name = "conversation"


@pytest.mark.parametrize("name", ["LLMCompactor", "SlidingWindowManager", "SummarizingManager", "estimate_tokens"])
def test_every_name_is_at_its_fixed_import_path(name: str) -> None:
    assert getattr(importlib.import_module("locus.memory.conversation"), name) is getattr(
        locus_plugin_conversation, name
    )


def test_the_compactor_is_at_the_path_of_its_own() -> None:
    found = importlib.import_module("locus.memory.compactor").LLMCompactor
    assert found is locus_plugin_conversation.LLMCompactor
