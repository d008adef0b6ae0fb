"""Who may ask: the host, the token, the session, the origin, and the policy of the pages."""

from __future__ import annotations

import http.client
from collections.abc import Iterator

import httpx
import pytest

from locus.journal import JournalHost, MemoryStore

from .servers import TOKEN, Served, serving
from .shop import fill


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(MemoryStore) as found:
        found.run(lambda: fill(found.viewer.store))
        yield found


def test_without_the_token_nothing_is_shown(served: Served) -> None:
    for path in ("/", "/thread?id=run-1", "/thread/export?id=run-1", "/thread/events?id=run-1", "/?token=wrong"):
        answer = httpx.get(f"{served.address}{path}")
        assert answer.status_code == 401
        assert "order" not in answer.text
        assert "set-cookie" not in answer.headers


def test_the_token_is_good_once_and_gives_a_strict_cookie(served: Served) -> None:
    first = httpx.get(served.address, params={"token": TOKEN})
    assert first.status_code == 303
    cookie = first.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert TOKEN not in cookie
    assert httpx.get(served.address, params={"token": TOKEN}).status_code == 401


def test_the_cookie_of_another_session_is_refused(served: Served) -> None:
    with served.client() as client:
        (name,) = client.cookies.keys()
    assert name == f"locus-view-{httpx.URL(served.address).port}"
    assert httpx.get(served.address, headers={"cookie": f"{name}=guess"}).status_code == 401


@pytest.mark.parametrize(
    "other", ["a=1", "user[name]=1", 'prefs={"a": 1}', "a=b c", "a/b=1", 'a="x y', "alone", "=", "\xff=\xfe", ";;", '"']
)
def test_the_cookies_of_other_programs_do_not_hide_the_session(served: Served, other: str) -> None:
    with served.client() as client:
        ((name, session),) = client.cookies.items()
    own = f"{name}={session}"
    for together in (f"{other}; {own}", f"{own}; {other}", f"{other};{own};{other}"):
        assert httpx.get(served.address, headers={b"cookie": together.encode("latin-1")}).status_code == 200
        guess = together.replace(session, "guess").encode("latin-1")
        assert httpx.get(served.address, headers={b"cookie": guess}).status_code == 401


def test_of_two_cookies_with_the_name_of_the_session_one_must_be_right(served: Served) -> None:
    with served.client() as client:
        ((name, session),) = client.cookies.items()
    for values, status in (
        (["old", session], 200),
        ([session, "old"], 200),
        (["", session], 200),
        (["old", "older"], 401),
        (["", ""], 401),
        ([session[:-1], f"{session}x"], 401),
    ):
        header = "; ".join(f"{name}={value}" for value in values)
        assert httpx.get(served.address, headers={"cookie": header}).status_code == status
    assert httpx.get(served.address, headers={"cookie": f"x{name}={session}"}).status_code == 401
    assert httpx.get(served.address, headers={"cookie": f"x={name}={session}"}).status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost@evil.example", "", "[::1", "127.0.0.1:x"]
)
def test_a_foreign_host_is_refused_with_the_right_cookie(served: Served, host: str) -> None:
    with served.client() as client:
        assert client.get("/", headers={"host": host}).status_code in (400, 421)
        assert client.get("/static/viewer.css", headers={"host": host}).status_code in (400, 421)
        assert client.get("/").status_code == 200


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "https://127.0.0.1", "http://127.0.0.1"])
def test_another_origin_changes_nothing(served: Served, origin: str | None) -> None:
    with served.client() as client:
        headers = {} if origin is None else {"origin": origin}
        client.headers.pop("origin")
        answer = client.post("/thread/cancel", data={"id": "run-5"}, headers=headers)
        assert answer.status_code == 403
    assert served.run(lambda: served.viewer.store.signals("run-5")) == ()  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", ["/thread/answer", "/thread/cancel", "/thread/resume", "/thread/fork"])
def test_read_only_refuses_every_change(path: str) -> None:
    with serving(MemoryStore, read_only=True) as served, served.client() as client:
        served.run(lambda: fill(served.viewer.store))
        before = served.run(served.viewer.store.threads)
        form = {"id": "run-5", "question": "0/execute/0", "answer": "yes", "n": "3"}
        assert client.post(path, data=form).status_code == 403
        assert served.run(served.viewer.store.threads) == before
        page = client.get("/thread", params={"id": "run-5"}).text
        assert 'method="post"' not in page.replace('class="ask" action="/thread/answer" method="post"', "")
        assert "<button name=" not in page


@pytest.mark.parametrize("path", ["/thread/answer", "/thread/cancel", "/thread/resume", "/thread/fork"])
def test_a_link_changes_nothing(served: Served, path: str) -> None:
    with served.client() as client:
        assert client.get(path, params={"id": "run-5"}).status_code == 405


def test_pages_allow_no_inline_script_and_load_nothing_from_elsewhere(served: Served) -> None:
    with served.client() as client:
        for path in ("/", "/thread?id=run-4", "/static/viewer.js", "/nowhere", "/thread?id=nobody"):
            headers = client.get(path).headers
            policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
            assert policy["default-src"] == "'none'"
            assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
            assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
            assert headers["x-content-type-options"] == "nosniff"
        assert client.get("/").headers["cache-control"] == "no-store"


def test_static_files_stay_in_their_folder(served: Served) -> None:
    target = httpx.URL(served.address)
    for path in ("/static/../viewer.py", "/static/%2e%2e/viewer.py", "/static//etc/passwd"):
        connection = http.client.HTTPConnection(target.host, target.port)  # sends the path as it is
        connection.request("GET", path)
        assert connection.getresponse().status in (401, 404)
        connection.close()


def test_a_form_that_is_not_one_is_refused(served: Served) -> None:
    with served.client() as client:
        assert client.post("/thread/cancel", json={"id": "run-5"}).status_code == 400
        assert client.post("/thread/cancel", data={"id": "run-5", "reason": "x" * 2_000_000}).status_code == 400
    host = served.run(lambda: JournalHost.peek(served.viewer.store, "run-5"))
    assert host.open_questions
