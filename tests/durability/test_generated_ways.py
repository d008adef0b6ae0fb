"""Generated ways back to runs that were cut off, by programs that have changed: nothing that was begun is lost."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from attrs import evolve
from hypothesis import event as note
from hypothesis import given
from hypothesis import strategies as st
from tests.durability.effort import THOROUGH
from tests.durability.programs import side_by_side
from tests.durability.subjects import SUBJECTS
from tests.durability.ways import Plan, Played, Visit, draw_plan, play_plan

import locus_plugin_timetravel.forks
from locus.core.journal import Intent
from locus.journal.host import JournalHost
from locus.loop import transition

both_backends = pytest.mark.parametrize("backend", ["asyncio", "trio"])

plans = st.builds(lambda data: draw_plan(lambda options: data.draw(st.sampled_from(list(options)))), st.data())


def played(plan: Plan, subject: str, backend: str) -> Played:
    with tempfile.TemporaryDirectory() as folder:
        return anyio.run(play_plan, plan, SUBJECTS[subject](Path(folder)), backend=backend)


@both_backends
@pytest.mark.parametrize("subject", ["memory", "sqlite"])
@given(plan=plans)
def test_what_was_begun_is_not_begun_again_on_any_way_back(backend: str, subject: str, plan: Plan) -> None:
    found = played(plan, subject, backend)
    note(f"{sum(cut in ('died', 'cancelled') for cut in found.cuts)} visits cut off")
    assert found.wrong == ()


@both_backends
def test_a_retry_of_another_call_leaves_one_alone_whose_outcome_is_unknown(backend: str) -> None:
    visits = (
        Visit(at=18, cut="cancel"),
        Visit("fork", 4, "cancel", has_hook=False),
        Visit("fork", 18, "cancel", effect="pure"),
    )
    plan = Plan(("retry", "pay", "look"), "once", visits)
    # Which of the calls of the turn was reached when the cancel came differs from play to play.
    assert [played(plan, "sqlite", backend).wrong for _ in range(12)] == [()] * 12


def test_what_was_begun_is_not_begun_again_after_sigkill(tmp_path: Path) -> None:
    count = 150 if THOROUGH else 12
    orders = [{"folder": str(tmp_path / str(seed)), "seed": seed, "count": count} for seed in (1, 2)]
    found = side_by_side("ways", orders)
    assert [line for line in found if line["wrong"]] == []
    assert len(found) == 2 * count
    assert sum(line["kills"] for line in found) > count / 3
    assert sum(line["cancels"] for line in found) > count / 8


# -- the proof of the proof ------------------------------------------------------------------------------


def forget_in_new_turns(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(JournalHost, "may_have_begun", lambda host, step_id: False)


def take_todays_policy(patch: pytest.MonkeyPatch) -> None:
    find = JournalHost.find_step

    def found(host: JournalHost, step_id: Any, digest: str = "") -> Any:
        step = find(host, step_id, digest)
        return evolve(step, policy="keyed") if isinstance(step, Intent) else step

    patch.setattr(JournalHost, "find_step", found)


def ignore_the_record(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(JournalHost, "find_step", lambda host, step_id, digest="": None)


def fork_without_intents(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(locus_plugin_timetravel.forks, "_in_flight", lambda since: [])


def close_calls_of_a_cancelled_resume(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(transition, "with_recorded_results", lambda host, state, reason: state)


Breaks = Callable[[pytest.MonkeyPatch], None]

BROKEN: dict[Breaks, str] = {
    forget_in_new_turns: "nobody knows what came of",
    take_todays_policy: "although its record says 'once'",
    ignore_the_record: "although its record says",
    fork_without_intents: "in flight when the thread was forked",
    close_calls_of_a_cancelled_resume: "nobody knows what came of",
}


@pytest.mark.parametrize("breaks", BROKEN, ids=lambda breaks: breaks.__name__)
def test_a_broken_kernel_is_found(
    breaks: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(monkeypatch)
    draw = random.Random(7)
    for _ in range(400):
        found = played(draw_plan(draw.choice), "memory", "asyncio")
        if any(BROKEN[breaks] in each for each in found.wrong):
            return
    raise AssertionError("400 plans found nothing wrong")
