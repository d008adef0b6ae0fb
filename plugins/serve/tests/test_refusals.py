"""What clients send that nobody can use: it is refused, and the server does not fail."""

from __future__ import annotations

import json
import logging
import socket
from typing import Any

import pytest

from .conftest import PATIENCE, StartServer, make_agent
from .processes import until


@pytest.mark.parametrize("role", [["user"], {}, {"a": 1}, 3, None, "robot"])
def test_a_role_that_does_not_exist_is_refused(start_server: StartServer, role: Any) -> None:
    server = start_server(make_agent("Hello."))
    message = {"role": role, "content": "Hi."}
    with server.client() as client:
        for path, body in (
            ("/v1/chat/completions", {"messages": [message]}),
            ("/v1/responses", {"input": [message]}),
        ):
            refused = client.post_json(path, model="shop", **body)
            assert (refused.status_code, refused.json()["error"]["param"]) == (400, f"{next(iter(body))}[0]")


def test_a_limit_of_thousands_of_digits_is_refused_by_name(start_server: StartServer) -> None:
    server = start_server(make_agent("Hello."))
    with server.client() as client:
        for limit in ("0" * 5000 + "5", "9" * 5000, "0", "101", "x", ""):
            refused = client.get("/api/threads", params={"limit": limit})
            assert (refused.status_code, refused.json()["error"]["param"]) == (400, "limit"), limit[:10]
        assert client.get("/api/threads?limit=05").status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b'{"\xed\xa0\x80": 1}',
        b'{"prompt": "Hi.", "\\ud800": 1}',
        '{"prompt": "Hi.", "\\ud800": 1}'.encode("utf-16"),
        b'{"prompt": "\xff"}',
    ],
    ids=["raw", "escaped", "utf-16", "no-text"],
)
def test_text_that_nothing_can_store_is_refused_wherever_it_is(start_server: StartServer, body: bytes) -> None:
    server = start_server(make_agent("Hello."))
    with server.client() as client:
        refused = client.post("/api/turns", content=body, headers={"Content-Type": "application/json"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid_input")


def test_a_method_that_a_path_does_not_have_is_an_error_as_any_other(start_server: StartServer) -> None:
    server = start_server(make_agent("Hello."))
    with server.client() as client:
        for method, path in (("GET", "/api/turns"), ("PUT", "/api/threads/a"), ("OPTIONS", "/mcp"), ("PUT", "/mcp")):
            refused = client.request(method, path)
            assert refused.status_code == 405
            assert refused.json()["error"]["code"] == "method_not_allowed"
            assert method not in refused.headers["allow"]
        assert client.get("/api/turns").headers["allow"] == "POST"
        assert 'locus_serve_requests_total{status="405"} 5.0' in client.get("/metrics").text


def test_a_client_that_leaves_in_the_middle_of_its_body_is_not_logged(
    start_server: StartServer, caplog: pytest.LogCaptureFixture
) -> None:
    server = start_server(make_agent("Hello."))
    host, port = server.url.removeprefix("http://").split(":")
    head = f"POST /api/turns HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    with caplog.at_level(logging.WARNING), server.client() as client:
        with socket.create_connection((host, int(port)), PATIENCE) as leaving:
            leaving.sendall(f"{head}{json.dumps({'prompt': 'Hi.'})}".encode())
            until(lambda: "locus_serve_requests_in_progress 2.0" in client.get("/metrics").text, "it to be there")
        until(lambda: "locus_serve_requests_in_progress 1.0" in client.get("/metrics").text, "it to have left")
        counted = client.get("/metrics").text
    assert 'status="499"} 1.0' in counted
    assert 'status="500"' not in counted
    assert not caplog.records
