"""What a plugin keeps for one run is read in that run, and in no other."""

from __future__ import annotations

from attrs import evolve

from locus.core.state import AgentState
from locus_kit.metadata import read_run_data, with_run_data


def test_data_are_read_in_the_run_that_wrote_them() -> None:
    state = with_run_data(AgentState(), "probe", {"sent": 2})
    assert read_run_data(state, "probe")["sent"] == 2
    assert read_run_data(state, "other") == {}


def test_data_of_another_run_are_not_read() -> None:
    state = with_run_data(AgentState(run_id="one"), "probe", {"sent": 2})
    assert read_run_data(evolve(state, run_id="two"), "probe") == {}


def test_other_metadata_under_the_name_are_not_read() -> None:
    assert read_run_data(AgentState().with_metadata("probe", 3), "probe") == {}
