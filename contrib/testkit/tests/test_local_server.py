"""The local server says exactly what it is told to, and counts who is connected."""

from __future__ import annotations

import gc
import http.client
import json
import socket
import threading
from contextlib import closing

import pytest

from locus_testkit.hostile import TABLE, Answer, LocalServer


def ask(server: LocalServer, path: str = "/", body: bytes | None = None) -> http.client.HTTPResponse:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)) as connection:
        connection.request("POST" if body else "GET", path, body)
        with closing(connection.getresponse()) as response:
            response.data = response.read()  # type: ignore[attr-defined]
            return response


def raw(server: LocalServer) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as plug:
        plug.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        said = b""
        while data := plug.recv(4096):
            said += data
        return said


def test_answers_are_given_in_turn_and_requests_are_kept() -> None:
    with LocalServer(lambda request: Answer.of({"path": request.path})) as server:
        server.then(Answer(status=429, media_type="text/plain", body="slow", headers={"retry-after": "7"}))
        first, second = ask(server, "/a", b'{"x": 1}'), ask(server, "/b")
        assert (first.status, first.data, first.headers["retry-after"]) == (429, b"slow", "7")  # type: ignore[attr-defined]
        assert json.loads(second.data) == {"path": "/b"}  # type: ignore[attr-defined]
        assert [(r.method, r.path) for r in server.received] == [("POST", "/a"), ("GET", "/b")]
        assert server.received[0].json == {"x": 1}


def test_without_an_answer_it_says_so() -> None:
    def broken(_: object) -> Answer:
        raise LookupError("broken test")

    with LocalServer() as server:
        assert ask(server).status == 500
        server.answering = broken
        assert b"broken test" in ask(server).data  # type: ignore[attr-defined]


def test_events_are_chunks_of_their_own() -> None:
    with LocalServer() as server:
        server.then(Answer.events({"type": "a", "n": 1}, "text", named=True))
        response = ask(server)
        assert response.headers["content-type"] == "text/event-stream"
        assert response.data == b'event: a\ndata: {"type": "a", "n": 1}\n\ndata: text\n\ndata: [DONE]\n\n'  # type: ignore[attr-defined]


@pytest.mark.parametrize("chunked", [False, True])
def test_what_is_cut_promises_more_than_it_sends(chunked: bool) -> None:
    with LocalServer() as server:
        server.then(Answer(body="half", chunked=chunked, ending="cut"))
        with pytest.raises(http.client.IncompleteRead):
            ask(server)


def test_a_reset_is_not_an_end() -> None:
    with LocalServer() as server:
        server.then(Answer(status=0, ending="reset"))
        with pytest.raises(ConnectionResetError):
            raw(server)


def test_nothing_at_all_is_nothing_at_all() -> None:
    with LocalServer() as server:
        server.then(Answer(status=0, ending="cut"))
        assert raw(server) == b""


def test_connections_are_counted_while_they_are_open() -> None:
    with LocalServer() as server:
        server.then(Answer(status=0, ending="silent"), Answer(status=0, ending="silent"))
        plugs = [socket.create_connection(("127.0.0.1", server.port), timeout=10) for _ in range(2)]
        for plug in plugs:
            plug.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert server.wait_for(lambda: len(server.received) == 2)
        assert not server.wait_until_idle(0.05)
        assert (server.open, server.most, server.connections) == (2, 2, 2)
        for plug in plugs:
            plug.close()
        assert server.wait_until_idle()
        assert (server.open, server.most, server.connections) == (0, 2, 2)


def test_it_ends_with_its_block_also_while_clients_are_connected() -> None:
    before = threading.active_count()
    with LocalServer() as server:
        plug = socket.create_connection(("127.0.0.1", server.port), timeout=10)
        assert server.wait_for(lambda: server.open == 1)
    assert plug.recv(10) == b""
    plug.close()
    assert threading.active_count() == before


def test_the_table_has_a_row_for_each_way_to_fail() -> None:
    names = [case.name for case in TABLE]
    assert len(set(names)) == len(names)
    assert {case.status for case in TABLE} >= {
        400,
        401,
        402,
        403,
        404,
        408,
        409,
        413,
        422,
        429,
        500,
        502,
        503,
        504,
        529,
    }


@pytest.mark.filterwarnings("error")
def test_a_connection_that_comes_at_the_very_end_is_closed_too() -> None:
    for _ in range(20):
        with LocalServer() as server:
            connected = [socket.create_connection(("127.0.0.1", server.port), timeout=10) for _ in range(3)]
        for each in connected:
            each.close()
        assert server.open == 0
    # Collecting an open socket emits a ResourceWarning, which fails this test.
    gc.collect()
