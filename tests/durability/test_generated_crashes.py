"""Generated programs under generated faults, against the same program in memory that nothing ever happened to."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import anyio
import pytest
from hypothesis import event as note
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from tests.durability.case import Program, plain
from tests.durability.played import Fault, play
from tests.durability.subjects import SUBJECTS
from tests.durability.world import EFFECTS

both_backends = pytest.mark.parametrize("backend", ["asyncio", "trio"])

_turns = st.lists(st.sampled_from(sorted(EFFECTS)), min_size=1, max_size=4)
_texts = st.sampled_from(["done", "!done", "well"])

#: Any tools, alone or together, with a failing or an early answer in between, and an answer at the end.
scripts: SearchStrategy[list[list[str] | str]] = st.builds(
    lambda before, last: [*before, *last],
    st.lists(_turns, min_size=1, max_size=4),
    st.lists(_texts, min_size=1, max_size=2),
)

programs = st.builds(Program, scripts, st.sampled_from(["concurrent", "sequential"]), st.booleans(), st.booleans())

#: Often close to each other, so that what is done after a crash crashes as well.
faults = st.lists(
    st.builds(Fault, st.integers(1, 8) | st.integers(1, 90), st.sampled_from(["die", "die", "stall"])), max_size=5
)


@both_backends
@pytest.mark.parametrize("subject", sorted(SUBJECTS))
@given(program=programs, faults=faults, every=st.sampled_from([None, 1, 4]))
def test_a_run_under_faults_ends_like_the_one_without(
    backend: str, subject: str, program: Program, faults: list[Fault], every: int | None
) -> None:
    wanted = anyio.run(plain, program, backend=backend)
    with tempfile.TemporaryDirectory() as folder:
        place = SUBJECTS[subject](Path(folder), snapshot_every=every)
        played = anyio.run(partial(play, program, place, faults, wanted, backend), backend=backend)
    note(f"{len(played.hits)} faults struck")
    assert played.verdict.wrong == ()
