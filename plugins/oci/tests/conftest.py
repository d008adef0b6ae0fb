"""One key pair for all tests, and a bucket for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .kit import Home, at_home
from .verification import Keys


@pytest.fixture(scope="session")
def keys() -> Keys:
    """A key pair."""
    return Keys.recorded()


@pytest.fixture
def home(keys: Keys, tmp_path: Path) -> Iterator[Home]:
    """A bucket."""
    with at_home(keys, tmp_path) as made:
        yield made
