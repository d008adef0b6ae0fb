"""`Metrics`: what the server does, for Prometheus. No label has the name of a user, a thread or a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from locus.core.events import ModelCompleteEvent

if TYPE_CHECKING:
    from locus import AgentResult

__all__ = ["Metrics"]

_PREFIX: Final = "locus_serve"


class Metrics:
    """Counts of one server. Counting is an addition; what Prometheus reads is made when it asks.

    Args:
        running: how many runs are under way.
    """

    def __init__(self, running: Callable[[], int] = lambda: 0) -> None:
        self._running = running
        #: Requests that are open now, and those that were answered, by status.
        self.open_requests = 0
        self.requests: Counter[int] = Counter()
        #: Runs that began or went on, and those of earlier processes among them.
        self.begun = self.recovered = 0
        self._ended = dict.fromkeys(("done", "failed", "open"), 0)
        self._models, self._dollars = 0, 0.0
        self._tokens = {"input": 0, "output": 0}
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def hear(self, event: ModelCompleteEvent) -> None:
        """Count a model call."""
        self._models += 1
        self._tokens["input"] += event.usage.prompt_tokens
        self._tokens["output"] += event.usage.completion_tokens
        self._dollars += event.usage.cost or 0.0

    def end(self, result: AgentResult[Any] | None) -> None:
        """Count a run that has ended, or that was left open."""
        if result is None or result.is_open:
            self._ended["open"] += 1
        else:
            self._ended["failed" if result.failed else "done"] += 1

    def collect(self) -> Iterator[Metric]:
        """The metrics, as a collector of Prometheus has them."""
        yield _gauge("runs_in_progress", "Runs that are under way now.", self._running())
        yield _gauge("requests_in_progress", "Requests that are open now.", self.open_requests)
        yield _counter("requests", "Requests by their status.", status=self.requests)
        yield _counter("runs_begun", "Runs that began or went on.", self.begun)
        yield _counter("runs_recovered", "Runs of earlier processes that went on.", self.recovered)
        yield _counter("runs", "Runs that ended, by outcome.", outcome=self._ended)
        yield _counter("model_calls", "Model calls that were answered.", self._models)
        yield _counter("tokens", "Tokens of model calls.", type=self._tokens)
        yield _counter("cost_dollars", "Dollars of calls whose price is known.", self._dollars)

    def expose(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(self._registry)


def _gauge(name: str, about: str, value: float) -> Metric:
    return GaugeMetricFamily(f"{_PREFIX}_{name}", about, value=value)


def _counter(name: str, about: str, value: float | None = None, **by: dict[Any, int]) -> Metric:
    made = CounterMetricFamily(f"{_PREFIX}_{name}", about, value=value, labels=tuple(by) or None)
    for counts in by.values():
        for label, count in counts.items():
            made.add_metric([str(label)], count)
    return made
