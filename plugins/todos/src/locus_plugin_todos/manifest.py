"""What the plugin offers, readable without importing the rest of it."""

from __future__ import annotations

from locus.plugin import Plugin

plugin = Plugin(
    name="todos",
    api=(1, 0),
    summary="Gives the model a list of todos that is kept with the thread, and reminds it of what is left.",
    hooks=("locus_plugin_todos.hook:TodosHook",),
    settings="locus_plugin_todos.settings:TodosSettings",
    harmless=("remind",),
    compat_paths={
        "locus.deepagent.todos:Todo": "locus_plugin_todos.todo:Todo",
        "locus.deepagent.todos:TodoState": "locus_plugin_todos.todo:TodoState",
        "locus.deepagent.todos:make_todo_tools": "locus_plugin_todos.tools:make_todo_tools",
        "locus.hooks.builtin:TodosHook": "locus_plugin_todos.hook:TodosHook",
        "locus.hooks.builtin:TodosSettings": "locus_plugin_todos.settings:TodosSettings",
    },
)
