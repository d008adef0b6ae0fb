"""Threads that a released version has exported stay readable, and come to the states that it came to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from attrs import fields, has
from tests.durability.released import agent, written
from tests.loop.kit import results

from locus.core.journal import BLANK, FORK, Body, Transition, entry_from_json, entry_to_json, fold
from locus.core.messages import Block
from locus.core.state import AgentState
from locus.journal import MemoryStore
from locus_plugin_timetravel import export_thread, import_thread
from locus_testkit import assert_valid_history

pytestmark = pytest.mark.anyio

DATA = Path(__file__).parents[1] / "data" / "journals"
RELEASED = sorted(each.name for each in DATA.iterdir() if each.is_dir())
THREADS = [(folder, path.stem) for folder in RELEASED for path in sorted((DATA / folder).glob("*.jsonl"))]


def lines(version: str, thread: str) -> list[str]:
    return (DATA / version / f"{thread}.jsonl").read_text().splitlines()


def inside(value: Any) -> Iterator[Any]:
    """A value, and everything in it."""
    yield value
    if has(type(value)):
        parts: Any = (getattr(value, f.name) for f in fields(type(value)))
    elif isinstance(value, dict):
        parts = value.values()
    else:
        parts = value if isinstance(value, tuple | list | frozenset) else ()
    for part in parts:
        yield from inside(part)


def test_every_version_is_there_and_says_where_it_comes_from() -> None:
    origins = (DATA / "README.md").read_text()
    assert "0.1.0" in RELEASED
    assert [version for version in RELEASED if f"\n| {version} |" not in origins] == []


@pytest.mark.parametrize(("version", "thread"), THREADS)
async def test_a_thread_comes_to_the_state_that_it_came_to(version: str, thread: str) -> None:
    store = MemoryStore()
    assert await import_thread(store, lines(version, thread), trusted=True) == thread
    bodies = [entry.body for entry in await store.read(thread)]
    state = fold(BLANK, bodies)
    wanted = json.loads((DATA / version / "states.json").read_text())[thread]
    assert state == AgentState.from_checkpoint(wanted)
    later = json.loads(json.dumps(BLANK.to_checkpoint()))  # fields that came later have their defaults
    assert json.loads(json.dumps(state.to_checkpoint())) == {**later, **wanted}
    # Nothing was dropped on the way in.
    forms = [json.loads(line)["body"] for line in lines(version, thread)[1:]]
    assert [json.loads(json.dumps(entry_to_json(body))) for body in bodies] == forms


@pytest.mark.parametrize("version", RELEASED)
@pytest.mark.parametrize("thread", ["open", "fork"])
async def test_a_run_that_was_left_open_continues(version: str, thread: str) -> None:
    store = MemoryStore()
    await import_thread(store, lines(version, thread), trusted=True)
    result = await agent(store, "stopped").resume(thread)
    if result.interrupts:
        result = await agent(store, "stopped").resume(thread, "yes")
    assert (result.text, results(result)) == ("stopped", ["stop: yes"])
    assert_valid_history(result.state.messages)
    assert (await agent(store, "more").run("Go on.", thread_id=thread)).text == "more"


# -- every kind -------------------------------------------------------------------------------------------


def missing(bodies: list[Body]) -> set[str]:
    """The kinds of entries, blocks and places that none of these holds."""
    kinds = {type(part) for body in bodies for part in inside(body)}
    wanted = {kind for union in (Body, Block) for kind in get_args(union)}
    found = {kind.__name__ for kind in wanted - kinds}
    states = fold(BLANK, bodies).metadata
    return found | ({"a summary"} if not any("summary" in key for key in states) else set())


def bodies_of(texts: list[str]) -> list[Body]:
    return [entry_from_json(json.loads(line)["body"]) for line in texts[1:]]


def test_the_newest_version_holds_every_kind() -> None:
    bodies = bodies_of(lines(RELEASED[-1], "talk"))
    assert missing(bodies) == set()
    forked = bodies_of(lines(RELEASED[-1], "fork"))
    assert any(isinstance(body, Transition) and body.node == FORK for body in forked)


@pytest.mark.parametrize("kind", [kind.__name__ for union in (Body, Block) for kind in get_args(union)])
def test_a_kind_that_no_thread_holds_is_found(kind: str) -> None:
    bodies = [b for b in bodies_of(lines(RELEASED[-1], "talk")) if kind not in {type(p).__name__ for p in inside(b)}]
    assert kind in missing(bodies)


async def test_the_program_that_writes_them_still_does() -> None:
    store = await written()
    texts = [line for info in await store.threads() for line in await export_thread(store, info.thread_id)]
    assert {info.thread_id for info in await store.threads()} == {"talk", "open", "fork", "early"}
    assert json.loads(texts[0])["kind"] == "locus.thread"
    assert missing([entry.body for entry in await store.read("talk")]) == set()
