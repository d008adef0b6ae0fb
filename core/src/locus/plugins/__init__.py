"""Plugins: their manifests, how they are found, chosen and configured, and the import paths that they fill."""

from typing import TYPE_CHECKING

from locus.core.lazy import exports

if TYPE_CHECKING:
    from locus.plugins.activation import Activation as Activation
    from locus.plugins.activation import PluginRequest as PluginRequest
    from locus.plugins.activation import activate as activate
    from locus.plugins.discovery import GROUP as GROUP
    from locus.plugins.discovery import Catalogue as Catalogue
    from locus.plugins.discovery import PluginSource as PluginSource
    from locus.plugins.manifest import load as load
    from locus.plugins.providers import plugin_settings as plugin_settings
    from locus.plugins.providers import provide as provide
    from locus.plugins.providers import scheme_of as scheme_of
    from locus.plugins.report import HookFailure as HookFailure
    from locus.plugins.report import PluginReport as PluginReport
    from locus.plugins.report import RunReport as RunReport
    from locus.plugins.report import Status as Status
    from locus.plugins.report import run_report as run_report
    from locus.plugins.secret import Secret as Secret
    from locus.plugins.secret import redact as redact
    from locus.plugins.secret import scrub as scrub
    from locus.plugins.secret import show_values as show_values
    from locus.plugins.settings import Layer as Layer
    from locus.plugins.settings import structure as structure

_MODULES = {
    "locus.plugins.activation": ("Activation", "PluginRequest", "activate"),
    "locus.plugins.discovery": ("Catalogue", "GROUP", "PluginSource"),
    "locus.plugins.manifest": ("load",),
    "locus.plugins.providers": ("plugin_settings", "provide", "scheme_of"),
    "locus.plugins.report": ("HookFailure", "PluginReport", "RunReport", "Status", "run_report"),
    "locus.plugins.secret": ("Secret", "redact", "scrub", "show_values"),
    "locus.plugins.settings": ("Layer", "structure"),
}

__all__ = [name for names in _MODULES.values() for name in names]
__getattr__, __dir__ = exports(__name__, _MODULES)
