"""Each test begins with nothing written."""

from __future__ import annotations

import pytest

from .kit import written


@pytest.fixture(autouse=True)
def _nothing_is_written() -> None:
    written.clear()
