"""Each test of the store contract fails for a store that breaks what it says.

A law without a store that breaks it would be a law that cannot fail: the last test asks for that.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from locus.journal import JournalStore

from . import broken_pages, broken_posts, broken_queues, broken_runs, broken_stores
from .stores import LAWS, Complete, Opened, share

pytestmark = pytest.mark.proof

#: Two handles of a store in memory share nothing at all: exactly what these forbid.
ALONE = (
    "test_another_handle_finds_the_same",
    "test_another_handle_finds_the_fork",
    "test_queue_another_handle_finds_what_waits",
    "test_signals_are_found_by_another_handle",
    "test_another_handle_lists_the_same",
    "test_dead_workers_run_has_crashed",
    "test_law_3_handles_exclude_each_other",
)

EVERY = {
    **broken_stores.BROKEN,
    **broken_pages.BROKEN,
    **broken_posts.BROKEN,
    **broken_queues.BROKEN,
    **broken_runs.BROKEN,
}
CASES = [(kind, law) for kind, laws in EVERY.items() for law in laws]
POSTS = {law for laws in broken_posts.BROKEN.values() for law in laws}
CASES += [(Complete, law) for law in ALONE]


@pytest.fixture
def anyio_backend() -> str:
    """What breaks a law breaks it on every event loop; those that keep them are tried on both elsewhere."""
    return "asyncio"


@pytest.mark.anyio
@pytest.mark.parametrize(("kind", "law"), CASES)
async def test_law_fails_for_a_store_that_breaks_it(kind: Callable[[], JournalStore], law: str) -> None:
    broken = False
    try:
        await Opened(kind if law in ALONE else share(kind)).obey(law)
    except BaseException as failure:  # noqa: BLE001  # pytest.fail raises a BaseException
        broken = not _is_mistake(failure)
    assert broken


@pytest.mark.anyio
@pytest.mark.parametrize("law", LAWS)
async def test_law_holds_for_a_store_that_keeps_it(law: str) -> None:
    await Opened(share(Complete)).obey(law)


@pytest.mark.anyio
@pytest.mark.parametrize("kind", broken_posts.BROKEN)
async def test_store_that_posts_wrongly_fails_no_law_but_those_of_posts(kind: Callable[[], JournalStore]) -> None:
    for law in (each for each in LAWS if each not in POSTS):
        await Opened(share(kind)).obey(law)


def test_every_law_has_a_store_that_breaks_it() -> None:
    assert sorted({law for _, law in CASES}) == LAWS


def _is_mistake(failure: BaseException) -> bool:
    """Whether a broken store failed for another reason than the law: a mistake in its class."""
    return isinstance(failure, AttributeError | NameError | TypeError)
