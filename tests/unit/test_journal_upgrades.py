"""The way from an older format to today's, proved with made-up steps: no version before this one was ever released."""

from __future__ import annotations

from typing import Any

import pytest

from locus.core import journal
from locus.core.errors import CheckpointError, CheckpointTooNew, CheckpointTooOld
from locus.core.journal import FORMAT, Cancelled, Paused, entry_from_json, entry_to_json


def test_an_entry_of_an_older_version_goes_through_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []

    def rename_cause(form: dict[str, Any]) -> dict[str, Any]:
        seen.append(dict(form))
        form["because"] = form.pop("cause")
        return form

    def rename_because(form: dict[str, Any]) -> dict[str, Any]:
        seen.append(dict(form))
        return {("reason" if key == "because" else key): value for key, value in form.items()}

    monkeypatch.setattr(journal, "FORMAT", FORMAT + 2)
    monkeypatch.setitem(journal.UPGRADES, FORMAT, rename_cause)
    monkeypatch.setitem(journal.UPGRADES, FORMAT + 1, rename_because)
    form = entry_to_json(Cancelled(run_id="r", reason="enough"))
    form |= {"v": FORMAT, "cause": form.pop("reason")}
    assert entry_from_json(form) == Cancelled(run_id="r", reason="enough")
    assert [("cause" in each, "because" in each) for each in seen] == [(True, False), (False, True)]
    # an entry of the version between goes through the second step alone
    seen.clear()
    between = dict(form, v=FORMAT + 1)
    between["because"] = between.pop("cause")
    assert entry_from_json(between) == Cancelled(run_id="r", reason="enough")
    assert len(seen) == 1
    # and one of today's through none
    assert entry_from_json(entry_to_json(Paused(run_id="r", segment=0, kind="cancelled"))) is not None
    assert len(seen) == 1


def test_a_gap_in_the_steps_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "FORMAT", FORMAT + 2)
    monkeypatch.setitem(journal.UPGRADES, FORMAT, dict)
    form = {**entry_to_json(Cancelled(run_id="r")), "v": FORMAT}
    with pytest.raises(CheckpointTooOld):
        entry_from_json(form)


def test_what_a_step_cannot_read_is_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(form: dict[str, Any]) -> dict[str, Any]:
        raise KeyError("cause")

    monkeypatch.setattr(journal, "FORMAT", FORMAT + 1)
    monkeypatch.setitem(journal.UPGRADES, FORMAT, fails)
    with pytest.raises(CheckpointError, match="cannot be read"):
        entry_from_json({**entry_to_json(Cancelled(run_id="r")), "v": FORMAT})


@pytest.mark.parametrize("version", [0, -1, True, "2", 1.0, None])
def test_what_is_not_a_version_is_damaged(version: Any) -> None:
    with pytest.raises(CheckpointError):
        entry_from_json({**entry_to_json(Cancelled(run_id="r")), "v": version})


def test_version_1_was_never_released_and_is_refused() -> None:
    with pytest.raises(CheckpointTooOld):
        entry_from_json({**entry_to_json(Cancelled(run_id="r")), "v": 1})


def test_a_newer_version_is_refused() -> None:
    with pytest.raises(CheckpointTooNew):
        entry_from_json({**entry_to_json(Cancelled(run_id="r")), "v": FORMAT + 1})
