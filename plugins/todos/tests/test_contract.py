"""The promises of any plugin, and the fixed import path."""

from __future__ import annotations

import importlib
import inspect

import pytest

import locus_plugin_todos
from locus import Agent
from locus_plugin_todos import TodosHook, TodosSettings
from locus_testkit import PluginContract, ScriptedModel


class TestTodos(PluginContract):
    name = "todos"


def test_the_compat_path_has_the_names() -> None:
    compat = importlib.import_module("locus.deepagent.todos")
    for name in ("Todo", "TodoState", "make_todo_tools"):
        assert getattr(compat, name) is getattr(locus_plugin_todos, name)
    assert str(inspect.signature(compat.Todo)).startswith("(content: 'str', status: 'str' = 'pending')")
    assert list(inspect.signature(compat.make_todo_tools).parameters) == ["state"]


@pytest.mark.parametrize("todos", [True, {"remind": True}, TodosSettings(remind=True)])
def test_it_is_switched_on_by_its_name(todos: object) -> None:
    agent = Agent(ScriptedModel("Done."), todos=todos)
    assert agent.runtime.tools.names == ("write_todos", "read_todos")


def test_the_hook_alone_is_the_same() -> None:
    assert Agent(ScriptedModel("Done."), hooks=[TodosHook()]).runtime.tools.names == ("write_todos", "read_todos")


@pytest.mark.parametrize("settings", [{"remind": 1}, {"state": "x"}, {"state": []}])
def test_wrong_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        TodosSettings(**settings)  # type: ignore[arg-type]
