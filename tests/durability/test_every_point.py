"""Wherever a run dies or is overtaken, it ends like the one that never was: each point once, on every kind of store.

Here the faults are played in one process; `test_killed` does the same to real ones.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

import anyio
import pytest
from attrs import field, frozen
from tests.durability.broken import BROKEN
from tests.durability.case import Program, plain
from tests.durability.effort import THOROUGH
from tests.durability.explore import SCRIPT
from tests.durability.played import Fault, How, play
from tests.durability.subjects import SUBJECTS, Subject
from tests.durability.world import Mode


@frozen
class Explored:
    """What was found: how often which kind of point was struck, and what was wrong after which."""

    struck: Counter[str] = field(factory=Counter)
    wrong: dict[str, tuple[str, ...]] = field(factory=dict)


async def explored(
    kind: type[Subject],
    folder: Path,
    how: How,
    program: Program,
    backend: str = "asyncio",
    *,
    snapshot_every: int | None = None,
    until: str | None = None,
) -> Explored:
    """Strike at every point, or until something is wrong that says ``until``."""
    wanted, found = await plain(program), Explored()
    for at in range(1, 10_000):
        place = folder / str(at)
        place.mkdir()
        subject = kind(place, snapshot_every=snapshot_every)
        played = await play(program, subject, [Fault(at, how)], wanted, backend)
        if not played.hits:
            return found
        found.struck.update(played.hits)
        if not played.verdict:
            found.wrong[f"{at}: {played.hits[0]}"] = played.verdict.wrong
        if until is not None and any(until in each for each in played.verdict.wrong):
            return found
    raise AssertionError("the run has no end")


QUICK: list[tuple[str, How, Mode, str]] = [
    ("memory", "die", "concurrent", "asyncio"),
    ("memory", "die", "sequential", "trio"),
    ("memory", "stall", "concurrent", "asyncio"),
    ("late", "die", "concurrent", "asyncio"),
    ("late", "die", "sequential", "trio"),
    ("sqlite", "stall", "sequential", "asyncio"),
]
MORE: list[tuple[str, How, Mode, str]] = [
    ("memory", "stall", "sequential", "trio"),
    ("late", "stall", "concurrent", "asyncio"),
    ("files", "die", "concurrent", "trio"),
    ("files", "stall", "concurrent", "asyncio"),
    ("sqlite", "die", "concurrent", "trio"),
    ("sqlite", "stall", "concurrent", "asyncio"),
]


@pytest.mark.parametrize(("subject", "how", "mode", "backend"), QUICK + (MORE if THOROUGH else []))
def test_a_run_struck_at_any_point_ends_like_the_one_that_never_was(
    subject: str, how: How, mode: Mode, backend: str, tmp_path: Path
) -> None:
    program = Program(SCRIPT, mode)
    found = anyio.run(explored, SUBJECTS[subject], tmp_path, how, program, backend, backend=backend)
    assert found.wrong == {}
    assert found.struck.total() > 150
    kinds = {"model: inside", "once: before the effect", "once: after the effect", "append: before", "release: before"}
    assert kinds <= set(found.struck)


def test_snapshots_between_the_entries_change_nothing(tmp_path: Path) -> None:
    program = Program([*SCRIPT[:2], SCRIPT[-1]])
    explore = partial(explored, SUBJECTS["memory"], tmp_path, "die", program, snapshot_every=3)
    found = anyio.run(explore)
    assert found.wrong == {}
    assert found.struck["snapshot: before"] >= 4
    assert found.struck["snapshot: after"] >= 4


# -- the proof of the proof ------------------------------------------------------------------------------

#: Which fault shows which law to be broken, and which of the three parts of the oracle says so.
FOUND: dict[str, tuple[How, str]] = {
    "files: fencing off": ("stall", "journal: a writer wrote again after another one had"),
    "sqlite: fencing off": ("stall", "journal: a writer wrote again after another one had"),
    "files: save, then dispatch": ("die", "entries have the number"),
    "files: acknowledgement first": ("die", "acknowledged entries"),
}


def test_every_broken_store_has_its_test() -> None:
    assert set(FOUND) == set(BROKEN)


@pytest.mark.parametrize("name", FOUND)
def test_a_broken_store_is_found(name: str, tmp_path: Path) -> None:
    how, said = FOUND[name]
    program = Program([*SCRIPT[:2], SCRIPT[-1]])
    found = anyio.run(partial(explored, BROKEN[name], tmp_path, how, program, until=said))
    assert any(said in each for wrong in found.wrong.values() for each in wrong), found.wrong
