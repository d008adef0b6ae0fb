"""A full disk, a file that may only be read and a locked one, at every write of a run, and then all is well again.

The error says what happened; what was acknowledged is there, nothing is half-written, the run stays open; and when
somebody has seen to it, the run ends like the one that never heard of any of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from tests.durability.case import plain
from tests.durability.programs import side_by_side
from tests.durability.refused import PROGRAM, Begun, Found, How, Place, Refusing, explored, struck

from locus.core.journal import Body
from locus.journal.store import Appended, Claim
from locus_plugin_sqlite import FileReadOnly

EVERYTHING = {
    "append: after Intent",
    "append: after Outcome",
    "append: after Asked",
    "append: after Answered",
    "append: after Paused",
    "append: after Resumed",
    "append: after Retried",
    "append: after a transition",
    "append: after the final transition",
    "snapshot",
}

#: What the program writes when nothing refuses it.
WRITES = 44

ERRORS: dict[How, tuple[str, str]] = {
    "pages": ("DiskFull", "no room to write (database or disk is full); what was committed is kept"),
    "limit": ("DiskFull", "; this process may write files of "),
    "read-only": ("FileReadOnly", "the file or its folder may not be written by this user"),
    "locked": ("FileLocked", "another process kept it locked for 0.01 s; nothing was written"),
}


def proved(how: How, found: list[Found]) -> None:
    *struck, last = found
    assert {n: each.wrong for n, each in enumerate(found, 1) if each.wrong} == {}
    assert (last.struck, last.errors) == (None, ())
    kind, said = ERRORS[how]
    for each in struck:
        assert each.struck is not None
        # A snapshot is a cache: the entry behind it tells of the trouble, and behind the last one there is none.
        assert len(each.errors) == (0 if tuple(each.struck) == (WRITES, "snapshot") else 2), each
        for name, text in each.errors:
            assert name == kind
            assert said in text


def near_the_trouble(found: list[Found]) -> None:
    """Each write was refused where the trouble began, or one of the four calls of a turn that were under way."""
    first = [each.struck[0] for each in found if each.struck]
    assert len(first) == len(found) - 1 == WRITES
    assert all(abs(number - at) <= 3 for at, number in enumerate(first, 1)), first


def everywhere(found: list[Found]) -> None:
    near_the_trouble(found)
    assert {each.struck[1] for each in found if each.struck} == EVERYTHING


@pytest.mark.parametrize(("how", "backend"), [("read-only", "asyncio"), ("locked", "trio")])
def test_a_file_that_cannot_be_written_for_a_while(how: How, backend: str, tmp_path: Path) -> None:
    found = anyio.run(explored, how, tmp_path, backend=backend)
    proved(how, found)
    everywhere(found)


def test_a_disk_that_is_full_by_a_limit_on_files_and_then_has_room(tmp_path: Path) -> None:
    lines = side_by_side("refused", [{"how": "limit", "folder": str(tmp_path)}])
    found = [Found(line["struck"], tuple(map(tuple, line["errors"])), tuple(line["wrong"])) for line in lines]
    proved("limit", found)
    everywhere(found)


def test_a_disk_that_is_full_by_pages_and_then_has_room(tmp_path: Path) -> None:
    found = anyio.run(explored, "pages", tmp_path)
    proved("pages", found)
    near_the_trouble(found)
    # What fits into the pages that are there is no trouble; then the next one is refused. Which entries of a question
    # fit depends on how many writes the store's thread found to commit together.
    refused = {each.struck[1] for each in found if each.struck}
    assert refused >= {"append: after Intent", "append: after Outcome", "append: after a transition"}
    assert refused & {"append: after Asked", "append: after Paused", "append: after Answered"}


@pytest.mark.parametrize("at", [4, 5])
def test_a_store_that_keeps_a_refusal_to_itself_is_found(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, wait = Refusing.append, Begun.wait

    async def hiding(self: Refusing, claim: Claim, bodies: Sequence[Body]) -> Appended:
        try:
            return await append(self, claim, bodies)
        except FileReadOnly:
            return Appended.OK

    async def hiding_too(self: Begun) -> Appended:
        try:
            return await wait(self)
        except FileReadOnly:
            return Appended.OK

    monkeypatch.setattr(Refusing, "append", hiding)
    monkeypatch.setattr(Begun, "wait", hiding_too)

    async def refused() -> Found:
        return await struck("read-only", at, Place(tmp_path), await plain(PROGRAM), again=False)

    assert any("acknowledged" in each for each in anyio.run(refused).wrong)
