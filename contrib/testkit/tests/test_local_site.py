"""The local site answers as the web does: pages, redirects, a search, robots.txt, and pages that mean harm."""

from __future__ import annotations

import gzip
import http.client
import json
import zlib
from contextlib import closing
from typing import Any
from urllib.parse import urlencode

import pytest

from locus_testkit.site import (
    LocalSite,
    Page,
    Question,
    element_pages,
    element_questions,
    elements,
    hostile_paths,
)


def ask(site: LocalSite, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", site.port, timeout=10)) as connection:
        connection.request("GET", path, headers=headers)
        with closing(connection.getresponse()) as response:
            return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()


def search(site: LocalSite, **parameters: Any) -> Any:
    status, _, body = ask(site, f"/search?{urlencode({'format': 'json', **parameters})}")
    assert status == 200
    return json.loads(body)


def test_every_element_has_a_page_with_its_facts_among_navigation_and_scripts() -> None:
    assert len(elements()) == 118
    with LocalSite() as site:
        status, headers, body = ask(site, "/elements/gallium")
    text = body.decode()
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    for part in (
        "<nav>",
        "<script>",
        "<aside>",
        "<footer>",
        "<td>302.91 K</td>",
        "Lecoq de Boisbaudran",
        "<h1>Gallium",
    ):
        assert part in text


def test_large_pages_are_packed_for_those_who_can_unpack() -> None:
    with LocalSite() as site:
        _, plain_headers, plain = ask(site, "/elements/")
        _, headers, packed = ask(site, "/elements/", **{"accept-encoding": "gzip"})
    assert "content-encoding" not in plain_headers
    assert headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed) == plain


@pytest.mark.parametrize(
    ("path", "to"), [("/old/gallium", "../elements/gallium"), ("/elements", "/elements/"), ("/hostile/to?x%3Ay", "x:y")]
)
def test_moved_pages_are_redirected(path: str, to: str) -> None:
    with LocalSite() as site:
        status, headers, _ = ask(site, path)
    assert (300 <= status < 400, headers["location"]) == (True, to)


def test_what_is_not_there_is_not_found_and_is_not_markup() -> None:
    with LocalSite() as site:
        status, _, body = ask(site, "/elements/<b>unobtainium")
    assert status == 404
    assert b"<b>" not in body


def test_search_ranks_by_words_and_answers_in_searxngs_shape() -> None:
    with LocalSite() as site:
        answer = search(site, q="Who discovered gallium?")
        assert answer["query"] == "Who discovered gallium?"
        first = answer["results"][0]
        assert (first["title"], first["url"]) == ("Gallium", site.at("/elements/gallium"))
        assert {"content", "engine", "parsed_url", "positions", "score", "category"} <= set(first)
        second = search(site, q="metal", pageno=2)["results"]
        assert len(second) == 10
        assert not {each["url"] for each in second} & {each["url"] for each in search(site, q="metal")["results"]}


@pytest.mark.parametrize("query", ['"', "AND OR NOT", "title:x*", "a' ; DROP TABLE pages", "NEAR(", "( ) -", "\0", "é"])
def test_search_takes_any_query_for_words(query: str) -> None:
    with LocalSite() as site:
        assert isinstance(search(site, q=query)["results"], list)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/search?q=x", 403),
        ("/search?q=x&format=csv", 403),
        ("/search?format=json", 400),
        ("/search?q=x&format=json&pageno=0", 400),
    ],
)
def test_search_refuses_what_an_instance_refuses(path: str, status: int) -> None:
    with LocalSite() as site:
        assert ask(site, path)[0] == status


def test_own_pages_take_the_place_of_the_elements() -> None:
    pages = [Page(path="/a", title="Apples", body="<p>A red &amp; round fruit.</p>")]
    with LocalSite(pages, robots="User-agent: *\nDisallow: /") as site:
        assert [each["content"] for each in search(site, q="fruits")["results"]] == ["A red & round fruit."]
        assert ask(site, "/elements/gallium")[0] == 404
        assert ask(site, "/robots.txt")[2] == b"User-agent: *\nDisallow: /"
        assert site.paths[-1] == "/robots.txt"


def test_the_packed_bomb_unpacks_to_more_than_a_thousand_times_its_size() -> None:
    with LocalSite() as site:
        _, _, packed = ask(site, "/hostile/gzip-bomb")
    begin = packed[:10_000]
    assert len(zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(begin)) > 900 * len(begin)
    assert len(packed) > 1_000_000


def test_every_hostile_page_is_made() -> None:
    endless = {"endless", "huge", "slow", "silent", "cut", "reset", "no-status", "long-header", "gzip-bomb"}
    with LocalSite() as site:
        for path in hostile_paths():
            if path.rpartition("/")[2] not in endless:
                assert ask(site, path)[0] in (200, 302), path


# -- questions ------------------------------------------------------------------------------------


def test_questions_are_the_same_each_time_and_of_all_kinds() -> None:
    questions = element_questions(40)
    assert questions == element_questions(40)
    assert len({each.prompt for each in questions}) == 40
    kinds = [each.kind for each in questions]
    assert {kinds.count(kind) for kind in set(kinds)} == {6, 7}
    assert len(set(kinds)) == 6


def test_every_page_answers_its_question_and_the_most_other_pages_do_not() -> None:
    pages = {each.path: each.text for each in element_pages()}
    for each in element_questions(40):
        assert each.is_answered_by(each.answer)
        # The name of the element is the page's title, and not in its text.
        assert each.kind == "element" or each.is_answered_by(pages[each.path])
        others = [text for path, text in pages.items() if path not in (each.path, "/elements/")]
        assert sum(map(each.is_answered_by, others)) < len(others) / 4, each


@pytest.mark.parametrize("count", [0, -1, 10_000])
def test_a_wrong_number_of_questions_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match=f"count must be 1 to .*, got {count}"):
        element_questions(count)


NUMBER = Question(kind="density", prompt="?", answer="1234.5", path="/", number=1234.5)
YEAR = Question(kind="year", prompt="?", answer="1875", path="/", number=1875.0)
NAME = Question(kind="discoverer", prompt="?", answer="Jöns Berzelius", path="/", accepted=("Berzelius",))


@pytest.mark.parametrize(
    ("question", "text", "right"),
    [
        (NUMBER, "about 1,234 K", True),
        (NUMBER, "1.2345e3", True),
        (NUMBER, "1,300", False),
        (NUMBER, "v1234.5x", False),
        (YEAR, "In 1875.", True),
        (YEAR, "In 1876.", False),
        (YEAR, "18755", False),
        (NAME, "it was JÖNS BERZELIUS!", True),
        (NAME, "Berzeliusson", False),
        (NAME, "", False),
    ],
)
def test_an_answer_is_scored_by_the_fact_in_it(question: Question, text: str, right: bool) -> None:
    assert question.is_answered_by(text) is right
