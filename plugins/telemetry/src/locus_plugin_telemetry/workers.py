"""What a worker does, measured: the ``on_notice`` of a worker, whichever package has it.

A notice is an object with a ``kind``, ``is_failure``, ``seconds`` and ``delivered``, as `locus.worker.Notice` has them.
Queues and threads are left out of the attributes: a queue for each tenant would make a series for each.
"""

from __future__ import annotations

from typing import Any

from opentelemetry import metrics
from opentelemetry.metrics import MeterProvider

from locus_plugin_telemetry import conventions as c
from locus_plugin_telemetry.failures import FailureLog, HasFailureLog, log_errors

__all__ = ["WorkerMetrics"]


class WorkerMetrics(HasFailureLog):
    """Counts the jobs of a worker, and measures how long they take.

    Args:
        meter_provider: where measurements go; None = the global one, whenever the program sets it.
    """

    def __init__(self, meter_provider: MeterProvider | None = None) -> None:
        self.failures = FailureLog()
        meter = metrics.get_meter("locus_plugin_telemetry", "", meter_provider, c.SCHEMA_URL)
        self._busy = meter.create_up_down_counter(*c.WORKER_BUSY)
        self._ended = meter.create_counter(*c.WORKER_JOBS)
        self._again = meter.create_counter(*c.WORKER_REDELIVERED)
        name, unit, description, boundaries = c.WORKER_DURATION
        self._duration = meter.create_histogram(
            name, unit=unit, description=description, explicit_bucket_boundaries_advisory=boundaries
        )

    @log_errors
    def __call__(self, notice: Any) -> None:
        """Measure one notice."""
        if notice.kind == "taken":
            self._busy.add(1)
            if notice.delivered > 1:
                self._again.add(1)
        elif notice.kind in ("done", "back"):
            outcome = "failed" if notice.is_failure else notice.kind
            self._busy.add(-1)
            self._ended.add(1, {c.OUTCOME: outcome})
            if notice.kind == "done":
                self._duration.record(notice.seconds, {c.OUTCOME: outcome})
        elif notice.kind in ("lost", "error", "stuck"):
            self._ended.add(1, {c.OUTCOME: notice.kind})
