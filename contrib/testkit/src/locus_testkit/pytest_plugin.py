"""What pytest loads under the name `locus_testkit`: fixtures, markers and options, nothing that acts unasked.

Contracts ask: their tests of features that a class does not declare are deselected here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import importlib_metadata
import pytest

from locus.journal import MemoryStore
from locus_testkit.clock import FakeClock
from locus_testkit.contracts.base import LEFT_OUT, Contract, LeftOut
from locus_testkit.contracts.features import missing_features
from locus_testkit.discovery import Discovery, TemporaryPlugins
from locus_testkit.scripted_model import ScriptedModel, Turn

#: Loaded with this one.
pytest_plugins = ("locus_testkit.pytest_network", "locus_testkit.pytest_cassettes")

__all__ = ["fake_clock", "memory_store", "no_discovery", "plugin_catalogue", "scripted"]

_BACKENDS = ("asyncio", "trio")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker, and that undeclared features are looked after."""
    config.stash[LEFT_OUT] = {}
    config.addinivalue_line(
        "markers",
        "both_backends: run this test, which is marked anyio, on asyncio and on trio, whatever the project's "
        "own `anyio_backend` fixture says",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests marked ``both_backends`` on both."""
    marked = metafunc.definition.get_closest_marker("both_backends") is not None
    if marked and "anyio_backend" in metafunc.fixturenames:
        metafunc.parametrize("anyio_backend", _BACKENDS)


# Last, so that the summary speaks of what was selected and not of the rest.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the promises of features that a contract's class does not declare."""
    missing = {item: _missing_features(item) for item in items}
    left = [item for item in items if missing[item]]
    if not left:
        return
    items[:] = [item for item in items if not missing[item]]
    config.hook.pytest_deselected(items=left)
    found = config.stash[LEFT_OUT]
    for item in left:
        owner = item.getparent(pytest.Class)
        where = item.nodeid if owner is None else owner.nodeid
        count, names = found.get(where, (0, frozenset()))
        found[where] = (count + 1, names | set(missing[item]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """One line a class: what it does not declare."""
    for line in _lines(config.stash[LEFT_OUT]):
        terminalreporter.write_line(line)


def _missing_features(item: pytest.Item) -> tuple[str, ...]:
    if not isinstance(item, pytest.Function) or item.cls is None or not issubclass(item.cls, Contract):
        return ()
    return missing_features(item.cls, item.originalname)


def _lines(left_out: LeftOut) -> Iterator[str]:
    for where, (count, names) in left_out.items():
        tests = "1 test" if count == 1 else f"{count} tests"
        yield f"{where} does not declare {', '.join(sorted(names))}: {tests} left out"


@pytest.fixture
def scripted() -> Iterator[Callable[..., ScriptedModel]]:
    """Makes scripted models, ``scripted("Hello.")``, and fails the test whose script ran out.

    A run reports a script that ran out as a model error, which a test may overlook; the end of the test will
    not.
    """
    made: list[ScriptedModel] = []

    def make(*turns: Turn, **options: Any) -> ScriptedModel:
        model = ScriptedModel(*turns, **options)
        made.append(model)
        return model

    yield make
    for model in made:
        if model.overrun is not None:
            raise model.overrun


@pytest.fixture
def memory_store() -> MemoryStore:
    """An empty journal store in memory."""
    return MemoryStore()


@pytest.fixture
def fake_clock() -> FakeClock:
    """A clock that moves only when it is advanced: ``Agent(clock=fake_clock)``."""
    return FakeClock()


@pytest.fixture
def no_discovery(monkeypatch: pytest.MonkeyPatch) -> Discovery:
    """Refuses to look for installed plugins; ``with no_discovery.allow():`` is how a test asks for it."""
    guard = Discovery(importlib_metadata.entry_points)
    monkeypatch.setattr(importlib_metadata, "entry_points", guard)
    return guard


@pytest.fixture
def plugin_catalogue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_discovery: Discovery
) -> Iterator[TemporaryPlugins]:
    """Plugins that exist for this test: ``plugin_catalogue.write("audit", source, hooks=["Audit"])``."""
    folder = tmp_path / "plugins"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    plugins = TemporaryPlugins(folder)
    yield plugins
    plugins.forget()
