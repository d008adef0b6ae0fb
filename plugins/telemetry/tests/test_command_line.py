"""``locus run -p telemetry``: it sends what the usual variables say, and says so where it sends nothing."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from .test_otlp import Receiving, receiving

__all__ = ["receiving"]

Process = Callable[..., Any]

RUN = ("run", "Hello", "-m", "toy:verbatim", "-q", "-p", "telemetry")


def test_the_usual_variables_make_the_command_send_its_trace_and_its_measurements(
    process: Process, receiving: Receiving
) -> None:
    done = process(*RUN, OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{receiving.port}")

    assert (done.status, done.out, done.err) == (0, "Hello\n", "")
    received = receiving.stop()
    spans = [line for line in received if "span" in line]
    assert sorted(line["span"] for line in spans) == ["chat verbatim", "invoke_agent locus-cli", "iteration"]
    assert {line["schema"] for line in spans} == {"https://opentelemetry.io/schemas/1.44.0"}
    assert "gen_ai.client.token.usage" in {line.get("metric") for line in received}


def test_one_signal_can_be_left_out(process: Process, receiving: Receiving) -> None:
    at = f"http://127.0.0.1:{receiving.port}"
    process(*RUN, OTEL_EXPORTER_OTLP_ENDPOINT=at, OTEL_METRICS_EXPORTER="none")

    assert {"span" in line for line in receiving.stop()} == {True}


def test_without_an_exporter_the_command_says_that_nothing_is_sent(process: Process) -> None:
    done = process(*RUN)

    assert (done.status, done.out) == (0, "Hello\n")
    assert done.lines == [
        "locus: telemetry: nothing is sent, because no exporter is configured: set OTEL_EXPORTER_OTLP_ENDPOINT, "
        "for example to http://127.0.0.1:4318"
    ]


def test_an_exporter_that_is_not_installed_is_named(process: Process) -> None:
    done = process(*RUN, OTEL_TRACES_EXPORTER="jaeger")

    assert done.status == 0
    assert "OTEL_TRACES_EXPORTER is 'jaeger'" in done.err


def test_a_receiver_that_is_not_there_is_one_line_and_harms_nothing(process: Process) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        at = f"http://127.0.0.1:{taken.getsockname()[1]}"
        done = process(*RUN, OTEL_EXPORTER_OTLP_ENDPOINT=at, OTEL_EXPORTER_OTLP_TIMEOUT="1")

    assert (done.status, done.out) == (0, "Hello\n")
    assert len(done.lines) == 1
    assert done.err.startswith("locus: telemetry: not everything was sent: ")


def test_the_console_exporter_leaves_the_output_alone(process: Process) -> None:
    done = process(*RUN, OTEL_TRACES_EXPORTER="console")

    assert done.out == "Hello\n"
    assert '"name": "invoke_agent locus-cli"' in done.err
