"""One key pair for all tests."""

from __future__ import annotations

import pytest

from .verification import Keys


@pytest.fixture(scope="session")
def keys() -> Keys:
    """A key pair."""
    return Keys.recorded()
