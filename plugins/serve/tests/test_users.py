"""Who may ask: tokens, the threads of each user, hosts, origins, and what never leaves the server."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping
from pathlib import Path

import pytest
from starlette.responses import Response

from locus.core.errors import ConfigError
from locus.plugins import Secret
from locus_plugin_serve import ServeSettings
from locus_plugin_serve.problems import Problem, as_problem
from locus_plugin_serve.users import COOKIE_SECONDS, Users
from locus_testkit import call

from .conftest import StartServer, make_agent

ALICE, BOB = secrets.token_hex(32), secrets.token_hex(32)
TOKENS: dict[str, str | Secret] = {"alice": ALICE, "bob": Secret(BOB)}


def test_only_a_token_lets_a_user_in(start_server: StartServer) -> None:
    server = start_server(make_agent("Hello."), tokens=TOKENS)
    for token, status in ((ALICE, 200), (BOB, 200), ("", 401), (ALICE[:-1], 401), (f"{ALICE}x", 401)):
        with server.client(token) as client:
            answer = client.get("/api/threads")
            assert (answer.status_code, answer.headers.get("www-authenticate")) == (
                status,
                None if status == 200 else "Bearer",
            )
    with server.client() as client:
        basic = client.get("/api/threads", headers={"Authorization": f"Basic {ALICE}"})
        assert basic.status_code == 401
        paths = ("/metrics", "/v1/models", "/nothing", "/api/threads/a/events")
        assert [client.get(path).status_code for path in paths] == [401] * 4
        assert client.get("/healthz").text == "ok\n"


def test_a_user_cannot_see_or_name_the_thread_of_another(start_server: StartServer) -> None:
    server = start_server(make_agent(call("ask", question="Sure?"), "Done."), tokens=TOKENS)
    with server.client(ALICE) as alice, server.client(BOB) as bob:
        own = alice.post_json("/api/threads/plan/turns", prompt="A secret of Alice.").json()
        assert own["interrupts"]
        for name in ("plan", "alice%2Fplan", "..%2Falice%2Fplan", "alice:plan"):
            assert bob.get(f"/api/threads/{name}").status_code in (400, 404)
            assert bob.get(f"/api/threads/{name}/events").status_code in (400, 404)
            for action in ({"answer": "yes"}, {"reason": "x"}):
                path = f"/api/threads/{name}/{'answers' if 'answer' in action else 'cancel'}"
                assert bob.post_json(path, **action).status_code in (400, 404)
        assert bob.get("/api/threads").json() == {"threads": []}
        assert bob.get("/api/threads", params={"after": "plan"}).status_code == 400
        # The same name is another thread, and nothing of the first one shows.
        assert bob.post_json("/api/threads/plan/turns", prompt="Bob's.").status_code == 200
        assert "Alice" not in bob.get("/api/threads/plan").text
        assert [each["title"] for each in alice.get("/api/threads").json()["threads"]] == ["A secret of Alice."]


def test_a_response_of_another_user_cannot_be_gone_on_with(start_server: StartServer) -> None:
    server = start_server(make_agent("Hello."), tokens=TOKENS)
    with server.client(ALICE) as alice, server.client(BOB) as bob:
        made = alice.post_json("/v1/responses", model="shop", input="A secret.").json()
        stolen = bob.post_json("/v1/responses", model="shop", input="And?", previous_response_id=made["id"])
        assert (stolen.status_code, stolen.json()["error"]["code"]) == (404, "unknown_thread")


def test_a_cookie_is_good_for_events_of_its_user_and_for_nothing_else(start_server: StartServer) -> None:
    server = start_server(make_agent("Hello."), tokens=TOKENS, hosts=["agents.example"])
    with server.client(ALICE) as alice, server.client(BOB) as bob, server.client() as page:
        alice.post_json("/api/threads/plan/turns", prompt="A secret.")
        given = alice.post("/api/cookie").headers["set-cookie"]
        name, value = given.partition(";")[0].split("=", 1)
        assert (name, ALICE in given) == (Users({}, "shop").cookie, False)
        assert {"HttpOnly", "Path=/api/threads", "SameSite=strict"} < set(given.split("; "))
        assert "Secure" not in given
        assert "Secure" in alice.post("/api/cookie", headers={"Host": "agents.example"}).headers["set-cookie"]
        other = bob.post("/api/cookie").headers["set-cookie"].partition(";")[0].partition("=")[2]

        def status(path: str, cookie: str, method: str = "GET", **headers: str) -> int:
            return page.request(method, path, headers={"Cookie": f"{name}={cookie}", **headers}).status_code

        assert status("/api/threads/plan/events", value) == 200
        assert status("/api/threads/plan/events", other) == 404
        paths = ("/api/threads", "/api/threads/plan", "/api/threads/plan/events/", "/metrics", "/v1/models")
        assert [status(path, value) for path in paths] == [401] * len(paths)
        assert [status(f"/api/{path}", value, "POST") for path in ("cookie", "threads/plan/cancel")] == [401] * 2
        assert status("/api/threads/plan/events", value, Origin="https://evil.example") == 403
        # What was not signed here, for this user, is nothing.
        changed = f"{value[:-1]}{'0' if value[-1] != '0' else '1'}"
        forged = (value.replace("alice", "bob"), changed, "", "alice:9.x", "alice:99999999999999999.x")
        assert [status("/api/threads/plan/events", each) for each in forged] == [401] * len(forged)
        assert status("/api/threads/plan/events", value, Authorization="Bearer x") == 401


@pytest.mark.parametrize("name", ["Support desk", "a;b=c", "Büro", "x" * 5_000])
def test_the_cookie_of_an_agent_with_any_name_can_be_set(name: str) -> None:
    users = Users({"alice": Secret(ALICE)}, name)
    answer = Response()
    answer.set_cookie(users.cookie, users.make_cookie("alice", 1_000.0))
    assert answer.headers["set-cookie"].startswith(f"{users.cookie}=")
    assert users.cookie != Users({}, "another").cookie


def test_a_cookie_ends_with_its_time_or_its_token() -> None:
    users = Users(ServeSettings(tokens=TOKENS).tokens, "shop")
    made = users.make_cookie("alice", 1_000.0)
    assert users.read_cookie(made, 999.0 + COOKIE_SECONDS) == "alice"
    others = (Users({**users_of(TOKENS), "alice": Secret("a" * 40)}, "shop"), Users(users_of(TOKENS), "bank"))
    for reader, now in ((users, 1_000.0 + COOKIE_SECONDS), *((each, 1_000.0) for each in others)):
        with pytest.raises(Problem, match="fetch a new one"):
            reader.read_cookie(made, now)
    later = made.replace(str(1_000 + COOKIE_SECONDS), str(9_000 + COOKIE_SECONDS))
    with pytest.raises(Problem, match="fetch a new one"):
        users.read_cookie(later, 1_000.0)
    assert Users({}, "shop").make_cookie("local", 1_000.0) == ""


def users_of(tokens: Mapping[str, str | Secret]) -> Mapping[str, Secret]:
    """The tokens as the settings have them."""
    return ServeSettings(tokens=tokens).tokens


def test_a_page_that_rebinds_its_name_is_refused(start_server: StartServer) -> None:
    server = start_server(make_agent("Hello."))
    with server.client() as client:
        for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "localhost.evil"):
            assert client.get("/api/threads", headers={"Host": host}).status_code == 421


def test_names_of_a_proxy_are_allowed_by_the_settings(start_server: StartServer) -> None:
    server = start_server(make_agent("Hello."), hosts=["agents.example"])
    with server.client() as client:
        for host in ("agents.example", "Agents.Example:443", "localhost:1", "127.0.0.1"):
            assert client.get("/api/threads", headers={"Host": host}).status_code == 200


def test_pages_of_other_origins_cannot_post(start_server: StartServer) -> None:
    server = start_server(make_agent("Hello."))
    with server.client() as client:
        for origin, status in (("https://evil.example", 403), ("null", 403), (server.url, 200)):
            answer = client.post("/api/turns", json={"prompt": "Hi."}, headers={"Origin": origin})
            assert (answer.status_code, "access-control-allow-origin" in answer.headers) == (status, False)
        # What a form or a script of a page may send without asking first is not taken.
        plain = client.post("/api/turns", content='{"prompt": "Hi."}', headers={"Content-Type": "text/plain"})
        assert plain.status_code == 415


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.org"])
def test_other_machines_are_not_served_without_tokens(host: str) -> None:
    with pytest.raises(ConfigError, match=r"no tokens are set"):
        ServeSettings(host=host).check_bind()
    ServeSettings(host=host, tokens=TOKENS).check_bind()


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        ({"alice": "short"}, "at least 32"),
        ({"alice": " " * 40}, "at least 32"),
        ({"alice": ALICE, "bob": ALICE}, "the same token"),
        ({"al/ice": ALICE}, "letters, digits"),
        ({"": ALICE}, "letters, digits"),
    ],
)
def test_weak_or_ambiguous_tokens_are_refused(tokens: dict[str, str], says: str) -> None:
    with pytest.raises(ValueError, match=says) as refused:
        ServeSettings(tokens=tokens)
    assert ALICE not in str(refused.value)


def test_tokens_and_failures_do_not_reach_clients_or_logs(
    start_server: StartServer, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    settings = ServeSettings(tokens=TOKENS)
    assert ALICE not in repr(settings)
    server = start_server(make_agent(ValueError("password=hunter2 of the model's server")), tokens=TOKENS)
    with server.client(ALICE) as client:
        failed = client.post_json("/api/turns", prompt="Hi.")
        assert failed.json()["failed"] is True
        chat = client.post_json("/v1/chat/completions", model="shop", messages=[{"role": "user", "content": "Hi."}])
        assert (chat.status_code, chat.headers["x-should-retry"]) == (500, "false")
        assert "hunter2" not in failed.text + chat.text
    assert as_problem(RuntimeError("at /secret/path")).text == "the server failed; its log says why"
    said = caplog.text + "".join(capfd.readouterr())
    assert ALICE not in said
    assert BOB not in said
    assert str(Path.cwd()) not in failed.text


def test_metrics_count_and_name_nobody(start_server: StartServer) -> None:
    server = start_server(make_agent("Hello."), tokens=TOKENS)
    with server.client(ALICE) as client:
        client.post_json("/api/threads/plan/turns", prompt="Hi.")
        text = client.get("/metrics").text
    lines = text.splitlines()
    assert 'locus_serve_runs_total{outcome="done"} 1.0' in lines
    assert 'locus_serve_tokens_total{type="input"} 10.0' in lines
    assert "locus_serve_runs_in_progress 0.0" in lines
    assert "alice" not in text
    assert "plan" not in text
