"""The contract of search engines holds for one that keeps it, and each promise is broken by some engine."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from locus_testkit import SearchEngineContract
from locus_testkit.hostile import LocalServer

from .search_engines import BROKEN, Complete, Failed, contract_of

PROMISES = sorted(
    name
    for name, each in vars(SearchEngineContract).items()
    if name.startswith("test_") and inspect.iscoroutinefunction(each)
)


class TestComplete(SearchEngineContract):
    error = Failed

    def make_engine(self, base_url: str) -> Any:
        return Complete(base_url)

    def make_hasty_engine(self, base_url: str) -> Any:
        return Complete(base_url, 0.3)

    answer = type(contract_of(Complete)).answer


def _arguments(name: str) -> list[dict[str, Any]]:
    """The parameters that a promise is made for."""
    marks = [m for m in getattr(getattr(SearchEngineContract, name), "pytestmark", ()) if m.name == "parametrize"]
    return [{marks[0].args[0]: value} for value in marks[0].args[1]] if marks else [{}]


@pytest.mark.anyio
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in BROKEN.items() for name in names])
async def test_a_promise_fails_for_an_engine_that_breaks_it(kind: type[Complete], name: str) -> None:
    failures = 0
    for arguments in _arguments(name):
        with LocalServer() as service:
            try:
                await getattr(contract_of(kind), name)(service, **arguments)
            except (AssertionError, Failed, TimeoutError, pytest.fail.Exception, ValueError, ExceptionGroup):
                failures += 1
    assert failures


def test_every_promise_has_an_engine_that_breaks_it() -> None:
    assert sorted({name for names in BROKEN.values() for name in names}) == PROMISES
