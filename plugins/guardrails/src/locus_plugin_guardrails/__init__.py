"""Guardrails: what may enter and leave a run, and what of it may be recorded.

Its names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_guardrails.defaults import DEFAULT_RULES
    from locus_plugin_guardrails.detectors import DETECTORS
    from locus_plugin_guardrails.events import GuardrailEvent
    from locus_plugin_guardrails.hook import GuardrailsHook
    from locus_plugin_guardrails.report import GuardrailsReport, RuleCount
    from locus_plugin_guardrails.rule import Rule
    from locus_plugin_guardrails.settings import GuardrailsSettings, Topics

__all__ = [
    "DEFAULT_RULES",
    "DETECTORS",
    "GuardrailEvent",
    "GuardrailsHook",
    "GuardrailsReport",
    "GuardrailsSettings",
    "Rule",
    "RuleCount",
    "Topics",
]

_MODULES = {
    "defaults": ("DEFAULT_RULES",),
    "detectors": ("DETECTORS",),
    "events": ("GuardrailEvent",),
    "hook": ("GuardrailsHook",),
    "report": ("GuardrailsReport", "RuleCount"),
    "rule": ("Rule",),
    "settings": ("GuardrailsSettings", "Topics"),
}

__getattr__, __dir__ = exports(
    __name__, {f"locus_plugin_guardrails.{module}": names for module, names in _MODULES.items()}
)
