"""What a subagent may be, and what is refused while the agent is built."""

from __future__ import annotations

from typing import Any

import pytest

from locus import Agent, ConfigError, tool
from locus.core.errors import SettingsError, ToolDefinitionError
from locus_plugin_subagents import SubAgentDef, SubagentsHook, SubagentsSettings, general_purpose, task_tool
from locus_testkit import ScriptedModel

MODEL = ScriptedModel("Done.")


def define(name: str = "reader", description: str = "reads", **options: Any) -> SubAgentDef:
    return SubAgentDef(name=name, description=description, system_prompt="Read.", **options)


@tool
def look() -> str:
    """Look."""
    return "seen"


def find(text: str) -> str:
    """Find."""
    return text


def test_a_tool_has_its_subagents_in_its_description_and_beside_it() -> None:
    task = task_tool([define(), define("writer", "writes\n  well")], parent_model=MODEL)
    assert task.name == "task"
    assert task._subagent_catalog == "- reader: reads\n- writer: writes well"  # type: ignore[attr-defined]
    assert task.description.endswith("\n- reader: reads\n- writer: writes well")
    properties = task.spec.parameters["properties"]
    assert {name: each["type"] for name, each in properties.items()} == {
        "subagent_type": "string",
        "description": "string",
    }
    assert task.spec.parameters["required"] == ("subagent_type", "description")


def test_without_subagents_the_tool_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="task_tool requires at least one SubAgentDef"):
        task_tool([], parent_model=MODEL)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"name": ""}, r"name must have 1 to 64 letters, digits, '_' or '-', got ''"),
        ({"name": "a b"}, r"name must have 1 to 64"),
        ({"name": "x" * 65}, r"name must have 1 to 64"),
        ({"name": "a\n- evil: it"}, r"name must have 1 to 64"),
        ({"name": 3}, r"name must have 1 to 64 letters, digits, '_' or '-', got 3"),
        ({"description": " "}, r"description must say what the subagent is for, got ' '"),
        ({"description": "é" * 10_001}, r"description must have at most 20,000 bytes, got 20,002"),
        ({"system_prompt": None}, r"system_prompt must be a str, got None"),
        ({"tools": "look"}, r"tools must be a list of tools, got 'look'"),
        ({"model": 3}, r"model must be 'provider:model' or a Model, got 3"),
        ({"max_iterations": 0}, r"max_iterations must be an int of 1 or more, got 0"),
        ({"max_iterations": True}, r"max_iterations must be an int of 1 or more, got True"),
    ],
)
def test_a_wrong_definition_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        SubAgentDef(**{"name": "reader", "description": "reads", "system_prompt": "", **options})


def test_the_longest_description_is_accepted() -> None:
    assert define(description="é" * 10_000).description


def test_tools_are_checked_with_the_definition() -> None:
    assert [each.name for each in define(tools=[look]).tools] == ["look"]
    with pytest.raises(ToolDefinitionError, match="3"):
        define(tools=[3])
    with pytest.raises(ToolDefinitionError, match="two tools are named 'look'"):
        define(tools=[look, tool(find, name="look")])


def test_two_of_one_name_are_refused() -> None:
    for make in (
        lambda both: task_tool(both, parent_model=MODEL),
        lambda both: SubagentsSettings(agents=both),
    ):
        with pytest.raises(ValueError, match="two subagents are named 'reader'; rename one of them"):
            make([define(), define()])
    with pytest.raises(ValueError, match="two subagents are named 'general-purpose'"):
        SubagentsSettings(agents=(define("general-purpose"),), general_purpose=True)


def test_what_is_not_a_definition_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a SubAgentDef, got 'reader'"):
        task_tool(["reader"], parent_model=MODEL)  # type: ignore[list-item]


def test_agents_are_built_with_the_tool() -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        task_tool([define(model="nowhere:model")], parent_model=MODEL)
    with pytest.raises(ConfigError):
        task_tool([define()], parent_model=None)  # type: ignore[arg-type]


# -- the plugin --------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [True, {}, {"agents": []}])
def test_the_plugin_wants_a_subagent(settings: Any) -> None:
    with pytest.raises(SettingsError, match="agents must hold at least one SubAgentDef"):
        Agent(MODEL, subagents=settings)


def test_the_plugin_can_be_set_up_by_a_dict_as_a_file_would() -> None:
    agent = Agent(
        MODEL,
        subagents={"agents": [{"name": "reader", "description": "reads", "system_prompt": "", "max_iterations": 3}]},
    )
    assert agent.runtime.tools.names == ("task",)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"agents": [{"name": "reader"}]}, "description"),
        ({"agents": [{"name": "a b", "description": "d", "system_prompt": ""}]}, "name must have 1 to 64"),
        ({"agents": [{"name": "a", "description": "d", "system_prompt": "", "depth": 1}]}, "depth"),
        ({"general_purpose": True, "max_depth": 0}, "max_depth must be an int from 1 to 16, got 0"),
    ],
)
def test_wrong_settings_are_refused(settings: Any, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        Agent(MODEL, subagents=settings)


def test_the_hook_alone_is_the_same() -> None:
    agent = Agent(MODEL, hooks=[SubagentsHook(SubagentsSettings(agents=(define(),)))])
    assert agent.runtime.tools.names == ("task",)


def test_one_for_any_work_is_there_when_asked_for() -> None:
    asked = Agent(MODEL, tools=[look], subagents={"general_purpose": True})
    assert "- general-purpose: does any piece of work" in asked.runtime.tools["task"].description
    other = Agent(MODEL, subagents=SubagentsSettings(agents=(define(),)))
    assert "general-purpose" not in other.runtime.tools["task"].description
    made = general_purpose([look], max_iterations=5)
    assert (made.name, made.max_iterations, [each.name for each in made.tools]) == ("general-purpose", 5, ["look"])
