"""What the pages show, read over HTTP from the real server."""

from __future__ import annotations

import json
from functools import partial
from html.parser import HTMLParser
from typing import Any

import httpx
import pytest

from locus.core.errors import JournalDamaged, JournalError, LocusError, NothingToResume, StoreError
from locus.journal import Claim, MemoryStore
from locus_plugin_timetravel import import_thread
from locus_plugin_viewer.journal import read_head
from locus_plugin_viewer.listing import find_thread

from .servers import Served, serving
from .shop import HOSTILE, RUNS, fill, make_agent


class _Page(HTMLParser):
    """The texts and the tags of a page, as a browser reads them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())


def read(client: httpx.Client, path: str, **parameters: Any) -> _Page:
    answer = client.get(path, params=parameters or None)
    assert answer.status_code == 200, answer.text
    return _Page(answer.text)


def listed(client: httpx.Client, **parameters: Any) -> list[str]:
    """The threads of the list, in its order."""
    page = read(client, "/", **parameters)
    links = [attrs["href"] or "" for tag, attrs in page.tags if tag == "a" and attrs.get("class") == "title"]
    return [dict(httpx.URL(link).params)["id"] for link in links]


# -- the list -------------------------------------------------------------------------------------


def test_the_list_has_each_thread_with_its_title_status_and_spending(client: httpx.Client) -> None:
    text = read(client, "/").text
    for prompt in RUNS:
        assert prompt in text
    assert "waiting for you" in text
    assert "5,898 tokens (3,600 cached), $0.0125" in text
    assert listed(client) == ["run-5", "run-4", "run-3", "run-2", "run-1"]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"q": "ORDER charge"}, ["run-1"]),
        ({"q": "run-2"}, ["run-2"]),
        ({"q": "no such words"}, []),
        ({"q": "warehouse"}, []),
        ({"q": "order two desk LAMPS", "said": "1"}, ["run-1"]),
        ({"q": "no such words", "said": "1"}, []),
        ({"status": "waiting"}, ["run-5"]),
        ({"agent": "shop", "q": "lamps"}, ["run-3"]),
        ({"agent": "nobody"}, []),
        ({"days": "1", "q": "repeat"}, ["run-4"]),
    ],
)
def test_filters_select_threads(client: httpx.Client, filters: dict[str, str], found: list[str]) -> None:
    assert listed(client, **filters) == found


@pytest.mark.parametrize("error", [JournalDamaged("entry 3 is missing"), JournalError("a later version wrote it")])
def test_a_thread_that_cannot_be_read_does_not_hide_the_others(error: LocusError) -> None:
    with serving(lambda: _Broken(error)) as served, served.client() as client:
        served.run(lambda: fill(served.viewer.store))
        assert listed(client, q="order two desk LAMPS", said="1") == ["run-1"]
        assert listed(client, q="no switch", said="1") == []  # it was said in the one that cannot be read


def test_a_search_in_a_store_that_does_not_answer_is_an_error_and_not_an_empty_list() -> None:
    with serving(lambda: _Broken(StoreError("the server does not answer"))) as served, served.client() as client:
        served.run(lambda: fill(served.viewer.store))
        assert client.get("/", params={"q": "order two desk", "said": "1"}).status_code == 503


class _Broken(MemoryStore):
    """A store that cannot give its third thread."""

    def __init__(self, error: LocusError) -> None:
        super().__init__()
        self._error = error

    async def peek(self, thread_id: str) -> Claim | None:
        if thread_id == "run-3":
            raise self._error
        return await super().peek(thread_id)


def test_children_are_listed_where_they_are_asked_for(client: httpx.Client) -> None:
    (child,) = set(listed(client, children="1")) - set(listed(client))
    assert child.startswith("run-3/")


def test_a_long_list_is_shown_page_by_page_without_a_gap_or_a_repeat(served: Served, browser: httpx.Client) -> None:
    async def add() -> None:
        for number in range(60):
            await make_agent("Done.", store=served.viewer.store).run(f"More {number}", thread_id=f"more-{number}")

    served.run(add)
    found, after = [], ""
    for _ in range(10):
        answer = browser.get("/", params={"after": after} if after else {})
        page = _Page(answer.text)
        found += [dict(httpx.URL(a["href"] or "").params)["id"] for t, a in page.tags if a.get("class") == "title"]
        links = [attrs["href"] or "" for tag, attrs in page.tags if attrs.get("rel") == "next"]
        if not links:
            break
        after = dict(httpx.URL(links[0]).params)["after"]
    assert found == [f"more-{n}" for n in reversed(range(60))] + ["run-5", "run-4", "run-3", "run-2", "run-1"]


# -- a thread -------------------------------------------------------------------------------------


def test_a_timeline_has_model_calls_tool_calls_and_routes(client: httpx.Client) -> None:
    text = read(client, "/thread", id="run-1").text
    assert "Charge order 4711 and tell me what was in it." in text
    assert "I look the order up first." in text
    assert 'find_order {"number": 4711}' in text
    assert "8450 cents charged for order 4711" in text
    assert "effect: once" in text
    assert "1,966 tokens (1,200 cached), $0.0042" in text
    assert "Iteration 3" in text
    assert "the model asks for tools" in text
    assert "NoToolCalls" in text


def test_what_a_hook_refused_and_what_failed_say_why(client: httpx.Client) -> None:
    text = read(client, "/thread", id="run-2").text
    assert "not run" in text
    assert "Rejected: orders are never deleted" in text
    assert "ValueError: the warehouse does not answer: timeout after 30 s" in text


def test_a_child_run_is_nested_and_links_to_its_thread(client: httpx.Client) -> None:
    page = read(client, "/thread", id="run-3")
    (child,) = [a["data-load"] or "" for _, a in page.tags if a.get("class") == "child"]
    inner = read(client, child)
    assert "Lamps of 2024 had no switch." in inner.text
    parent = read(client, "/thread", id=dict(httpx.URL(child).params)["id"])
    assert any(attrs.get("href") == "/thread?id=run-3" for _, attrs in parent.tags)


def test_an_open_question_is_shown_with_its_options(client: httpx.Client) -> None:
    page = read(client, "/thread", id="run-5")
    assert "refund asks Refund order 12?" in page.text
    assert [a["value"] for tag, a in page.tags if tag == "button" and a.get("name") == "answer"] == ["yes", "no"]
    assert "no outcome on record" not in page.text


def test_the_state_before_and_after_is_a_comparison(client: httpx.Client) -> None:
    # Entry 5 is the transition behind the first tool call.
    text = read(client, "/thread/state", id="run-1", n="5").text
    assert '"tool_name": "find_order"' in text
    assert '"role": "tool"' in text
    assert "removed: " in text
    assert "iteration" in text


def test_the_conversation_before_a_model_call_is_what_it_was(client: httpx.Client) -> None:
    text = read(client, "/thread/request", id="run-1", n="6").text
    assert "I look the order up first." in text
    assert '"item": "desk lamp"' in text
    assert "I charged" not in text


def test_an_entry_is_shown_whole_as_json(client: httpx.Client) -> None:
    form = json.loads(client.get("/thread/entry", params={"id": "run-1", "n": "1"}).text)
    assert form["n"] == 1
    assert form["body"]["entry"] == "transition"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/thread", 400),
        ("/thread?id=nobody", 404),
        ("/thread/state?id=run-1&n=99", 400),
        ("/thread/state?id=run-1&n=999999999999", 400),
        ("/thread/state?id=nobody&n=2", 404),
        ("/thread/request?id=run-1&n=999999999999", 400),
        ("/?days=36501", 400),
        ("/?days=999999999999999", 400),
        ("/thread/entry?id=run-1&n=x", 400),
        (f"/thread/entry?id=run-1&n={'9' * 5_000}", 400),
        ("/thread/what-if?id=run-1&limit=moons&value=3", 400),
        ("/diff?a=run-1", 400),
        ("/nowhere", 404),
    ],
)
def test_what_is_not_there_is_an_error_and_not_a_traceback(client: httpx.Client, path: str, status: int) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert "Traceback" not in answer.text


def test_an_address_with_a_number_behind_the_end_says_where_the_end_is(client: httpx.Client) -> None:
    text = _Page(client.get("/thread/state", params={"id": "run-1", "n": "999999999999"}).text).text
    assert "'run-1' has 15 entries, and entry 999999999999 was asked for" in text
    assert "days may be 36,500 at most" in _Page(client.get("/", params={"days": "99999999"}).text).text
    assert listed(client, days="36500")


# -- text of others -------------------------------------------------------------------------------


def test_hostile_text_is_shown_and_has_no_effect(client: httpx.Client) -> None:
    answer = client.get("/thread", params={"id": "run-4"})
    page = _Page(answer.text)
    scripts = [attrs for tag, attrs in page.tags if tag == "script"]
    assert [attrs.get("src") for attrs in scripts] == ["/static/theme.js", "/static/viewer.js"]
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert not [attrs for _, attrs in page.tags if any(name.startswith("on") for name in attrs)]
    assert not [attrs for _, attrs in page.tags if "style" in attrs]
    assert "<script>document.title='owned'</script>" in page.text
    assert "{{ 7*7 }}" in page.text
    # Invisible characters are shown as escapes.
    assert "\\u202egnp.exe" in page.text
    assert "\\x1b[31mred" in page.text
    assert not {"\u202e", "\x1b", "\U000e0041"} & set(answer.text)


@pytest.mark.parametrize(
    "path",
    ["/thread?id=run-4", "/thread/request?id=run-4&n=7", "/thread/state?id=run-4&n=6", "/thread/entry?id=run-4&n=5"],
)
def test_no_way_to_hostile_text_shows_it_raw(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    assert not {"\u202e", "\x1b", "\U000e0041"} & set(answer.text)
    if answer.headers["content-type"].startswith("text/html"):
        assert HOSTILE[:8] not in answer.text


def test_a_hostile_name_of_a_thread_is_text_everywhere(served: Served, browser: httpx.Client) -> None:
    name = "\"><script>alert(1)</script>&id=run-1#'"
    served.run(lambda: make_agent("Done.", store=served.viewer.store).run(name, thread_id=name))
    assert name in listed(browser)
    page = read(browser, "/thread", id=name)
    assert [a.get("src") for tag, a in page.tags if tag == "script"] == ["/static/theme.js", "/static/viewer.js"]
    assert name in page.text


@pytest.mark.parametrize(
    "path",
    [
        "/thread?id=run-1",
        "/thread/request?id=run-1&n=13",
        "/thread/state?id=run-1&n=12",
        "/thread/entry?id=run-1&n=11",
        "/diff?a=run-1&b=run-2",
    ],
)
def test_secrets_are_hidden_as_in_logs(client: httpx.Client, path: str) -> None:
    text = client.get(path).text
    assert "hunter2" not in text
    assert "***" in text


# -- time travel ----------------------------------------------------------------------------------


def test_two_threads_are_compared(client: httpx.Client) -> None:
    assert "Where they part" in read(client, "/diff", a="run-1", b="run-2").text
    assert "The same" in read(client, "/diff", a="run-1", b="run-1").text


def test_another_limit_is_asked_about(client: httpx.Client) -> None:
    text = read(client, "/thread/what-if", id="run-1", limit="iterations", value="1").text
    assert "At most 1 iterations: it would have stopped" in text
    assert "MaxIterations" in text


async def _import(served: Served, lines: list[str]) -> str:
    return await import_thread(served.viewer.store, lines, into="copy", trusted=True)


def test_an_export_is_what_an_import_reads(served: Served, browser: httpx.Client) -> None:
    answer = browser.get("/thread/export", params={"id": "run-2"})
    assert answer.headers["content-disposition"] == 'attachment; filename="run-2.jsonl"'
    assert served.run(lambda: _import(served, answer.text.splitlines())) == "copy"
    assert "The same" in read(browser, "/diff", a="run-2", b="copy").text


def test_a_thread_that_was_deleted_is_not_found(served: Served, browser: httpx.Client) -> None:
    served.run(lambda: served.viewer.store.delete("run-2"))
    answer = browser.get("/thread", params={"id": "run-2"})
    assert answer.status_code == 404
    assert NothingToResume.__name__ in answer.text


def test_a_thread_behind_many_newer_ones_is_described_alike(served: Served, browser: httpx.Client) -> None:
    async def find(thread_id: str) -> Any:
        store = served.viewer.store
        return await find_thread(store, thread_id, await read_head(store, thread_id))

    known = {name: served.run(partial(find, name)) for name in ("run-1", "run-2", "run-5")}

    async def add() -> None:
        for number in range(101):
            await make_agent("Done.", store=served.viewer.store).run(f"More {number}", thread_id=f"more-{number}")

    served.run(add)
    for name, before in known.items():
        found = served.run(partial(find, name))
        assert found.created_at is None
        for each in ("status", "node", "title", "model", "agent_id", "head"):
            assert getattr(found, each) == getattr(before, each)
