"""Todos: the agent's list of what is to be done.

Names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_todos.events import TodoChange, TodoChangedEvent
    from locus_plugin_todos.hook import TodosHook
    from locus_plugin_todos.settings import TodosSettings
    from locus_plugin_todos.todo import Todo, TodoState
    from locus_plugin_todos.tools import make_todo_tools

__all__ = ["Todo", "TodoChange", "TodoChangedEvent", "TodoState", "TodosHook", "TodosSettings", "make_todo_tools"]

_MODULES = {
    "events": ("TodoChange", "TodoChangedEvent"),
    "hook": ("TodosHook",),
    "settings": ("TodosSettings",),
    "todo": ("Todo", "TodoState"),
    "tools": ("make_todo_tools",),
}

__getattr__, __dir__ = exports(__name__, {f"locus_plugin_todos.{module}": names for module, names in _MODULES.items()})
