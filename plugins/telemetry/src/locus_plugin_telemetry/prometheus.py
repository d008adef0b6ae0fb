"""What a worker does, for Prometheus: ``/metrics``, and ``/healthz``, which fails while the event loop hangs.

The server has threads of its own, so that it answers while the loop does not. Labels are bounded: what a program or a
command line has named. Threads and runs are not among them, and a name that a model made up is ``_OTHER``.
"""

from __future__ import annotations

import re
import socketserver
import threading
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from socket import AF_INET, AF_INET6
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from locus import ModelCompleteEvent, ToolCompleteEvent, ToolStartEvent
from locus.core.errors import ConfigError, LocusError
from locus.core.events import Event
from locus.journal import QueueDepth
from locus.plugin import Lazy
from locus_plugin_telemetry import conventions as c
from locus_plugin_telemetry.failures import FailureLog, HasFailureLog, log_errors
from locus_plugin_telemetry.spans import clean

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

__all__ = ["Endpoint", "Watched", "read_address"]

# An extra: a program that sends what it measures does without it.
_client: Any = Lazy("prometheus_client")
_core: Any = Lazy("prometheus_client.core")
_exposition: Any = Lazy("prometheus_client.exposition")

_LOOPBACK = "127.0.0.1"
_ADDRESS = re.compile(r"(?:(?P<host>\[[^\]]+\]|[^:\[\]]*)(?P<colon>:))?(?P<port>\d{1,5})", re.ASCII)

#: Seconds between two looks into the queues, and how much longer than a look took the pause is at least.
_PAUSE, _SHARE = 2.0, 20.0

#: Seconds after which a client that sends nothing is left.
_PATIENCE = 10.0

#: Characters of a label, and how many tools have a series of their own.
_LABEL, _TOOLS = 100, 100

_OUTCOMES = ("done", "failed", "yielded", "lost")


class Watch(Protocol):
    """Knows when an event loop turned last; safe from any thread."""

    @property
    def age(self) -> float:
        """Seconds since then."""

    @property
    def stuck_after(self) -> float:
        """Seconds after which it hangs."""

    def is_alive(self) -> bool:
        """Whether it does not."""


class Watched(Protocol):
    """A worker, as it is while it works."""

    @property
    def slots(self) -> int:
        """How many runs at once."""

    @property
    def busy(self) -> int:
        """How many slots are in use."""

    @property
    def watch(self) -> Watch:
        """Of its event loop."""

    async def depths(self) -> Mapping[str, QueueDepth]:
        """What is in its queues; those that a pattern has found are one, under the pattern."""


def read_address(text: str) -> tuple[str, int]:
    """Host and port of ``PORT`` or ``HOST:PORT``; without a host this machine alone.

    Raises:
        ConfigError: it is neither.
    """
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found["port"]) > 65_535:
        raise ConfigError(f"--metrics: expected PORT or HOST:PORT, such as {_LOOPBACK}:9464, got {text!r}")
    if found["colon"] and not found["host"]:
        raise ConfigError(
            f"--metrics: expected a host before the port in {text!r}; write {found['port']} to serve this machine "
            f"alone, or 0.0.0.0{text} to serve every machine that can reach this one"
        )
    return (found["host"] or _LOOPBACK).strip("[]"), int(found["port"])


class Endpoint(HasFailureLog):
    """Counts what a worker and its runs do, and serves it.

    Args:
        address: where: ``PORT`` or ``HOST:PORT``; port 0 = a free one.

    Raises:
        ConfigError: the address cannot be read, or ``prometheus-client`` is not installed.
    """

    def __init__(self, address: str) -> None:
        self.failures = FailureLog()
        self._host, self._port = read_address(address)
        if find_spec("prometheus_client") is None:
            raise ConfigError(
                "--metrics needs the package prometheus-client: pip install 'locus-plugin-telemetry[prometheus]'"
            )
        self._registry: CollectorRegistry = _client.CollectorRegistry()
        counter = partial(_client.Counter, registry=self._registry)
        gauge = partial(_client.Gauge, registry=self._registry)
        self._taken = counter("locus_worker_runs_taken", "Runs that began in a slot.")
        self._redelivered = counter("locus_worker_runs_redelivered", "Runs that another worker had and did not end.")
        self._ended = counter("locus_worker_runs", "Runs that left their slot, by what became of them.", ["outcome"])
        for outcome in _OUTCOMES:
            self._ended.labels(outcome)
        self._seconds = _client.Histogram(
            "locus_worker_run_duration_seconds",
            "How long runs that ended were in their slot.",
            buckets=c.WORKER_DURATION[3],
            registry=self._registry,
        )
        self._errors = counter("locus_worker_errors", "Errors of the store.")
        self._slots = gauge("locus_worker_slots", "How many runs at once.")
        self._busy = gauge("locus_worker_slots_in_use", "Runs that are in a slot now.")
        self._age = gauge("locus_worker_loop_age_seconds", "Seconds since the event loop turned last.")
        self._depths = _Depths()
        self._registry.register(self._depths)
        self._tokens = counter("locus_tokens", "Tokens of model calls.", ["type"])
        self._dollars = counter("locus_cost_dollars", "Dollars of model calls whose price is known.")
        self._models = counter("locus_model_calls", "Model calls that were answered.")
        self._tools = counter("locus_tool_calls", "Tool calls that ended, by tool and outcome.", ["tool", "outcome"])
        self._known: set[str] = set()

    # -- what is counted --------------------------------------------------------------------------

    @log_errors
    def on_notice(self, notice: Any) -> None:
        """Count one notice of a worker; see `WorkerMetrics` for what it has."""
        if notice.kind == "taken":
            self._taken.inc()
            if notice.delivered > 1:
                self._redelivered.inc()
        elif notice.kind == "lost":
            self._ended.labels("lost").inc()
        elif notice.kind == "done":
            self._ended.labels("failed" if notice.is_failure else "done").inc()
            self._seconds.observe(notice.seconds)
        elif notice.kind == "back":
            self._ended.labels("failed" if notice.is_failure else "yielded").inc()
        elif notice.kind == "error":
            self._errors.inc()

    @log_errors
    def on_event(self, event: Event) -> None:
        """Count one event of a run."""
        if event.replayed:
            return
        if isinstance(event, ModelCompleteEvent):
            self._models.inc()
            self._tokens.labels("input").inc(event.usage.prompt_tokens)
            self._tokens.labels("output").inc(event.usage.completion_tokens)
            self._dollars.inc(event.usage.cost or 0.0)
        elif isinstance(event, ToolStartEvent):
            # A body begins, so the name is not one that the model made up.
            if len(self._known) < _TOOLS:
                self._known.add(event.tool_name)
        elif isinstance(event, ToolCompleteEvent):
            name = _label(event.tool_name) if event.tool_name in self._known else c.OTHER
            self._tools.labels(name, "ok" if event.error is None else "error").inc()

    # -- what is served ---------------------------------------------------------------------------

    @asynccontextmanager
    async def serve(self, worker: Watched) -> AsyncIterator[str]:
        """Serve while the worker works; gives the address of ``/metrics``.

        Raises:
            ConfigError: the address is taken, or is not one of this machine.
        """
        self._slots.set_function(lambda: worker.slots)
        self._busy.set_function(lambda: worker.busy)
        self._age.set_function(lambda: worker.watch.age)
        try:
            server = _Server((self._host, self._port), partial(_Handler, self._registry, worker.watch))
        except OSError as e:
            raise ConfigError(f"--metrics cannot listen on {self._host}:{self._port}: {e}") from e
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="locus metrics", daemon=True)
        thread.start()
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._look_after, worker)
                host = f"[{self._host}]" if ":" in self._host else self._host
                yield f"http://{host}:{server.server_address[1]}/metrics"
                group.cancel_scope.cancel()
        finally:
            server.shutdown()
            server.server_close()
            thread.join(_PATIENCE)

    async def _look_after(self, worker: Watched) -> None:
        while True:
            began = anyio.current_time()
            await self._read_depths(worker)
            await anyio.sleep(max(_PAUSE, _SHARE * (anyio.current_time() - began)))

    async def _read_depths(self, worker: Watched) -> None:
        try:
            found = await worker.depths()
        except LocusError as e:
            self.failures.failure(e)
            found = {}  # a value that is not known any more is not shown
        self._depths.found = found


class _Depths:
    """What is in the queues, as the newest look has it: all of a look, or nothing of it."""

    found: Mapping[str, QueueDepth] = {}

    def collect(self) -> Iterable[Any]:
        """The metrics of one request."""
        depths = _core.GaugeMetricFamily("locus_queue_depth", "Runs in a queue.", labels=["queue", "state"])
        waits = _core.GaugeMetricFamily(
            "locus_queue_oldest_seconds", "For how long the first ready run has waited.", labels=["queue"]
        )
        now = datetime.now(UTC)
        for queue, depth in self.found.items():
            for state in ("ready", "held", "sleeping"):
                depths.add_metric([_label(queue), state], getattr(depth, state))
            waited = 0.0 if depth.oldest is None else (now - depth.oldest).total_seconds()
            waits.add_metric([_label(queue)], max(0.0, waited))
        return depths, waits


def _label(text: str) -> str:
    """A text as the value of a label; quotes and new lines are escaped where it is written."""
    shown: str = clean(text)
    return shown if len(shown) <= _LABEL else f"{shown[:_LABEL]}..."


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: Any) -> None:
        self.address_family = AF_INET6 if ":" in address[0] else AF_INET
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Bind it, without asking a name server who this is, as the base class does."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client has left, or said nothing for too long."""


class _Handler(BaseHTTPRequestHandler):
    timeout = _PATIENCE

    def __init__(self, registry: CollectorRegistry, watch: Watch, *arguments: Any) -> None:
        self._registry, self._watch = registry, watch
        super().__init__(*arguments)

    def do_GET(self) -> None:
        """Answer one request."""
        path = self.path.partition("?")[0]
        if path == "/metrics":
            encode, kind = _exposition.choose_encoder(self.headers.get("Accept", ""))
            self._answer(200, encode(self._registry), kind)
        elif path == "/healthz":
            alive, age = self._watch.is_alive(), self._watch.age
            text = "ok" if alive else f"the event loop has not turned for {age:.1f} s"
            self._answer(200 if alive else 500, f"{text}\n".encode())
        else:
            self._answer(404, b"expected /metrics or /healthz\n")

    def _answer(self, status: int, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002  the base class's name
        """Say nothing: the output of the command is for what its runs do."""
