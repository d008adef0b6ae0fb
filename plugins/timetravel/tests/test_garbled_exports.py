"""An export in which one value was exchanged, with checksums that fit: it is refused, or it is a thread like any."""

from __future__ import annotations

import json
import re
from hashlib import blake2b
from random import Random
from typing import Any

import pytest

import locus_plugin_timetravel as timetravel
from locus.core.errors import CheckpointError, LocusError
from locus.core.termination import MaxIterations
from locus.journal import MemoryStore
from locus_testkit import call

from .kit import dead, made

pytestmark = pytest.mark.anyio

EXPORTS = 600
SCRIPT: list[Any] = [call("add", a=1), [call("add", a="x"), call("confirm", what="go")], "done"]
ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    10**30,
    1.5,
    "",
    "x",
    "2026-01-01",
    [],
    [1],
    [[], []],
    {},
    {"type": "text"},
    {"a": 1},
]


async def exported() -> list[str]:
    """A thread with two turns, of which one asked a person."""
    store = MemoryStore()
    agent = made(store, *SCRIPT, "again")
    await agent.run("Add.", thread_id="t", metadata={"k": [1, {"a": "b"}]})
    await agent.resume("t", "yes")
    await agent.run("And?", thread_id="t")
    return list(await timetravel.export_thread(store, "t"))


def places(form: Any) -> list[tuple[Any, Any]]:
    """Every place of a value: what it is in, and under which key or number."""
    pairs = form.items() if isinstance(form, dict) else enumerate(form) if isinstance(form, list) else ()
    return [place for key, value in list(pairs) for place in ((form, key), *places(value))]


def garbled(lines: list[str], random: Random) -> tuple[list[str], int]:
    """The lines with one value exchanged, or gone, and checksums that fit; and the number of the line."""
    forms = [json.loads(line) for line in lines]
    number = random.randrange(1, len(forms))
    inside, key = random.choice(places(forms[number]["body"]))
    if random.random() < 0.2:
        del inside[key]
    else:
        inside[key] = random.choice(ODD)
    chain, made = blake2b(digest_size=8), []
    for form in forms:
        form.pop("sum")
        chain.update(json.dumps(form, sort_keys=True, separators=(",", ":")).encode())
        made.append(json.dumps({**form, "sum": chain.copy().hexdigest()}))
    return made, number + 1


async def used(store: MemoryStore) -> None:
    """Everything that can be done with a thread."""
    for work in (_looked_at, _forked, _replayed, _asked, _resumed):
        try:
            await work(store)
        except LocusError:
            continue


async def _looked_at(store: MemoryStore) -> None:
    past = await timetravel.history(store, "t")
    assert timetravel.format_history(past)
    for entry in past:
        assert entry.state.to_checkpoint()
    assert list(await timetravel.export_thread(store, "t"))
    assert str(timetravel.diff(past, past))


async def _forked(store: MemoryStore) -> None:
    for n in (1, 3, None):
        await timetravel.fork(store, "t", at=n)


async def _replayed(store: MemoryStore) -> None:
    assert str(await timetravel.replay(dead(store), "t"))


async def _asked(store: MemoryStore) -> None:
    assert str(await timetravel.what_if(dead(store), "t", termination=MaxIterations(1)))


async def _resumed(store: MemoryStore) -> None:
    try:
        await made(store, "done", "done", "done").resume("t", "yes")
    except LocusError:
        await made(store, "done", "done", "done").run("More.", thread_id="t")


@pytest.mark.parametrize("part", range(6))
async def test_what_is_stored_never_raises_anything_untyped_later(part: int) -> None:
    lines = await exported()
    refused = 0
    for seed in range(part * EXPORTS // 6, (part + 1) * EXPORTS // 6):
        store = MemoryStore()
        text, number = garbled(lines, Random(seed))
        try:
            await timetravel.import_thread(store, text)
        except CheckpointError as e:
            refused += 1
            said = re.search(r"line (\d+)", str(e))
            if said is None or int(said[1]) < number:
                raise AssertionError(f"seed {seed}, line {number}") from e
            assert await store.threads() == ()
        except LocusError as e:
            raise AssertionError(f"seed {seed}: {e!r}") from e
        else:
            try:
                await used(store)
            except Exception as e:
                raise AssertionError(f"seed {seed}, line {number}: {text[number - 1]}") from e
    assert 0 < refused < EXPORTS // 6
