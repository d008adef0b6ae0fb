"""Threads as text: what goes out comes in again, and nothing that is damaged does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from locus import ToolContext, tool
from locus.core.errors import CheckpointError, CheckpointTooNew, InputError, JournalError, NothingToResume
from locus.core.journal import Body
from locus.journal import Appended, Claim, MemoryStore
from locus_plugin_timetravel import export_thread, history, import_thread
from locus_testkit import InterceptedStore, call

from .kit import Crash, dead, made, results, same

pytestmark = pytest.mark.anyio


async def exported(store: MemoryStore, thread: str = "t") -> list[str]:
    return list(await export_thread(store, thread))


@pytest.fixture
async def store() -> MemoryStore:
    store = MemoryStore()
    agent = made(store, [call("add", a=1), call("confirm", what="go")], "gone", "hello")
    await agent.run("x \u2028 \u00e9", thread_id="t", metadata={"k": (1, 2.5, float("inf"), b"\0")})
    await agent.resume("t", "yes")
    await agent.run("y", thread_id="t")
    return store


async def test_a_thread_is_lines_of_json(store: MemoryStore) -> None:
    lines = await exported(store)
    entries = await store.read("t")
    header, *rest = map(json.loads, lines)
    assert {k: header[k] for k in ("kind", "format", "thread_id", "head")} == {
        "kind": "locus.thread",
        "format": 1,
        "thread_id": "t",
        "head": len(entries),
    }
    assert [(e["n"], e["writer"], e["parent"]) for e in rest] == [(e.n, e.writer, e.parent) for e in entries]
    assert all("\n" not in line and line.isascii() for line in lines)


async def test_what_goes_out_comes_in_again(store: MemoryStore) -> None:
    other = MemoryStore()
    lines = await exported(store)
    assert await import_thread(other, lines, trusted=True) == "t"
    assert [e.body for e in await other.read("t")] == [e.body for e in await store.read("t")]
    assert await history(other, "t") == await history(store, "t")
    assert (await history(other, "t")).state == (await history(store, "t")).state
    await same(dead(other))
    # The writer is another, and what follows what is the same.
    entries = await other.read("t")
    assert [e.parent for e in entries] == ["", *(e.id for e in entries[:-1])]
    assert (await other.threads())[0].holder is None
    again = await exported(other)
    assert [json.loads(line)["body"] for line in again[1:]] == [json.loads(line)["body"] for line in lines[1:]]


async def test_it_can_come_in_under_another_name(store: MemoryStore) -> None:
    async def as_they_come() -> Any:
        for line in await export_thread(store, "t"):
            yield line + "\n"

    assert await import_thread(store, as_they_come(), into="copy", trusted=True) == "copy"
    assert list(await history(store, "copy")) == list(await history(store, "t"))


async def test_an_open_run_goes_on_elsewhere_under_the_same_keys() -> None:
    keys: list[str] = []

    @tool(effect="keyed")
    async def send(ctx: ToolContext[Any]) -> str:
        """Send."""
        keys.append(ctx.idempotency_key)
        if len(keys) == 1:
            raise Crash
        return "sent"

    here, there = MemoryStore(), MemoryStore()
    agent = made(here, call("send"), "done", tools=[send])
    with pytest.raises(Crash):
        await agent.run("x", thread_id="t")
    await import_thread(there, await exported(here))
    result = await made(there, "done", tools=[send]).resume("t")
    assert results(result) == ["sent"]
    assert keys[0] == keys[1]
    await same(dead(there, tools=[send]))


async def test_a_question_is_answered_elsewhere() -> None:
    here, there = MemoryStore(), MemoryStore()
    await made(here, call("confirm", what="go")).run("x", thread_id="t")
    await import_thread(there, await exported(here))
    result = await made(there, "gone").resume("t", "yes")
    assert (result.text, results(result)) == ("gone", ["go: yes"])


# -- damage -----------------------------------------------------------------------------------------------


def without(lines: Sequence[str], at: int) -> list[str]:
    return [*lines[:at], *lines[at + 1 :]]


def swapped(lines: Sequence[str], at: int) -> list[str]:
    return [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]]


def rewritten(lines: Sequence[str], at: int, **changes: Any) -> list[str]:
    return [*lines[:at], json.dumps({**json.loads(lines[at]), **changes}), *lines[at + 1 :]]


async def refused(lines: Sequence[str], match: str = "line ") -> CheckpointError:
    store = MemoryStore()
    with pytest.raises(CheckpointError, match=match) as caught:
        await import_thread(store, lines)
    assert await store.threads() == ()
    return caught.value


async def test_a_text_that_was_cut_off_is_refused(store: MemoryStore) -> None:
    lines = await exported(store)
    for end in range(len(lines)):
        await refused(lines[:end], "cut off" if end else "header is missing")
    await refused([*lines[:-1], lines[-1][:40]], f"line {len(lines)}: it cannot be read")


async def test_a_text_out_of_order_is_refused(store: MemoryStore) -> None:
    lines = await exported(store)
    for at in range(len(lines) - 1):
        await refused(swapped(lines, at))
        if at:
            await refused(without(lines, at), f"line {at + 1}")
    await refused([*lines, lines[-1]])
    await refused([*lines, *lines])


def parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


async def test_every_changed_character_is_found(store: MemoryStore) -> None:
    lines = await exported(store)
    for at in (0, 1, len(lines) // 2, len(lines) - 1):
        for place in range(0, len(lines[at]), 7):
            was = lines[at][place]
            other = "1" if was != "1" else "2"
            changed = lines[at][:place] + other + lines[at][place + 1 :]
            if parsed(changed) != parsed(lines[at]):  # the last digit of a float may be any
                await refused([*lines[:at], changed, *lines[at + 1 :]])


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("", "header is missing"),
        ("nonsense", "line 1: it cannot be read"),
        ("[]", "line 1: expected a JSON object"),
        ("{}", "this is not an exported thread"),
        ('{"kind": "locus.thread"}', "format is None"),
        ('{"kind": "locus.thread", "format": true}', "format is True"),
        ('{"kind": "locus.thread", "format": 1, "schema": 1}', "checksum"),
        ('{"kind": NaN}', "NaN is not JSON"),
        ("[" * 100_000, "cannot be read"),
    ],
)
async def test_a_file_that_is_not_a_thread_is_refused(line: str, match: str) -> None:
    await refused([line], match)


@pytest.mark.parametrize("key", ["format", "schema"])
async def test_a_newer_text_is_refused_as_such(store: MemoryStore, key: str) -> None:
    """Whatever its checksums are made of."""
    lines = rewritten(await exported(store), 0, **{key: 99})
    error = await refused(lines, "99")
    assert isinstance(error, CheckpointTooNew)
    assert (error.found, error.supported) == (99, 1)


async def test_an_entry_of_an_unknown_kind_is_refused(store: MemoryStore) -> None:
    await refused(rewritten(await exported(store), 3, body={"entry": "of the future"}))


async def test_the_text_may_be_spaced_and_ordered_otherwise(store: MemoryStore) -> None:
    lines = [json.dumps(json.loads(line), sort_keys=True, ensure_ascii=False) for line in await exported(store)]
    other = MemoryStore()
    await import_thread(other, ["", *lines, "", "  \n"], trusted=True)
    assert await history(other, "t") == await history(store, "t")


# -- places that do not take it -----------------------------------------------------------------------------


async def test_a_name_that_is_taken_stays_as_it_is(store: MemoryStore) -> None:
    lines, before = await exported(store), await store.read("t")
    with pytest.raises(JournalError, match=r"that thread exists already; import it into another one"):
        await import_thread(store, lines)
    assert await store.read("t") == before


async def test_a_store_without_history_does_not_take_it(store: MemoryStore) -> None:
    with pytest.raises(JournalError, match="MemoryStore: it keeps no history"):
        await import_thread(MemoryStore(history=False), await exported(store))
    with pytest.raises(JournalError, match="no history"):
        await export_thread(MemoryStore(history=False), "t")
    with pytest.raises(NothingToResume):
        await export_thread(store, "nowhere")
    with pytest.raises(InputError, match="thread_id must be a str that names the conversation, got ''"):
        await import_thread(MemoryStore(), await exported(store), into="")


@pytest.mark.parametrize("how", ["raises", "unknown", "unknown but stored", "fenced"])
async def test_a_write_that_fails_leaves_nothing_behind(store: MemoryStore, how: str) -> None:
    def fail(claim: Claim, bodies: Sequence[Body]) -> Appended:
        if how == "raises":
            raise OSError("disk full")
        return Appended.FENCED if how == "fenced" else Appended.UNKNOWN

    moment: dict[Any, Any] = {"append": fail}
    other = InterceptedStore(after=moment) if how == "unknown but stored" else InterceptedStore(moment)
    with pytest.raises(OSError if how == "raises" else JournalError):
        await import_thread(other, await exported(store))
    assert await other.peek("t") is None
    assert await other.threads() == ()


async def test_somebody_who_was_faster_keeps_the_thread(store: MemoryStore) -> None:
    class Raced(MemoryStore):
        async def peek(self, thread_id: str) -> None:
            return None

    other = Raced()
    lines = await exported(store)
    await import_thread(other, lines)
    before = await other.read("t")
    with pytest.raises(JournalError, match="that thread exists already"):
        await import_thread(other, lines)
    assert await other.read("t") == before
    assert (await other.threads())[0].holder is None
