"""The settings of the plugin: the table ``[plugins.telemetry]``."""

from __future__ import annotations

from attrs import field, frozen
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider

from locus_kit.validators import integer

__all__ = ["TelemetrySettings"]


@frozen(kw_only=True)
class TelemetrySettings:
    """What is traced and measured.

    Args:
        content: put prompts, arguments, results, answers and messages of errors on the spans. None asks the environment
            variable ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT``.
        max_chars: how much of a text a span has, in characters.
        metrics: measure tokens and durations.
        link: let a resumed run's trace link to that of its first segment, which is kept in the state's metadata.
        tracer_provider: where spans go; None = the global provider, whenever the program sets it.
        meter_provider: where measurements go; None = the global provider.
    """

    content: bool | None = None
    max_chars: int = field(default=10_000, validator=integer(1))
    metrics: bool = True
    link: bool = True
    tracer_provider: TracerProvider | None = None
    meter_provider: MeterProvider | None = None
