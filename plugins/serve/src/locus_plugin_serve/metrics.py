"""`Metrics`: what the server does, for Prometheus. No label has the name of a user, a thread or a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from locus.core.events import ModelCompleteEvent

if TYPE_CHECKING:
    from locus import AgentResult

__all__ = ["Metrics"]


class Metrics:
    """Counters and gauges of one server."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self.running = Gauge("locus_serve_runs_in_progress", "Runs that are under way now.", registry=registry)
        self.requests_now = Gauge("locus_serve_requests_in_progress", "Requests that are open now.", registry=registry)
        self.requests = Counter("locus_serve_requests", "Requests by their status.", ["status"], registry=registry)
        self.runs = Counter("locus_serve_runs_begun", "Runs that began or went on.", registry=registry)
        self.recovered = Counter(
            "locus_serve_runs_recovered", "Runs of earlier processes that went on.", registry=registry
        )
        self._ended = Counter("locus_serve_runs", "Runs that ended, by outcome.", ["outcome"], registry=registry)
        for outcome in ("done", "failed", "open"):
            self._ended.labels(outcome)
        self._models = Counter("locus_serve_model_calls", "Model calls that were answered.", registry=registry)
        self._tokens = Counter("locus_serve_tokens", "Tokens of model calls.", ["type"], registry=registry)
        self._dollars = Counter("locus_serve_cost_dollars", "Dollars of calls whose price is known.", registry=registry)

    def hear(self, event: ModelCompleteEvent) -> None:
        """Count a model call."""
        self._models.inc()
        self._tokens.labels("input").inc(event.usage.prompt_tokens)
        self._tokens.labels("output").inc(event.usage.completion_tokens)
        self._dollars.inc(event.usage.cost or 0.0)

    def end(self, result: AgentResult[Any] | None) -> None:
        """Count a run that has ended, or that was left open."""
        if result is None or result.is_open:
            outcome = "open"
        else:
            outcome = "failed" if result.failed else "done"
        self._ended.labels(outcome).inc()

    def expose(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(self._registry)
