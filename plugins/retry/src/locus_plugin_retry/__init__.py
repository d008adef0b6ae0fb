"""Retries: transient model errors, fallback models and circuit breakers.

Its names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_retry.breaker import Breaker
    from locus_plugin_retry.events import CircuitBreakerEvent, ModelFallbackEvent, ModelRetryEvent
    from locus_plugin_retry.hook import ModelRetryHook
    from locus_plugin_retry.report import RetryReport
    from locus_plugin_retry.settings import BreakerSettings, RetrySettings

__all__ = [
    "Breaker",
    "BreakerSettings",
    "CircuitBreakerEvent",
    "ModelFallbackEvent",
    "ModelRetryEvent",
    "ModelRetryHook",
    "RetryReport",
    "RetrySettings",
]

_MODULES = {
    "breaker": ("Breaker",),
    "events": ("CircuitBreakerEvent", "ModelFallbackEvent", "ModelRetryEvent"),
    "hook": ("ModelRetryHook",),
    "report": ("RetryReport",),
    "settings": ("BreakerSettings", "RetrySettings"),
}

__getattr__, __dir__ = exports(__name__, {f"locus_plugin_retry.{module}": names for module, names in _MODULES.items()})
