"""One server for all tests here, and a schema of its own for each."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from attrs import frozen
from plugins.cli.tests.conftest import Locus, environment, run_in_process, site, tools, warm_server
from plugins.worker.tests.conftest import here, shop, start, threads
from plugins.worker.tests.processes import LEASE, Process

from locus_plugin_postgres import PostgresStore

from .server import Server

__all__ = ["environment", "here", "shop", "site", "start", "threads", "tools", "warm_server"]

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


@frozen
class ServerPlace:
    """Runs on a server, in a schema of the test's own."""

    server: Server
    schema: str

    @property
    def checkpointer(self) -> str:
        """As the command line has it."""
        return self.server.url()

    @property
    def settings(self) -> str:
        """Of ``locus.toml``."""
        return f'[plugins.postgres]\nlease = {LEASE}\nschema = "{self.schema}"\npatience = 30.0\n'

    def open_store(self) -> PostgresStore:
        """The store."""
        return PostgresStore(self.server.url(), schema=self.schema, lease=LEASE, patience=30.0)

    def freeze(self, process: Process) -> None:
        """Stop it: what it has locked, the server unlocks when the statement is over."""
        process.signal(signal.SIGSTOP)


@pytest.fixture
def place(server: Server, schema: str) -> ServerPlace:
    """Where runs are kept: on the server, in place of a file."""
    return ServerPlace(server, schema)


@pytest.fixture
def locus(
    here: Path, shop: Path, place: ServerPlace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Locus:
    """Runs a command line in this process, with the plugins that it needs here."""
    monkeypatch.syspath_prepend(here)
    return run_in_process(here, capsys, monkeypatch, {"cli", "postgres", "worker", "workflow"})
