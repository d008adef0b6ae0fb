"""``locus worker --metrics``: what a real worker serves to Prometheus, and what it says of its health."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from plugins.cli.tests.conftest import Locus
from prometheus_client.parser import text_string_to_metric_families

from .processes import PATIENCE, Process, charges, until

Start = Callable[..., Process]
Threads = Callable[..., list[str]]

#: Quotes, a backslash and a new line, as a tenant may be called.
HOSTILE = 'ten"ant\\ one\n# HELP forged 1\nforged 1'


def address(worker: Process) -> str:
    """Where the metrics are, as the worker prints it."""
    lines = until(lambda: [line for line in worker.said if "metrics: " in line], "the address of the metrics")
    return str(lines[0].rpartition(" ")[2].strip())


def get(url: str, path: str = "/metrics") -> tuple[int, str, str]:
    """Status, kind and text of an answer."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE)
    connection.request("GET", path)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.headers["Content-Type"], text


def samples(text: str) -> dict[tuple[str, ...], float]:
    """Values by name and labels, as a parser of Prometheus reads them."""
    return {
        (sample.name, *(f"{key}={value}" for key, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_worker_serves_what_it_does_and_what_its_runs_cost(here: Path, start: Start, threads: Threads) -> None:
    (thread,) = threads("shop:slow")
    worker = start("worker", "shop:slow", "--slots", "3", "--queue", HOSTILE, "--metrics")
    url = address(worker)
    assert url.startswith("http://127.0.0.1:")
    until(lambda: any(what == "gate" for _, what in charges(here)), "the gate")
    held = ("locus_queue_depth", "queue=slow", "state=held")
    until(lambda: samples(get(url)[2]).get(held) == 1, "a look into the queues")

    status, kind, text = get(url)
    found = samples(text)
    assert (status, kind.partition(";")[0]) == (200, "text/plain")
    assert found["locus_worker_runs_taken_total",] == 1
    assert found["locus_worker_slots",] == 3
    assert found["locus_worker_slots_in_use",] == 1
    assert 0 <= found["locus_worker_loop_age_seconds",] < PATIENCE
    assert found["locus_tool_calls_total", "outcome=ok", "tool=charge"] == 1
    assert found["locus_queue_depth", f"queue={HOSTILE}", "state=ready"] == 0
    assert not [name for name, *_ in found if name.startswith("forged")]
    assert get(url, "/healthz")[::2] == (200, "ok\n")
    assert get(url, "/")[0] == 404

    (here / "gate").touch()
    worker.expect("done")
    text = get(url)[2]
    found = samples(text)
    outcomes = {labels[0]: value for (name, *labels), value in found.items() if name == "locus_worker_runs_total"}
    assert outcomes == {"outcome=done": 1, "outcome=failed": 0, "outcome=yielded": 0, "outcome=lost": 0}
    assert found["locus_worker_slots_in_use",] == 0
    assert found["locus_model_calls_total",] == 4
    assert found["locus_tokens_total", "type=input"] > 0
    assert found["locus_tokens_total", "type=output"] > 0
    assert thread not in text


def test_health_fails_while_the_event_loop_hangs(here: Path, start: Start, threads: Threads) -> None:
    shutil.copy(Path(__file__).with_name("hanging.py"), here)
    threads("hanging:agent")
    worker = start("worker", "hanging:agent", "--stuck-after", "0.5", "--metrics", "127.0.0.1:0")
    url = address(worker)

    until(lambda: get(url, "/healthz")[0] == 500, "a loop that hangs")
    assert "the event loop has not turned for" in get(url, "/healthz")[2]
    assert samples(get(url)[2])["locus_worker_loop_age_seconds",] > 0.5
    (here / "gate").touch()

    until(lambda: get(url, "/healthz")[0] == 200, "a loop that turns again")


def test_an_address_without_a_host_is_refused(locus: Locus) -> None:
    done = locus("worker", "shop:agent", "--metrics", ":9464", "-p", "telemetry", "--checkpointer", "runs.db")

    assert done.status == 2
    assert "write 9464 to serve this machine alone, or 0.0.0.0:9464" in done.err


def test_without_a_plugin_that_serves_metrics_the_package_is_named(locus: Locus) -> None:
    done = locus("worker", "shop:agent", "--metrics", "0", "-p", "no:telemetry", "--checkpointer", "runs.db")

    assert done.status == 2
    assert "pip install 'locus-plugin-telemetry[prometheus]'" in done.err
