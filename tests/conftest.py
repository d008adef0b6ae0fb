"""What proves laws, and on which event loops the tests of the kernel run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

#: Folders whose tests prove laws. A law holds or does not, whatever the Python: one environment proves them.
_PROOFS = tuple(Path(__file__).parent / name for name in ("property", "durability"))

#: The one event loop that is wanted, or ``""``: the newest and the oldest Python take one each, that between them both.
_LOOP = os.environ.get("LOCUS_EVENT_LOOP", "")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what proves laws, and leave out what another Python tries."""
    for item in items:
        if any(item.path.is_relative_to(folder) for folder in _PROOFS):
            item.add_marker(pytest.mark.proof)
    if _LOOP:
        left_out = [item for item in items if _loop_of(item) not in ("", _LOOP)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if _loop_of(item) in ("", _LOOP)]


def _loop_of(item: pytest.Item) -> str:
    """The event loop that a test is for, ``""`` where it is for none or chooses its own."""
    called = getattr(item, "callspec", None)
    loop = called.params.get("anyio_backend", "") if called is not None else ""
    return loop if isinstance(loop, str) else ""
