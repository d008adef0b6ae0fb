"""How hard the property tests try.

`LOCUS_PROOFS=quick` (the default), `thorough` or `search`. The first two try the same examples on
every machine, so that a run repeats; `search` looks for new ones and remembers what it finds.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_SLOW = (HealthCheck.too_slow,)  # two cores shared by several environments: slowness says nothing

settings.register_profile("quick", max_examples=40, deadline=None, derandomize=True, suppress_health_check=_SLOW)
settings.register_profile("thorough", max_examples=200, deadline=None, derandomize=True, suppress_health_check=_SLOW)
settings.register_profile("search", max_examples=5000, deadline=None, suppress_health_check=_SLOW)
#: For the examples of documents: that they run is what is shown there, the laws have tests of their own.
settings.register_profile("document", max_examples=5, deadline=None, derandomize=True, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("LOCUS_PROOFS", "quick"))


#: Folders whose tests prove laws. A law holds or does not, whatever the Python: one environment proves them.
_PROOFS = tuple(Path(__file__).parent / name for name in ("property", "durability"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what proves laws."""
    for item in items:
        if any(item.path.is_relative_to(folder) for folder in _PROOFS):
            item.add_marker(pytest.mark.proof)
