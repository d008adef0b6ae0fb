"""Subagents: pieces of an agent's work for agents of their own.

Names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_subagents.definition import SubAgentDef, general_purpose
    from locus_plugin_subagents.hook import SubagentsHook
    from locus_plugin_subagents.settings import SubagentsSettings
    from locus_plugin_subagents.task import SubAgentFailed, task_tool

__all__ = ["SubAgentDef", "SubAgentFailed", "SubagentsHook", "SubagentsSettings", "general_purpose", "task_tool"]

_MODULES = {
    "definition": ("SubAgentDef", "general_purpose"),
    "hook": ("SubagentsHook",),
    "settings": ("SubagentsSettings",),
    "task": ("SubAgentFailed", "task_tool"),
}

__getattr__, __dir__ = exports(
    __name__, {f"locus_plugin_subagents.{module}": names for module, names in _MODULES.items()}
)
