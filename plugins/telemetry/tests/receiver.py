"""An OTLP receiver, a process of its own: takes traces and metrics over HTTP, and prints what they hold, a line each.

Run as ``python receiver.py``: the first line that it prints is its port.
"""

from __future__ import annotations

import gzip
import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


def value(any_value: Any) -> Any:
    kind = any_value.WhichOneof("value")
    if kind == "array_value":
        return [value(each) for each in any_value.array_value.values]
    return getattr(any_value, kind)


def attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: value(pair.value) for pair in pairs}


def say(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def traces(body: bytes) -> bytes:
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                say(
                    span=span.name,
                    id=span.span_id.hex(),
                    trace=span.trace_id.hex(),
                    parent=span.parent_span_id.hex(),
                    links=[link.span_id.hex() for link in span.links],
                    status=span.status.code,
                    scope=scope.scope.name,
                    schema=scope.schema_url,
                    attributes=attributes(span.attributes),
                )
    return bytes(ExportTraceServiceResponse().SerializeToString())


def metrics(body: bytes) -> bytes:
    for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                points = metric.histogram.data_points
                say(metric=metric.name, unit=metric.unit, count=sum(point.count for point in points))
    return bytes(ExportMetricsServiceResponse().SerializeToString())


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        answer = {"/v1/traces": traces, "/v1/metrics": metrics}[self.path](body)
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        """Say nothing but what is received."""


if __name__ == "__main__":
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    say(port=server.server_port)
    server.serve_forever()
