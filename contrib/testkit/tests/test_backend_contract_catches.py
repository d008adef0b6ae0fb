"""Each promise of the contracts for files fails for an implementation that breaks it, and for no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .backends import BACKEND_PROMISES, STORE_PROMISES, Backend, OpenedBackend, OpenedStore, Store
from .broken_backends import BROKEN_BACKENDS, BROKEN_STORES

pytestmark = pytest.mark.anyio

_CASES = [(kind, name) for kind, names in BROKEN_BACKENDS.items() for name in names]
_STORE_CASES = [(kind, name, False) for kind, names in BROKEN_STORES.items() for name in names]
_STORE_CASES.append((Store, "test_another_handle_finds_the_same", True))


@pytest.fixture
def anyio_backend() -> str:
    """One is enough: what is proved is the contract."""
    return "asyncio"


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("_backend_listing", "_backend_grep"):
        monkeypatch.setattr(f"locus_testkit.contracts.{module}.PATIENCE", 0.5)


async def is_caught(opened: OpenedBackend | OpenedStore, promise: str) -> bool:
    """Whether a promise fails; a mistake in the broken class itself would be another failure."""
    try:
        await opened.obey(promise)
    except BaseException as failure:  # noqa: BLE001  # pytest.fail raises a BaseException
        return not isinstance(failure, AttributeError | NameError | TypeError)
    return False


@pytest.mark.parametrize(("kind", "promise"), _CASES)
async def test_a_backend_that_breaks_a_promise_is_caught(kind: Callable[[Store], Any], promise: str) -> None:
    assert await is_caught(OpenedBackend(kind), promise)


@pytest.mark.parametrize("promise", BACKEND_PROMISES)
async def test_a_backend_that_keeps_a_promise_is_not(promise: str) -> None:
    await OpenedBackend(Backend).obey(promise)


@pytest.mark.parametrize(("kind", "promise", "alone"), _STORE_CASES)
async def test_a_store_that_breaks_a_promise_is_caught(kind: Callable[[], Any], promise: str, alone: bool) -> None:
    assert await is_caught(OpenedStore(kind, alone=alone), promise)


@pytest.mark.parametrize("promise", STORE_PROMISES)
async def test_a_store_that_keeps_a_promise_is_not(promise: str) -> None:
    await OpenedStore(Store).obey(promise)


def test_every_promise_has_an_implementation_that_breaks_it() -> None:
    assert sorted({name for _, name in _CASES}) == BACKEND_PROMISES
    assert sorted({name for _, name, _ in _STORE_CASES}) == STORE_PROMISES
