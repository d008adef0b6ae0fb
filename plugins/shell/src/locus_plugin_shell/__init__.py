"""Shell: the tool ``execute`` runs a command in a sandbox of Linux namespaces.

Its names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_shell.hook import ShellHook
    from locus_plugin_shell.process import CommandResult
    from locus_plugin_shell.sandbox import Sandbox
    from locus_plugin_shell.settings import ShellSettings

__all__ = ["CommandResult", "Sandbox", "ShellHook", "ShellSettings"]

_MODULES = {
    "hook": ("ShellHook",),
    "process": ("CommandResult",),
    "sandbox": ("Sandbox",),
    "settings": ("ShellSettings",),
}

__getattr__, __dir__ = exports(__name__, {f"locus_plugin_shell.{module}": names for module, names in _MODULES.items()})
