"""Settings that name tools, of each plugin that has such settings: a tool that does not exist is an error at build."""

from __future__ import annotations

from typing import Any

import pytest

from locus import Agent, tool
from locus.core.errors import ConfigError
from locus_plugin_subagents import SubAgentDef
from locus_testkit import ScriptedModel


@tool(targets=("path",))
def write_file(path: str, contents: str) -> str:
    """Write a file."""
    return path


@tool
def purge(name: str) -> str:
    """Remove it all."""
    return name


def rule(name: str) -> dict[str, Any]:
    return {"rules": [{"name": "words", "words": ["gold"], "tools": [name]}]}


SETTINGS = {
    "approval": lambda name: {"tools": [name]},
    "guardrails": rule,
    "provenance": lambda name: {"tools": {name: {"mode": "reject"}}},
    "reflexion": lambda name: {"after": [name]},
    "steering": lambda name: {"always": [name]},
    "toolsearch": lambda name: {"pinned": [name]},
    "verifier": lambda name: {"tools": [name], "check": lambda state: True},
}


@pytest.mark.parametrize("plugin", SETTINGS)
def test_a_misspelled_tool_is_an_error_with_the_nearest_name(plugin: str) -> None:
    settings: Any = SETTINGS[plugin]
    with pytest.raises(ConfigError, match=r"unknown tool in .* 'wirte_file'; did you mean 'write_file'\?"):
        Agent(ScriptedModel("x"), tools=[write_file], **{plugin: settings("wirte_file")})

    Agent(ScriptedModel("x"), tools=[write_file], **{plugin: settings("write_file")})


@pytest.mark.parametrize("plugin", sorted(SETTINGS.keys() - {"verifier"}))
def test_a_pattern_may_fit_no_tool(plugin: str) -> None:
    settings: Any = SETTINGS[plugin]
    Agent(ScriptedModel("x"), tools=[write_file], **{plugin: settings("mcp_*")})


def test_a_misspelled_parameter_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(
        ConfigError, match=r"parameter in provenance.tools.write_file.targets 'pth'; did you mean 'path'"
    ):
        Agent(ScriptedModel("x"), tools=[write_file], provenance={"tools": {"write_file": {"targets": ["pth"]}}})


@pytest.mark.parametrize("plugin", SETTINGS)
def test_a_tool_of_a_subagent_may_be_named(plugin: str) -> None:
    inner = SubAgentDef(name="cleaner", description="cleans", system_prompt="", tools=[purge])
    settings: Any = SETTINGS[plugin]
    Agent(ScriptedModel("x"), tools=[write_file], subagents={"agents": [inner]}, **{plugin: settings("purge")})
    with pytest.raises(ConfigError, match="did you mean 'purge'"):
        Agent(ScriptedModel("x"), tools=[write_file], subagents={"agents": [inner]}, **{plugin: settings("prge")})
