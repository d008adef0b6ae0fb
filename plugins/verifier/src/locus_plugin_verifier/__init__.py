"""A verifier for Locus agents: a success that is claimed is checked before it is accepted.

Its names are imported on first use: the manifest, which every listing of plugins reads, lies in this package too.
"""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_plugin_verifier.events import VerifierEvent
    from locus_plugin_verifier.hook import VerifierHook
    from locus_plugin_verifier.judge import BadVerdict
    from locus_plugin_verifier.outcome import Outcome, VerifierReport
    from locus_plugin_verifier.settings import VerifierSettings

__all__ = ["BadVerdict", "Outcome", "VerifierEvent", "VerifierHook", "VerifierReport", "VerifierSettings"]

__getattr__, __dir__ = exports(
    __name__,
    {
        "locus_plugin_verifier.events": ("VerifierEvent",),
        "locus_plugin_verifier.hook": ("VerifierHook",),
        "locus_plugin_verifier.judge": ("BadVerdict",),
        "locus_plugin_verifier.outcome": ("Outcome", "VerifierReport"),
        "locus_plugin_verifier.settings": ("VerifierSettings",),
    },
)
