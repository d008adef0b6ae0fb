"""Reflection for Locus agents: a judge looks at the last step, says how sure it is, and the next Think reads it.

Its names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_reflexion.events import ReflectionFailedEvent
    from locus_plugin_reflexion.hooks import ReflexionHook
    from locus_plugin_reflexion.reflection import Reflection, ReflexionReport, StepVerdict
    from locus_plugin_reflexion.reflector import Reflector
    from locus_plugin_reflexion.settings import ReflexionSettings

__all__ = [
    "Reflection",
    "ReflectionFailedEvent",
    "Reflector",
    "ReflexionHook",
    "ReflexionReport",
    "ReflexionSettings",
    "StepVerdict",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "locus_plugin_reflexion.events": ("ReflectionFailedEvent",),
        "locus_plugin_reflexion.hooks": ("ReflexionHook",),
        "locus_plugin_reflexion.reflection": ("Reflection", "ReflexionReport", "StepVerdict"),
        "locus_plugin_reflexion.reflector": ("Reflector",),
        "locus_plugin_reflexion.settings": ("ReflexionSettings",),
    },
)
