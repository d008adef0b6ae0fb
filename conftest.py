"""How hard the tests of all distributions try what Hypothesis generates, and that Ctrl-C reaches their processes.

`LOCUS_PROOFS=quick` (the default), `thorough` or `search`. The first two try the same examples on
every machine, so that a run repeats; `search` looks for new ones and remembers what it finds.
"""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

_SLOW = (HealthCheck.too_slow,)  # two cores shared by several environments: slowness says nothing

settings.register_profile("quick", max_examples=40, deadline=None, derandomize=True, suppress_health_check=_SLOW)
settings.register_profile("thorough", max_examples=200, deadline=None, derandomize=True, suppress_health_check=_SLOW)
settings.register_profile("search", max_examples=5000, deadline=None, suppress_health_check=_SLOW)
#: For the examples of documents: that they run is what is shown there, the laws have tests of their own.
settings.register_profile("document", max_examples=5, deadline=None, derandomize=True, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("LOCUS_PROOFS", "quick"))

# A shell has Ctrl-C ignored in what it runs in the background, and children inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
