"""Steering: a second model votes on each tool call before its body runs.

Its names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_steering.events import SteeringEvent
    from locus_plugin_steering.hook import SteeringHook
    from locus_plugin_steering.report import SteeringReport
    from locus_plugin_steering.settings import DEFAULT_POLICY, SteeringSettings
    from locus_plugin_steering.vote import BadVote, Vote, read_vote

__all__ = [
    "DEFAULT_POLICY",
    "BadVote",
    "SteeringEvent",
    "SteeringHook",
    "SteeringReport",
    "SteeringSettings",
    "Vote",
    "read_vote",
]

_MODULES = {
    "events": ("SteeringEvent",),
    "hook": ("SteeringHook",),
    "report": ("SteeringReport",),
    "settings": ("DEFAULT_POLICY", "SteeringSettings"),
    "vote": ("BadVote", "Vote", "read_vote"),
}

__getattr__, __dir__ = exports(
    __name__, {f"locus_plugin_steering.{module}": names for module, names in _MODULES.items()}
)
