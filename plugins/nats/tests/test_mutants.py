"""A store that is broken in one place fails the law that is about it: the laws are no decoration here either."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from locus.journal import JournalStore
from locus_plugin_nats import DevServer, NatsStore, claims, session
from locus_plugin_nats.leases import Lease
from locus_plugin_nats.session import Held, Session

from .test_contract import TestNatsStore as Laws

pytestmark = [pytest.mark.anyio, pytest.mark.proof]


def without_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server compares nothing."""
    monkeypatch.setattr(session, "_FENCE", "X-Nothing")
    monkeypatch.setattr(session, "_FENCE_SUBJECT", "X-Nothing-Either")


def lease_never_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every worker is taken for dead."""

    async def is_alive(lease: Lease, worker: str, token: str) -> bool:
        return False

    monkeypatch.setattr(Lease, "is_alive", is_alive)


def lease_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker is ever taken for dead."""

    async def is_alive(lease: Lease, worker: str, token: str) -> bool:
        return bool(worker)

    monkeypatch.setattr(Lease, "is_alive", is_alive)


def claim_forgets_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim does not copy when the run wants to go on."""
    whole = claims.free_head

    def forget(*arguments: Any) -> Any:
        return evolve(whole(*arguments), not_before=None)

    monkeypatch.setattr(claims, "free_head", forget)


def release_forgets_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release frees the thread and leaves its time for another write."""
    whole = claims.release

    async def forget(own: Session, made: Any, not_before: datetime | None) -> None:
        await whole(own, made, None)

    monkeypatch.setattr(claims, "release", forget)


def acknowledged_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """An append is reported before it is stored, and never is."""

    async def forget(own: Session, held: Held, kind: str, head: Any, body: bytes = b"") -> bool:
        held.head = head
        return True

    monkeypatch.setattr(Session, "advance", forget)


def snapshot_of_the_wrong_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pointer of a snapshot names the entry after it."""
    whole = Session.advance

    async def shift(own: Session, held: Held, kind: str, head: Any, body: bytes = b"") -> bool:
        if kind == "s" and head.snapshot is not None:
            at, seq, name, chunks = head.snapshot
            head = evolve(head, snapshot=(at + 1, seq, name, chunks))
        return await whole(own, held, kind, head, body)

    monkeypatch.setattr(Session, "advance", shift)


CASES: list[tuple[Callable[[pytest.MonkeyPatch], None], str]] = [
    (without_fence, "test_law_3_silent_worker_loses_its_thread_to_the_next"),
    (without_fence, "test_law_3_run_that_lost_its_thread_is_stopped"),
    (lease_never_held, "test_law_3_held_thread_is_busy_and_names_its_holder"),
    (lease_never_held, "test_law_3_renewed_lease_keeps_others_out"),
    (lease_for_ever, "test_law_3_silent_worker_loses_its_thread_to_the_next"),
    (claim_forgets_its_time, "test_law_10_thread_of_a_dead_worker_is_offered_again"),
    (release_forgets_its_time, "test_law_8_thread_is_ready_when_its_time_has_come"),
    (acknowledged_first, "test_law_10_acknowledged_entries_are_there_at_once"),
    (snapshot_of_the_wrong_place, "test_law_1_snapshot_is_a_cache_of_the_fold"),
]


@asynccontextmanager
async def opener(laws: Laws, folder: Path) -> AsyncIterator[Callable[[], Awaitable[JournalStore]]]:
    """What the fixture of the same name does."""
    opened: list[NatsStore] = []

    async def one_more() -> JournalStore:
        opened.append(laws.make_store(folder))
        return opened[-1]

    yield one_more
    for store in opened:
        await store.aclose()


@pytest.mark.parametrize(("break_it", "law"), CASES, ids=[f"{each.__name__}-{law}" for each, law in CASES])
async def test_broken_store_fails_its_law(
    break_it: Callable[[pytest.MonkeyPatch], None],
    law: str,
    server: DevServer,
    prefix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The law holds for the whole store, and not for the broken one."""
    laws = Laws()
    test = getattr(laws, law)

    async def keep_law() -> None:
        async with opener(laws, tmp_path) as open_store:
            given = {"open_store": open_store, "store": None if "store" not in named else await open_store()}
            await test(**{name: given[name] for name in named})

    named = [name for name in inspect.signature(test).parameters if name != "self"]
    laws.begin(server.url, prefix)
    await keep_law()
    break_it(monkeypatch)
    laws.begin(server.url, f"{prefix}broken")
    try:
        await keep_law()
    except BaseException:  # noqa: BLE001 - a failure of pytest, an assertion, or an error of the store
        return
    pytest.fail(f"{law} holds for a store that is broken: {break_it.__doc__}")
