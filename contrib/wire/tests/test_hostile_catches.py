"""A provider that breaks a promise of the hostile contract is caught by it."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from typing import Any, ClassVar

import anyio
import pytest

from locus.core.errors import ModelError
from locus.models.protocol import ModelRequest, ModelResponse, OnChunk
from locus_testkit.hostile import TABLE, HostileServerContract, LocalServer
from locus_wire.pools import Session

from .toy import GOOD, Toy

pytestmark = pytest.mark.anyio


class RaisesWhatItGets(Toy):
    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        try:
            return await super().complete(request, on_chunk)
        except ModelError as e:
            raise OSError("something") from e


class SaysNoMoreThanThat(Toy):
    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        try:
            return await super().complete(request, on_chunk)
        except ModelError as e:
            raise ModelError(str(e), provider="toy", status=e.status) from None


class ShowsTheKey(Toy):
    def __init__(self, base_url: str, key: str = "") -> None:
        super().__init__(base_url, key)
        self.key = key

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        try:
            return await super().complete(request, on_chunk)
        except ModelError as e:
            e.add_note(f"sent with {self.key}")
            raise


class TriesOnceMore(Toy):
    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        try:
            return await super().complete(request, on_chunk)
        except ModelError:
            return await super().complete(request, on_chunk)


class KeepsConnections(Toy):
    kept: ClassVar[list[Session]] = []

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        self.kept.append(await self.session().__aenter__())
        return await super().complete(request, on_chunk)


class WaitsForEver(Toy):
    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        try:
            return await super().complete(request, on_chunk)
        except ModelError:
            await anyio.sleep_forever()
            raise


@pytest.fixture(autouse=True)
async def let_go() -> AsyncIterator[None]:
    yield
    while KeepsConnections.kept:
        await KeepsConnections.kept.pop().__aexit__(None, None, None)


class Contract(HostileServerContract):
    good = GOOD
    patience = 0.3

    def __init__(self, kind: Callable[[str, str], Toy]) -> None:
        self.kind = kind

    def make_model(self, base_url: str, key: str) -> Toy:
        return self.kind(base_url, key)


FIRST = next(case for case in TABLE if case.name == "status 503")


@pytest.mark.parametrize(
    "kind", [RaisesWhatItGets, SaysNoMoreThanThat, ShowsTheKey, TriesOnceMore, KeepsConnections, WaitsForEver]
)
async def test_a_broken_provider_is_caught(kind: type[Toy], monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalServer() as server:
        monkeypatch.setattr(server, "wait_until_idle", lambda patience=0.2: LocalServer.wait_until_idle(server, 0.2))
        with pytest.raises((AssertionError, OSError, TimeoutError, pytest.fail.Exception)):
            await Contract(kind).test_every_failure_is_one_typed_error(server, FIRST, listening=False)


@pytest.mark.parametrize("listening", [False, True])
async def test_an_honest_provider_is_not(listening: bool) -> None:
    with LocalServer() as server:
        await Contract(Toy).test_every_failure_is_one_typed_error(server, FIRST, listening=listening)


async def test_a_provider_that_keeps_its_connections_is_caught_after_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalServer() as server:
        monkeypatch.setattr(server, "wait_until_idle", lambda patience=0.2: LocalServer.wait_until_idle(server, 0.2))
        with pytest.raises(AssertionError, match="left its connection open"):
            await Contract(KeepsConnections).test_run_keeps_one_connection(server)


async def test_the_contract_is_walked_row_by_row() -> None:
    marks: list[Any] = HostileServerContract.test_every_failure_is_one_typed_error.pytestmark  # type: ignore[attr-defined]
    assert any(len(mark.args[1]) > 70 for mark in marks if mark.name == "parametrize")
    assert inspect.iscoroutinefunction(HostileServerContract.test_every_failure_is_one_typed_error)
