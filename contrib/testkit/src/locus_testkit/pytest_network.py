"""`NetworkGuard` in pytest: for all tests, by a setting of the ini file, or for one, by the fixture."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from locus_testkit.network import NetworkGuard

__all__ = ["no_network"]

_OPTION = "locus_network"
_CHOICES = ("any", "loopback")
_GUARD = pytest.StashKey[NetworkGuard | None]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the ini option."""
    parser.addini(_OPTION, "how far tests may reach: 'any' (everywhere) or 'loopback' (this machine)", default="any")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to guard, also what is imported while tests are collected."""
    config.addinivalue_line(
        "markers",
        "network(*hosts): this test may reach the hosts, or everything, where `locus_network = loopback` holds",
    )
    chosen = config.getini(_OPTION)
    if chosen not in _CHOICES:
        raise pytest.UsageError(f"{_OPTION} must be {' or '.join(map(repr, _CHOICES))}, got {chosen!r}")
    guard = NetworkGuard() if chosen == "loopback" else None
    config.stash[_GUARD] = guard
    if guard is not None:
        guard.__enter__()
        config.add_cleanup(lambda: guard.__exit__())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Let the tests through that are marked ``network``, with their fixtures."""
    guard, mark = item.config.stash[_GUARD], item.get_closest_marker("network")
    if guard is None or mark is None:
        return (yield)
    with guard.allow(*mark.args):
        return (yield)


def _fail_if_refused(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a phase of a test in which something was refused, also where the program has swallowed the error."""
    guard = item.config.stash[_GUARD]
    before = 0 if guard is None else len(guard.refused)
    result = yield
    if guard is not None and len(guard.refused) > before:
        raise guard.refused[before]
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a test whose fixtures were refused on their way in."""
    return (yield from _fail_if_refused(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a test whose program was refused."""
    return (yield from _fail_if_refused(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a test whose fixtures were refused on their way out."""
    return (yield from _fail_if_refused(item))


@pytest.fixture
def no_network() -> Iterator[NetworkGuard]:
    """Refuses what goes beyond loopback, and fails the test that tried; ``with no_network.allow("host"):``."""
    with NetworkGuard() as guard:
        yield guard
    if guard.refused:
        raise guard.refused[0]
