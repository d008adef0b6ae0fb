"""The promises of any plugin, and the fixed import path."""

from __future__ import annotations

import importlib
import inspect

import locus_plugin_subagents
from locus_testkit import PluginContract


class TestSubagents(PluginContract):
    name = "subagents"
    settings = {"agents": [{"name": "reader", "description": "reads", "system_prompt": "Read."}]}  # noqa: RUF012


def test_the_compat_path_has_the_names() -> None:
    compat = importlib.import_module("locus.deepagent.subagent")
    for name in ("SubAgentDef", "task_tool"):
        assert getattr(compat, name) is getattr(locus_plugin_subagents, name)
    parameters = inspect.signature(compat.task_tool).parameters
    assert list(parameters) == ["subagents", "parent_model"]
    assert parameters["parent_model"].kind is inspect.Parameter.KEYWORD_ONLY
    fields = inspect.signature(compat.SubAgentDef).parameters
    assert list(fields) == ["name", "description", "system_prompt", "tools", "model", "max_iterations"]
    assert (fields["model"].default, fields["max_iterations"].default) == (None, 10)


def test_a_definition_is_found_beside_the_factory_too() -> None:
    assert importlib.import_module("locus.deepagent").SubAgentDef is locus_plugin_subagents.SubAgentDef
