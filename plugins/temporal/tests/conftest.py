"""One server for all tests of the distribution; each test has a task queue of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from locus_plugin_temporal import DevServer

_numbers = itertools.count(1)


@pytest.fixture
def anyio_backend() -> str:
    """Temporal's library is for asyncio alone; so are workflows and activities, and agents in them."""
    return "asyncio"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    """A development server on a free port."""
    with DevServer(tmp_path_factory.mktemp("temporal")) as started:
        yield started


@pytest.fixture
def queue() -> str:
    """A task queue that no other test uses."""
    return f"q{next(_numbers)}"
