"""The histograms of the conventions."""

from __future__ import annotations

from collections.abc import Mapping

from opentelemetry.context import Context
from opentelemetry.metrics import Histogram, Meter

from locus import Usage
from locus_plugin_telemetry import conventions as c

__all__ = ["Metrics"]

Attributes = Mapping[str, str | int]


class Metrics:
    """Tokens, durations, and the time until an answer begins.

    Args:
        meter: what makes instruments.
    """

    __slots__ = ("_duration", "_first_chunk", "_tokens")

    def __init__(self, meter: Meter) -> None:
        self._tokens = _histogram(meter, c.TOKEN_USAGE)
        self._duration = _histogram(meter, c.OPERATION_DURATION)
        self._first_chunk = _histogram(meter, c.FIRST_CHUNK)

    def tokens(self, usage: Usage, about: Attributes, context: Context) -> None:
        """Measure what a call used."""
        for kind, amount in (("input", usage.prompt_tokens), ("output", usage.completion_tokens)):
            self._tokens.record(amount, {**about, c.TOKEN_TYPE: kind}, context=context)

    def first_chunk(self, seconds: float, about: Attributes, context: Context) -> None:
        """Measure how long it took until an answer began."""
        self._first_chunk.record(seconds, about, context=context)

    def duration(self, seconds: float, about: Attributes, error: str | None, context: Context) -> None:
        """Measure how long an operation took."""
        attributes = {**about, c.ERROR_TYPE: error} if error is not None else dict(about)
        self._duration.record(seconds, attributes, context=context)


def _histogram(meter: Meter, row: tuple[str, str, str, tuple[float, ...]]) -> Histogram:
    name, unit, description, boundaries = row
    return meter.create_histogram(
        name, unit=unit, description=description, explicit_bucket_boundaries_advisory=boundaries
    )
