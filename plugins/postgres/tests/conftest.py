"""One server for all tests here, and a schema of its own for each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from .server import Server

_schemas = count(1)

_CONTRACT = Path(__file__).parent / "test_contract.py"

#: Laws whose tests run agents: these are proved at length, with the other proofs. What the store itself promises, a
#: default run asks on one backend.
_RUNS = re.compile(r"test_law_(4|5|7|8|9|10)_|continues_from_any_snapshot|survives_a_crash")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what takes long as a proof."""
    for item in items:
        if item.path == _CONTRACT and (_RUNS.search(item.name) or item.name.endswith("[trio]")):
            item.add_marker(pytest.mark.proof)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A server of PostgreSQL that runs."""
    made = Server()
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture
def schema() -> str:
    """A schema that no other test uses."""
    return f"test_{next(_schemas)}"


@pytest.fixture
def schema_of_test(schema: str) -> str:
    """The same, where that name is taken."""
    return schema
