"""Connections, deadlines, keys: what a provider relies on when it asks."""

from __future__ import annotations

import gc
import logging
import threading
import traceback
from collections.abc import Iterator, Mapping
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from locus.core.errors import ConfigError, InputError, ModelError
from locus.plugins import Secret
from locus_testkit.localserver import Answer, LocalServer, ReceivedRequest
from locus_wire import Client, Endpoint, Event, Outgoing, join_fields, json_bytes
from locus_wire.errors import BadAnswer, KeyRefused, TooLate, Unreachable
from locus_wire.keys import Key

pytestmark = pytest.mark.anyio


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with LocalServer(lambda request: Answer.of({"path": request.path})) as server:
        yield server


def client(server: LocalServer, **options: Any) -> Client:
    return Client(Endpoint(provider="acme", base_url=f"{server.url}/v1/", **options))


def itself(data: Any) -> Any:
    return data


async def test_an_address_and_a_path_make_one(server: LocalServer) -> None:
    asking = client(server, query={"api-version": "2025"}, headers={"X-Team": "a"})
    assert await asking.post("/chat", b"{}", itself) == {"path": "/v1/chat?api-version=2025"}
    assert await asking.get("/models", itself) == {"path": "/v1/models?api-version=2025"}
    posted, got = server.received
    assert (posted.method, got.method) == ("POST", "GET")
    assert posted.headers["x-team"] == "a"
    assert posted.headers["content-type"] == "application/json"
    assert "content-type" not in got.headers


async def test_calls_in_a_session_share_a_connection_and_it_ends_with_the_session(server: LocalServer) -> None:
    asking = client(server)
    async with asking.session():
        assert server.connections == 0
        for _ in range(3):
            await asking.get("/", itself)
        async with asking.session():
            await asking.get("/", itself)
        await asking.get("/", itself)
        assert (server.connections, server.open) == (1, 1)
    assert server.wait_until_idle()
    await asking.get("/", itself)
    assert server.wait_until_idle()
    assert server.connections == 2


async def test_streams_in_a_session_share_a_connection(server: LocalServer) -> None:
    asking = client(server)
    server.answering = lambda _: Answer.events({"a": 1})

    async def take(event: Event) -> bool:
        return event.data == "[DONE]"

    async with asking.session():
        for _ in range(3):
            await asking.events("/", b"{}", take)
    assert server.connections == 1


async def test_a_stream_that_is_not_closed_after_its_last_event_holds_nobody_up(server: LocalServer) -> None:
    server.answering = lambda _: Answer.events({"a": 1}, ending="silent")

    async def take(event: Event) -> bool:
        return event.data == "[DONE]"

    with anyio.fail_after(5):
        await client(server).events("/", b"{}", take)
    assert server.wait_until_idle()


async def test_connections_are_bounded_and_everybody_is_answered(server: LocalServer) -> None:
    asking = client(server, connections=3)
    answers = []

    async def ask(number: int) -> None:
        answers.append((await asking.get(f"/{number}", itself))["path"])

    async with asking.session(), anyio.create_task_group() as group:
        for number in range(30):
            group.start_soon(ask, number)
    assert sorted(answers) == sorted(f"/v1/{number}" for number in range(30))
    assert server.most <= 3
    assert server.wait_until_idle()


async def test_waiting_for_a_connection_ends_with_the_deadline(server: LocalServer) -> None:
    server.answering = lambda _: Answer(status=0, ending="silent")
    asking = client(server, connections=1)

    async def ask() -> None:
        with pytest.raises(TooLate, match="did not answer before the deadline"):
            await asking.get("/", itself, deadline=anyio.current_time() + 0.1)

    with anyio.fail_after(5):
        async with asking.session(), anyio.create_task_group() as group:
            group.start_soon(ask)
            group.start_soon(ask)
    assert server.wait_until_idle()


async def test_a_deadline_in_the_past_asks_nobody(server: LocalServer) -> None:
    with pytest.raises(TooLate) as caught:
        await client(server).get("/", itself, deadline=anyio.current_time() - 1)
    assert not caught.value.retryable
    assert server.received == []


async def test_time_of_a_call_and_silence_are_settings(server: LocalServer) -> None:
    server.answering = lambda _: Answer(body=(b" ",), repeat=1000, pause=0.02, chunked=True)
    with pytest.raises(TooLate, match=r"within 0\.1 s") as late:
        await client(server, timeout=0.1).get("/", itself)
    server.answering = lambda _: Answer(status=0, ending="silent")
    with pytest.raises(TooLate, match=r"sent nothing for 0\.1 s") as silent:
        await client(server, silence=0.1).get("/", itself)
    assert late.value.retryable
    assert silent.value.retryable
    assert server.wait_until_idle()


async def test_an_answer_larger_than_any_is_refused(server: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("locus_wire.client.LARGEST_ANSWER", 10_000)
    server.answering = lambda _: Answer(body=b"1" * 5000, repeat=1000)
    with pytest.raises(BadAnswer, match="more than 10,000 bytes"):
        await client(server).get("/", itself)
    assert server.wait_until_idle()


async def test_a_signer_sees_what_is_sent_and_may_wait(server: LocalServer) -> None:
    seen: list[Outgoing] = []

    async def sign(outgoing: Outgoing) -> Mapping[str, str]:
        await anyio.lowlevel.checkpoint()
        seen.append(outgoing)
        return {"authorization": "Signature x"}

    await client(server, sign=sign).post("/say", b'{"a":1}', itself)
    assert (seen[0].method, seen[0].url, seen[0].body) == ("POST", f"{server.url}/v1/say", b'{"a":1}')
    assert server.received[0].headers["authorization"] == "Signature x"


async def test_a_plain_address_is_asked_directly_whatever_proxy_there_is(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LocalServer(lambda _: Answer.of({"stolen": True})) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        assert await client(server).get("/", itself) == {"path": "/v1/"}
        assert proxy.connections == 0


async def test_cookies_are_not_kept(server: LocalServer) -> None:
    server.answering = lambda _: Answer.of({}, headers={"set-cookie": "run=1; Path=/"})
    asking = client(server)
    async with asking.session():
        await asking.get("/", itself)
        await asking.get("/", itself)
    assert "cookie" not in server.received[1].headers


async def test_one_client_serves_event_loops_in_several_threads(server: LocalServer) -> None:
    asking = client(server)
    failed: list[BaseException] = []

    async def several() -> None:
        async with asking.session():
            for _ in range(5):
                await asking.get("/", itself)

    def work() -> None:
        try:
            anyio.run(several)
        except Exception as e:  # noqa: BLE001  # a thread has nobody to raise it to
            failed.append(e)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await anyio.to_thread.run_sync(thread.join)
    assert failed == []
    assert server.connections == 4
    assert server.wait_until_idle()


async def test_what_takes_an_event_may_raise_and_nothing_is_left_to_the_collector(server: LocalServer) -> None:
    server.answering = lambda _: Answer.events(*({"n": n} for n in range(50)))

    async def take(event: Event) -> bool:
        raise LookupError("enough")

    asking = client(server)
    async with asking.session():
        with pytest.raises(LookupError, match="enough"):
            await asking.events("/", b"{}", take)
        gc.collect()
        assert await _is_idle(server)
        # The pool is as good as before.
        server.answering = lambda _: Answer.of({"fine": True})
        assert await asking.get("/", itself) == {"fine": True}


async def _is_idle(server: LocalServer) -> bool:
    return await anyio.to_thread.run_sync(server.wait_until_idle)


async def test_lines_of_json_are_events_too(server: LocalServer) -> None:
    body = [b'{"n": 1}\n{"n"', b': 2}\n\n{"done": true}']
    server.answering = lambda _: Answer(media_type="application/x-ndjson", body=body, chunked=True)
    seen: list[str] = []

    async def take(event: Event) -> bool:
        seen.append(event.data)
        return "done" in event.data

    await client(server).lines("/", b"{}", take)
    assert seen == ['{"n": 1}', '{"n": 2}', '{"done": true}']


async def test_an_answer_in_the_place_of_a_stream_is_not_a_stream(server: LocalServer) -> None:
    server.answering = lambda _: Answer.of({"text": "pong"})

    async def take(event: Event) -> bool:
        raise AssertionError

    with pytest.raises(BadAnswer, match="asked for text/event-stream, got application/json"):
        await client(server).events("/", b"{}", take)


async def test_a_token_that_expires_is_asked_for_with_each_request(server: LocalServer) -> None:
    tokens = iter(["token-0001", "token-0002"])
    key = Key(provider="acme", given=Secret(lambda: next(tokens)))
    asking = Client(Endpoint.with_key(key, server.url))
    server.then(Answer.of({}), Answer.of({"message": "token-0002 has ended"}, status=401))
    await asking.get("/", itself)
    with pytest.raises(KeyRefused) as caught:
        await asking.get("/", itself)
    assert [each.headers["authorization"] for each in server.received] == ["Bearer token-0001", "Bearer token-0002"]
    assert "token-0002" not in str(caught.value)


@pytest.mark.parametrize("media_type", ["text/plain", "application/json", "application/octet-stream", "", None])
@pytest.mark.parametrize("begins", ["", "\n\n", ": keep-alive\n\n", "event: message\n", "\ufeff"])
async def test_a_stream_is_read_by_its_content(server: LocalServer, media_type: str | None, begins: str) -> None:
    server.answering = lambda _: Answer(
        media_type=media_type, body=f'{begins}data: {{"n": 1}}\n\ndata: {{"n": "é"}}\n\ndata: [DONE]\n\n'
    )
    seen = []

    async def take(event: Event) -> bool:
        seen.append(event.data)
        return event.data == "[DONE]"

    await client(server).events("/", b"{}", take)
    assert seen == ['{"n": 1}', '{"n": "é"}', "[DONE]"]


@pytest.mark.parametrize("text", ["", "<html>data: x</html>", "Not found", "dat", '{"data": 1}'])
async def test_what_does_not_begin_like_a_stream_is_refused(server: LocalServer, text: str) -> None:
    server.answering = lambda _: Answer(media_type="text/plain", body=text)

    async def take(event: Event) -> bool:
        raise AssertionError

    with pytest.raises(BadAnswer, match="asked for text/event-stream, got text/plain"):
        await client(server).events("/", b"{}", take)


@pytest.mark.parametrize("url", ["", "host/v1", "ftp://host", "https://", "http://host:port", "file:///etc/passwd"])
async def test_an_invalid_address_is_refused_when_it_is_given(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url of acme"):
        Endpoint(provider="acme", base_url=url)


async def test_a_token_in_the_middle_of_a_signature_is_not_shown(server: LocalServer) -> None:
    """A server may repeat the part that it refuses, and not the header as a whole."""
    token = "session.0123456789abcdef"
    asking = client(server, sign=lambda _: {"authorization": f'Signature keyId="ST${token}",signature="c2ln"'})
    server.then(Answer.of({"message": f"the token {token} has ended"}, status=401))
    with pytest.raises(KeyRefused, match="has ended") as caught:
        await asking.get("/", itself)
    assert token not in str(caught.value)


async def test_a_password_in_the_address_is_not_shown(server: LocalServer) -> None:
    with LocalServer() as gone:
        url = gone.url.replace("http://", "http://me:hunter2@")
    asking = Client(Endpoint(provider="acme", base_url=url))
    with pytest.raises(Unreachable) as caught:
        await asking.get("/", itself)
    assert "hunter" not in f"{caught.value} {asking!r}"


async def test_a_password_in_the_address_is_sent_in_a_header_and_neither_quoted_nor_logged(
    server: LocalServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.then(Answer.of({"message": "not hunter2"}, status=401))
    url = server.url.replace("http://", "http://me:hunter2@")
    with pytest.raises(KeyRefused, match="not ") as caught:
        await Client(Endpoint(provider="acme", base_url=url)).get("/", itself)
    assert server.received[0].headers["authorization"] == "Basic bWU6aHVudGVyMg=="
    assert "hunter2" not in f"{caught.value} {caplog.text}"
    # A key that is given is meant.
    await Client(Endpoint(provider="acme", base_url=url, sign=lambda _: {"authorization": "Bearer x"})).get("/", itself)
    assert server.received[1].headers["authorization"] == "Bearer x"


@pytest.mark.parametrize("rest", ["?sig=hunter3", "#x"])
async def test_an_address_with_a_query_has_no_paths_behind_it(rest: str) -> None:
    with pytest.raises(ConfigError, match="leave out what follows") as caught:
        Endpoint(provider="acme", base_url=f"https://models.example/v1{rest}")
    assert "hunter" not in str(caught.value)


async def test_an_invalid_number_is_null_in_a_whole_answer_too(server: LocalServer) -> None:
    server.then(Answer(body=b'{"a": NaN, "b": -1e999, "c": 0.5}'))
    assert await client(server).get("/", itself) == {"a": None, "b": None, "c": 0.5}


async def test_a_body_is_the_same_for_the_same_messages() -> None:
    one, two = json_bytes({"role": "user", "content": "ä \ud83d"}), json_bytes([1])
    body = join_fields({"model": "m", "temperature": 0.5}, {"messages": [one, two], "tools": []})
    assert body == '{"messages":[{"role":"user","content":"ä \ufffd"},[1]],"model":"m","temperature":0.5}'.encode()
    assert join_fields({}, {"a": [b"1"]}) == b'{"a":[1]}'
    for odd in ({"a": object()}, {"a": float("nan")}):
        with pytest.raises(InputError, match="cannot be written as JSON"):
            json_bytes(odd)


async def test_a_request_that_was_seen_shows_its_json() -> None:
    assert ReceivedRequest(method="POST", path="/", headers={}, body=b'{"a": 1}').json == {"a": 1}


#: Parts of an answer in which a server may repeat the key that it was sent; ``KEY`` stands for it.
_REPEATED = {
    "the id of the request": Answer.of({"error": {"message": "no"}}, status=400, headers={"x-request-id": "KEY"}),
    "the id of no answer": Answer.of([], headers={"x-request-id": "KEY"}),
    "where it points": Answer(status=302, headers={"location": "https://KEY/v1"}),
    "the media type": Answer(media_type="text/KEY", body=b"hello"),
    "the line of the status": Answer(status=0, body=b"HTTP/1.1 KEY\r\n\r\n", ending="cut"),
    "a header that is none": Answer(status=0, body=b"HTTP/1.1 200 OK\r\nKEY\r\n\r\n", ending="cut"),
    "a field of another kind": Answer.of({"path": "KEY"}),
}


@pytest.mark.parametrize("part", _REPEATED)
async def test_a_key_is_not_shown_whatever_part_of_an_answer_repeats_it(server: LocalServer, part: str) -> None:
    key = "hush.0f1e2d3c4b5a"
    answer = _REPEATED[part]
    server.then(
        answer.with_fields(
            media_type=(answer.media_type or "").replace("KEY", key),
            headers={name: value.replace("KEY", key) for name, value in answer.headers.items()},
            body=[piece.replace(b"KEY", key.encode()) for piece in answer.body],
        )
    )
    asking = client(server, sign=lambda _: {"x-api-key": key})
    with pytest.raises(ModelError) as caught:
        await asking.get("/", lambda data: {}[data["path"]])
    assert key not in "".join(traceback.format_exception(caught.value))
    assert key not in repr(vars(caught.value))


@pytest.mark.parametrize("odd", ["hush\nhush", "hush\r\nx-more: hush", "hush\x01", "h\u00fcsh hush"])
async def test_a_key_that_no_header_may_hold_is_neither_sent_nor_shown(server: LocalServer, odd: str) -> None:
    """Such as a file with two lines, read whole."""
    asking = client(server, sign=lambda _: {"x-api-key": odd})
    with pytest.raises(Unreachable, match="'x-api-key' contains a character that is not allowed there") as caught:
        await asking.get("/", itself)
    assert "hush" not in "".join(traceback.format_exception(caught.value))
    assert (server.received, caught.value.retryable) == ([], False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-org", "a\r\nx-more: b"),
        ("x-org", "a\nb"),
        ("x-org", " a"),
        ("x-org", "\u00e4"),
        ("x-org\r\nx", "a"),
        ("", "a"),
    ],
)
def test_a_header_of_the_settings_that_cannot_be_sent_is_refused_before_there_is_a_request(
    name: str, value: str
) -> None:
    with pytest.raises(ConfigError, match=r"toy: the (name|value) of"):
        Endpoint(provider="toy", base_url="https://toy.example/v1", headers={name: value})
    Endpoint(provider="toy", base_url="https://toy.example/v1", headers={"x-org": "a b", "X_1": ""})
