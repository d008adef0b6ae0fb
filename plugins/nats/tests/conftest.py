"""One server for all tests of the distribution; each test has streams of its own."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import frozen
from plugins.cli.tests.conftest import Locus, environment, run_in_process, site, tools, warm_server
from plugins.worker.tests.conftest import here, shop, start, threads
from plugins.worker.tests.processes import LEASE, Process

from locus_plugin_nats import DevServer, NatsSettings, NatsStore
from locus_testkit.contracts._law_2_commit import CommitLaws
from locus_testkit.contracts._law_4_effects import EffectLaws
from locus_testkit.contracts._law_5_models import ModelCallLaws
from locus_testkit.contracts._law_7_steps import StepLaws
from locus_testkit.contracts._law_9_bounds import BoundLaws
from locus_testkit.contracts._posts import PostLaws

__all__ = ["environment", "here", "shop", "site", "start", "threads", "tools", "warm_server"]

_numbers = itertools.count(1)

#: What depends on how a task of trio waits for the store's thread. Under trio the rest of the contract is a proof,
#: because it is one store, whichever loop asks it.
_WAITS = {name for laws in (CommitLaws, PostLaws) for name in vars(laws)}

#: What lets a run die in each of its writes, dozens of times a law.
_DIES = {name for laws in (EffectLaws, ModelCallLaws, StepLaws, BoundLaws) for name in vars(laws)}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what the default run leaves out."""
    for item in items:
        name, _, case = item.name.partition("[")
        if "TestNatsStore" in item.nodeid and (name in _DIES or (case.startswith("trio") and name not in _WAITS)):
            item.add_marker(pytest.mark.proof)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    """A server with JetStream on a free port."""
    with DevServer(tmp_path_factory.mktemp("nats")) as started:
        yield started


@pytest.fixture
def prefix() -> str:
    """Streams that no other test uses."""
    return f"t{next(_numbers)}"


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[DevServer]:
    """A server of the test's own, which it may kill."""
    with DevServer(tmp_path / "server") as started:
        yield started


@frozen
class ServerPlace:
    """Runs on a server of the test's own, which it may kill."""

    server: DevServer
    prefix: str

    @property
    def checkpointer(self) -> str:
        """As the command line has it."""
        return self.server.url

    @property
    def settings(self) -> str:
        """Of ``locus.toml``."""
        return f'[plugins.nats]\nlease = {LEASE}\nprefix = "{self.prefix}"\npatience = 30.0\n'

    def open_store(self) -> NatsStore:
        """The store."""
        return NatsStore(self.server.url, NatsSettings(prefix=self.prefix, lease=LEASE, patience=30.0))

    def freeze(self, process: Process) -> None:
        """Stop it: it holds nothing that others wait for."""
        process.signal(signal.SIGSTOP)


@pytest.fixture
def place(own_server: DevServer, prefix: str) -> ServerPlace:
    """Where runs are kept: on a server, in place of a file."""
    return ServerPlace(own_server, prefix)


@pytest.fixture
def locus(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Locus:
    """Runs a command line in this process, with the plugins that it needs here."""
    monkeypatch.syspath_prepend(here)
    return run_in_process(here, capsys, monkeypatch, {"cli", "nats", "sqlite", "timetravel", "worker", "workflow"})
