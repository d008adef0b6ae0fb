"""What the tests look at: a viewer of the shop's threads, in a file and in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from plugins.cli.tests.conftest import environment, here, site, tools, warm_server

from locus.journal import JournalStore, MemoryStore
from locus_plugin_sqlite import SqliteStore

from .servers import Served, serving
from .shop import fill

__all__ = ["environment", "here", "site", "tools", "warm_server"]


def _serving(kind: str, folder: Path) -> Iterator[Served]:
    def make() -> JournalStore:
        return SqliteStore(folder / "shop.db") if kind == "file" else MemoryStore()

    with serving(make) as found:
        found.run(lambda: fill(found.viewer.store))
        yield found


@pytest.fixture(params=["file", "memory"], scope="module")
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A viewer of the shop's runs, without their agent, for tests that change nothing."""
    yield from _serving(request.param, tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="module")
def client(shop: Served) -> Iterator[httpx.Client]:
    """A browser that was given its token."""
    with shop.client() as made:
        yield made


@pytest.fixture(params=["file", "memory"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    """The same for one test."""
    yield from _serving(request.param, tmp_path)


@pytest.fixture
def browser(served: Served) -> Iterator[httpx.Client]:
    """A browser that was given the token of the server of this test."""
    with served.client() as made:
        yield made
