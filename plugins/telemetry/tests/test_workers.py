"""What a worker says, as metrics."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import frozen
from opentelemetry.metrics import MeterProvider

from locus_plugin_telemetry import WorkerMetrics

from .kit import Traced


@frozen(kw_only=True)
class Said:
    """A notice, as a worker makes it."""

    kind: str
    is_failure: bool = False
    seconds: float = 0.0
    delivered: int = 1


def values(traced: Traced, name: str) -> dict[Any, float]:
    return {point.attributes.get("locus.outcome"): point.value for point in traced.points(name)}


def test_jobs_are_counted_by_what_became_of_them() -> None:
    traced = Traced()
    measure = WorkerMetrics(traced.meter)

    for said in (
        Said(kind="started"),
        Said(kind="taken"),
        Said(kind="taken", delivered=2),
        Said(kind="taken"),
        Said(kind="done", seconds=3.0),
        Said(kind="done", seconds=4.0, is_failure=True),
        Said(kind="lost"),
    ):
        measure(said)

    assert values(traced, "locus.worker.jobs") == {"done": 1, "failed": 1, "lost": 1}
    assert values(traced, "locus.worker.busy") == {None: 1}
    assert values(traced, "locus.worker.redelivered") == {None: 1}
    durations = {p.attributes["locus.outcome"]: p.sum for p in traced.points("locus.worker.job.duration")}
    assert durations == {"done": 3.0, "failed": 4.0}


def test_a_meter_that_fails_harms_no_worker(caplog: pytest.LogCaptureFixture) -> None:
    measure = WorkerMetrics(MeterProviderThatFails())

    measure(Said(kind="taken"))
    measure(Said(kind="taken"))

    assert len(caplog.records) == 1


class MeterProviderThatFails(MeterProvider):
    """Its counters raise."""

    def get_meter(self, *arguments: Any, **options: Any) -> Any:
        return self

    def create(self, *arguments: Any, **options: Any) -> Any:
        return self

    create_counter = create_histogram = create_up_down_counter = create

    def add(self, amount: float) -> None:
        raise ValueError("no")
