"""The pages in real Chromium: what runs there, keys, live updates, the rules of axe-core; and pictures for the docs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from locus.journal import MemoryStore
from locus_plugin_sqlite import SqliteStore
from locus_testkit import call

from .browser import ARGUMENTS, Fetched, fetch
from .servers import TOKEN, Served, serving
from .shop import fill, make_agent, make_graph

pytestmark = pytest.mark.e2e

DOCS = Path(__file__).resolve().parents[1] / "docs"

PAGES = {
    "threads": "/",
    "run": "/thread?id=run-1",
    "refused": "/thread?id=run-2",
    "child": "/thread?id=run-3",
    "hostile": "/thread?id=run-4",
    "question": "/thread?id=run-5",
    "comparison": "/diff?a=run-1&b=run-2",
    "error": "/thread?id=nobody",
}


@pytest.fixture(scope="module")
def fetched() -> Fetched:
    return fetch()


@pytest.fixture(scope="module")
def chromium(fetched: Fetched) -> Iterator[Browser]:
    with sync_playwright() as tools:
        browser = tools.chromium.launch(
            executable_path=str(fetched.executable), args=list(ARGUMENTS), env={**fetched.environment}
        )
        yield browser
        browser.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    agent = make_agent("It is refunded.")
    with serving(lambda: SqliteStore(tmp_path / "shop.db"), agent=agent) as found:
        found.run(lambda: fill(found.viewer.store))
        yield found


@pytest.fixture
def context(chromium: Browser, served: Served) -> Iterator[BrowserContext]:
    made = chromium.new_context(base_url=served.address, viewport={"width": 1280, "height": 900})
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page of a browser that was given the token; whatever the browser complains of fails the test."""
    made, complaints = context.new_page(), list[str]()
    made.on("console", lambda said: complaints.append(said.text))
    made.on("pageerror", lambda error: complaints.append(str(error)))
    made.goto(f"/?token={TOKEN}")
    yield made
    assert [each for each in complaints if "404 (Not Found)" not in each] == []


def open_everything(page: Page) -> None:
    """Open what can be opened, what is inside of that as well, and wait until it is there."""
    while page.locator("details:not([open])").count():
        page.evaluate("document.querySelectorAll('details:not([open])').forEach(each => { each.open = true; })")
        page.locator("details[open][data-load]:not([data-state=loaded])").first.wait_for(state="detached")


def test_the_token_leaves_the_address_and_the_cookie_is_out_of_reach_of_scripts(page: Page) -> None:
    assert page.url.endswith("/")
    assert page.evaluate("document.cookie") == ""
    assert page.title() == "Threads · Locus"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_page(
    page: Page, fetched: Fetched, scheme: Any, width: int
) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    for name, path in PAGES.items():
        page.goto(path)
        open_everything(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        page.evaluate(fetched.axe)
        found = page.evaluate("axe.run()")
        assert [(each["id"], each["nodes"][0]["html"]) for each in found["violations"]] == [], name
        assert len(found["passes"]) > 10


def test_a_graph_is_drawn_and_axe_finds_nothing_in_it(chromium: Browser, fetched: Fetched) -> None:
    store = MemoryStore()
    graph = make_graph(store)
    with serving(lambda: store, agent=graph) as served:
        served.run(lambda: graph.run({}, thread_id="flow"))
        page = chromium.new_page(base_url=served.address, viewport={"width": 1280, "height": 900})
        page.goto(f"/?token={TOKEN}")
        page.goto("/thread?id=flow")
        page.locator(".graph svg .next").wait_for()
        keep_picture(page, "graph-light")
        page.evaluate(fetched.axe)
        assert [each["id"] for each in page.evaluate("axe.run()")["violations"]] == []
        page.get_by_role("button", name="yes").click()
        page.locator(".graph svg .next").wait_for(state="detached")
        page.get_by_text("GraphEnd").first.wait_for()
        page.close()


def test_hostile_text_runs_nothing(page: Page) -> None:
    page.goto("/thread?id=run-4")
    open_everything(page)
    assert page.title() == "Repeat after me. · Locus"
    assert page.locator("main script, main img").count() == 0
    assert page.get_by_text("<script>document.title='owned'</script>").count() > 1


def test_the_policy_stops_a_script_that_would_get_in(context: BrowserContext) -> None:
    page = context.new_page()
    page.goto(f"/?token={TOKEN}")
    page.evaluate(
        """() => {
            const script = document.createElement('script');
            script.textContent = "document.title = 'owned'";
            document.body.append(script);
            document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="document.title=1" style="color:red">');
        }"""
    )
    assert page.title() == "Threads · Locus"
    assert page.evaluate("document.querySelector('img').style.color") in ("", None)


def test_what_is_opened_is_read_then(page: Page) -> None:
    page.goto("/thread?id=run-3")
    assert page.get_by_text("Lamps of 2024 had no switch.").count() == 1  # what the tool said
    page.locator("details.child > summary").click()
    page.get_by_text("What is known about lamps of 2024?", exact=True).wait_for()
    page.goto("/thread?id=run-1")
    page.locator("#b4 details[data-load*=state] > summary").click()
    page.get_by_text("MaxIterations: 1 of 20 iterations").wait_for()


def test_a_run_is_shown_as_it_goes_on_without_a_reload(page: Page, served: Served) -> None:
    page.goto("/thread?id=run-1")
    page.locator("html[data-live=yes]").wait_for()
    page.evaluate("window.loadedOnce = true")
    page.locator("#b4 details[data-load*=state] > summary").click()

    async def go_on() -> None:
        again = make_agent([call("find_order", number=2)], "Order 2 has lamps, too.", store=served.viewer.store)
        await again.run("And order 2?", thread_id="run-1")

    served.run(go_on)
    page.get_by_text("Order 2 has lamps, too.").wait_for()
    assert page.evaluate("window.loadedOnce")
    assert page.locator("#b4 details[data-load*=state]").evaluate("each => each.open")
    ids = page.evaluate("[...document.querySelectorAll('#timeline > .block')].map(each => each.id)")
    assert len(ids) == len(set(ids))
    assert ids == sorted(ids, key=lambda each: int(each[1:]))


def test_a_question_is_answered_with_the_keyboard_alone(page: Page) -> None:
    page.goto("/")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.textContent") == "Give the money for order 12 back."
    page.keyboard.press("Enter")
    page.wait_for_url("**/thread?id=run-5")
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.value") == "no":
            break
    page.keyboard.press("Enter")
    page.get_by_text("the person said no").wait_for()
    page.get_by_text("It is refunded.").wait_for()
    page.locator("#status .status.ended").wait_for()


def test_keys_move_through_a_timeline(page: Page) -> None:
    page.goto("/thread?id=run-1")
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.id") == "b2"
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.id") == "b1"
    page.keyboard.press("o")
    assert page.locator("#b1 details").first.evaluate("each => each.open")
    page.keyboard.press("g")
    page.wait_for_url("**/")
    page.keyboard.press("/")
    page.keyboard.type("charge")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?q=charge*")
    assert page.locator("a.title").count() == 1


def test_the_theme_that_was_chosen_stays(page: Page) -> None:
    def paper() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    page.emulate_media(color_scheme="light")
    light = paper()
    page.get_by_role("button", name="Dark").click()
    assert paper() != light
    page.reload()
    assert paper() != light
    page.get_by_role("button", name="Light").click()
    assert paper() == light


def test_a_fork_and_a_comparison_by_clicks(page: Page) -> None:
    page.goto("/thread?id=run-1")
    page.locator("#b4").get_by_role("button", name="Fork here").click()
    page.get_by_text("Fork of").wait_for()
    page.locator("details.tools > summary").click()
    page.get_by_role("button", name="Compare").click()
    page.get_by_role("heading", name="Where they part").wait_for()


def test_a_long_timeline_grows_as_one_scrolls_and_is_never_whole(page: Page, served: Served) -> None:
    async def run() -> None:
        turns = [[call("find_order", number=n)] for n in range(200)]
        agent = make_agent(*turns, "All.", store=served.viewer.store, max_iterations=300)
        await agent.run("Look up two hundred orders.", thread_id="long")

    served.run(run)
    page.goto("/thread?id=long&window=0")
    blocks = page.locator("#timeline > .block")
    before = blocks.count()
    assert before < 100
    give_up = time.monotonic() + 60
    while blocks.count() < 3 * before:
        page.mouse.wheel(0, 20_000)
        page.wait_for_timeout(50)
        assert time.monotonic() < give_up
    ids = page.evaluate("[...document.querySelectorAll('#timeline > .block')].map(each => each.id)")
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("name", "path", "scheme", "width"),
    [
        ("threads-light", "/", "light", 1280),
        ("run-light", "/thread?id=run-1", "light", 1280),
        ("question-dark", "/thread?id=run-5", "dark", 1280),
        ("run-dark-narrow", "/thread?id=run-2", "dark", 400),
    ],
)
def test_pictures_of_the_main_pages_are_kept_in_the_docs(
    page: Page, name: str, path: str, scheme: Any, width: int
) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 860})
    page.goto(path)
    keep_picture(page, name)


def keep_picture(page: Page, name: str) -> None:
    """A picture for the docs. Its times differ from run to run: one that is there stays, until it is deleted."""
    made, kept = page.screenshot(), DOCS / f"{name}.png"
    assert len(made) > 10_000
    if not kept.exists():
        kept.write_bytes(made)
    assert kept.stat().st_size < 150_000
