"""What is broken on purpose fails a law, which is named here."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from _pytest.outcomes import Failed

from locus.core.errors import LocusError
from locus.journal import JournalStore
from locus_plugin_postgres import PostgresStore, claims, entries, queue, schema, session
from locus_testkit import JournalStoreContract

from . import test_contract
from .server import Server

pytestmark = [pytest.mark.anyio, pytest.mark.proof]

#: Name -> where, what stands there, what is put there, and the law that fails.
MUTANTS: dict[str, tuple[ModuleType, str, str, str, str]] = {
    "CAS off": (
        entries,
        "_APPEND",
        "WHERE id = $1 AND token = $2 AND head = $3",
        "WHERE id = $1 AND $2::text <> '' AND $3::bigint >= 0",
        "test_law_3_silent_worker_loses_its_thread_to_the_next",
    ),
    "lease always dead": (
        schema,
        "_ALIVE",
        "t.token <> '' AND",
        "t.token = '-' AND",
        "test_law_3_held_thread_is_busy_and_names_its_holder",
    ),
    "lease always good": (
        schema,
        "_ALIVE",
        "t.lease +",
        "interval '1 day' +",
        "test_law_3_silent_worker_loses_its_thread_to_the_next",
    ),
    "claim forgets not_before": (
        claims,
        "_CLAIM",
        "SET token = $3,",
        "SET not_before = NULL, token = $3,",
        "test_law_10_thread_of_a_dead_worker_is_offered_again",
    ),
    "release forgets not_before": (
        session,
        "_RELEASE",
        "not_before = $3",
        "not_before = CASE WHEN $3::timestamptz IS NULL THEN NULL END",
        "test_law_10_thread_is_offered_until_it_is_taken",
    ),
    "an offer is forgotten with its worker": (
        queue,
        "_TAKE",
        "SET due = clock_timestamp() + $3",
        "SET due = CASE WHEN $3::interval IS NULL THEN clock_timestamp() END",
        "test_queue_offer_is_made_again_until_it_is_done",
    ),
    "an offer that is over ends the next one": (
        queue,
        "_END",
        "WHERE thread = $1 AND offer = $2",
        "WHERE thread = $1",
        "test_queue_lost_offer_ends_nothing",
    ),
    "a signal during an offer is missed": (
        queue,
        "_END",
        "CASE WHEN signalled THEN",
        "CASE WHEN false THEN",
        "test_signals_during_an_offer_are_not_missed",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
async def test_a_store_that_is_broken_fails_a_law(
    server: Server, schema_of_test: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, constant, said, broken, law = MUTANTS[name]
    text = getattr(module, constant)
    assert said in text
    monkeypatch.setattr(module, constant, text.replace(said, broken))
    schema.in_schema.cache_clear()
    try:
        with pytest.raises((AssertionError, Failed, LocusError)):
            await obey(server, schema_of_test, law)
    finally:
        schema.in_schema.cache_clear()


@pytest.mark.parametrize("law", sorted({mutant[-1] for mutant in MUTANTS.values()}))
async def test_a_store_that_is_whole_obeys_that_law(server: Server, schema_of_test: str, law: str) -> None:
    await obey(server, schema_of_test, law)


async def obey(server: Server, name: str, law: str) -> None:
    """What pytest does with a test of the contract."""
    contract = test_contract.TestPostgresStore()
    contract.server, contract.schema = server, name
    stores: list[PostgresStore] = []

    async def open_store() -> JournalStore:
        stores.append(PostgresStore(server.url(), schema=name, patience=2.0))
        return stores[-1]

    test: Any = getattr(contract, law)
    wants = test.__func__.__code__.co_varnames[: test.__func__.__code__.co_argcount]
    assert issubclass(test_contract.TestPostgresStore, JournalStoreContract)
    try:
        await test(open_store if "open_store" in wants else await open_store())
    finally:
        for store in stores:
            await store.aclose()
