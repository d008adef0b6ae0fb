"""The server's own events in Chromium: its EventSource goes on by itself after a kill, with the cookie of a page."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from plugins.viewer.tests.browser import ARGUMENTS, fetch

from .conftest import PATIENCE
from .processes import ServerProcess, find_free_port, until

pytestmark = pytest.mark.e2e

TOKEN = secrets.token_hex(32)

#: What a page does: fetch the cookie, take a turn, and listen. It keeps what it hears, and how often it was cut off.
PAGE = """async ([token, kinds]) => {
    const headers = { Authorization: `Bearer ${token}` };
    const cookie = await fetch("/api/cookie", { method: "POST", headers });
    const turn = await fetch("/api/threads/order/turns", {
        method: "POST",
        headers: { ...headers, "Content-Type": "application/json" },
        body: JSON.stringify({ prompt: "Go.", request_id: "turn-1", wait: false }),
    });
    window.heard = [];
    window.cuts = 0;
    window.source = new EventSource("/api/threads/order/events");
    for (const kind of kinds)
        source.addEventListener(kind, (event) => heard.push([event.lastEventId, kind, JSON.parse(event.data)]));
    source.onerror = () => { window.cuts += 1; };
    return [cookie.status, turn.status];
}"""

RECORDED = ("began", "said", "called", "returned", "asked", "answered", "paused", "resumed", "failed", "retried")
KINDS = [*RECORDED, "cancelled", "ended"]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    fetched = fetch()
    with sync_playwright() as tools:
        browser = tools.chromium.launch(
            executable_path=str(fetched.executable), args=list(ARGUMENTS), env={**fetched.environment}
        )
        yield browser
        browser.close()


def _start(folder: Path, port: int) -> ServerProcess:
    tokens = '[plugins.serve.tokens]\nalice = { env = "TOKEN_OF_ALICE" }\n'
    return ServerProcess(folder, port, agent="waiting", configuration=tokens, TOKEN_OF_ALICE=TOKEN)


def _heard(page: Page) -> list[Any]:
    found: list[Any] = page.evaluate("heard")
    return found


def test_a_page_hears_each_event_once_although_the_server_is_killed(chromium: Browser, tmp_path: Path) -> None:
    port, page = find_free_port(), chromium.new_page()
    page.set_default_timeout(PATIENCE * 1000)

    with _start(tmp_path, port) as server:
        # Any page of the server's address will do; a proxy would put the page of a program there.
        page.goto(f"{server.url}/healthz")
        assert page.evaluate(PAGE, [TOKEN, KINDS]) == [204, 202]
        assert page.evaluate("document.cookie") == ""
        page.wait_for_function("heard.some(each => each[1] === 'called')")
        until((tmp_path / "waiting").exists, "a run at the gate")
        server.kill()
    before = len(_heard(page))
    page.wait_for_function("cuts > 0")
    with _start(tmp_path, port) as server:
        (tmp_path / "gate").touch()
        page.wait_for_function("heard.some(each => each[1] === 'ended')")
        # The browser comes again once more, reads that nothing is left, and stays away.
        page.wait_for_function("source.readyState === EventSource.CLOSED")
        heard = _heard(page)
        with server.client() as own:
            own.headers["Authorization"] = f"Bearer {TOKEN}"
            events = own.read_stream("GET", "/api/threads/order/events")
    assert heard == [[each.id, each.name, each.data] for each in events if each.id]
    assert 0 < before < len(heard)
    assert heard[-1][2]["text"] == "NoToolCalls"
    page.close()


def test_a_page_without_the_cookie_or_of_another_origin_hears_nothing(chromium: Browser, tmp_path: Path) -> None:
    folders = [tmp_path / "served", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    (folders[0] / "gate").touch()
    page = chromium.new_page()
    page.set_default_timeout(PATIENCE * 1000)
    with _start(folders[0], find_free_port()) as server:
        page.goto(f"{server.url}/healthz")
        page.evaluate(PAGE, [TOKEN, KINDS])
        page.wait_for_function("heard.some(each => each[1] === 'ended')")
        listen = """async url => {
            window.source = new EventSource(url, { withCredentials: true });
            window.seen = 0;
            for (const kind of ["began", "ended"]) source.addEventListener(kind, () => { window.seen += 1; });
        }"""
        # The same host by another name has no cookie there, and another port of this one is another origin.
        page.goto(f"{server.url.replace('127.0.0.1', 'localhost')}/healthz")
        page.evaluate(listen, "/api/threads/order/events")
        page.wait_for_function("source.readyState === EventSource.CLOSED")
        assert page.evaluate("seen") == 0
        with ServerProcess(folders[1], find_free_port(), agent="waiting") as other:
            page.goto(f"{other.url}/healthz")
            page.evaluate(listen, f"{server.url}/api/threads/order/events")
            page.wait_for_function("source.readyState === EventSource.CLOSED")
            assert page.evaluate("seen") == 0
    page.close()
