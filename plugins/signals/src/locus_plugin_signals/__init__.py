"""Signals: say from anywhere inside of a run what happens, as an event.

Names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_signals.events import SignalRefusedEvent
    from locus_plugin_signals.hook import SignalsHook
    from locus_plugin_signals.sender import SIGNALS, emit, emit_sync

__all__ = ["SIGNALS", "SignalRefusedEvent", "SignalsHook", "emit", "emit_sync"]

_MODULES = {
    "events": ("SignalRefusedEvent",),
    "hook": ("SignalsHook",),
    "sender": ("SIGNALS", "emit", "emit_sync"),
}

__getattr__, __dir__ = exports(
    __name__, {f"locus_plugin_signals.{module}": names for module, names in _MODULES.items()}
)
