"""Instructions: the AGENTS.md files of a project in the system prompt.

Its names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_instructions.events import InstructionsReadEvent
    from locus_plugin_instructions.files import InstructionsFile, find_agents_md, load_agents_md, prepend_instructions
    from locus_plugin_instructions.hook import InstructionsHook
    from locus_plugin_instructions.settings import InstructionsSettings

__all__ = [
    "InstructionsFile",
    "InstructionsHook",
    "InstructionsReadEvent",
    "InstructionsSettings",
    "find_agents_md",
    "load_agents_md",
    "prepend_instructions",
]

_MODULES = {
    "events": ("InstructionsReadEvent",),
    "files": ("InstructionsFile", "find_agents_md", "load_agents_md", "prepend_instructions"),
    "hook": ("InstructionsHook",),
    "settings": ("InstructionsSettings",),
}

__getattr__, __dir__ = exports(
    __name__, {f"locus_plugin_instructions.{module}": names for module, names in _MODULES.items()}
)
