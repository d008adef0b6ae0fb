"""The tools on an agent: what the model reads, what it may ask for, and how a run ends in the middle of it."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Sequence
from typing import Any

import anyio
import anyio.to_thread
import pytest

from locus import Agent, AgentResult
from locus_plugin_web import SearchFailed, SearchHit, SearxngEngine, WebHook, WebSettings, make_web_tools
from locus_testkit import ScriptedModel, call
from locus_testkit.hostile import Answer
from locus_testkit.site import INSTRUCTIONS, LocalSite

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def site() -> Iterator[LocalSite]:
    with LocalSite() as made:
        yield made


@pytest.fixture(autouse=True)
def _forget(site: LocalSite) -> None:
    site.received.clear()


def settings(site: LocalSite, **fields: Any) -> dict[str, Any]:
    return {"allow": (site.address,), "search": f"searxng:{site.url}", **fields}


def agent(site: LocalSite, *turns: Any, **fields: Any) -> Agent[Any, Any]:
    return Agent(ScriptedModel(*turns, "done"), web=settings(site, **fields))


def results(result: AgentResult[Any]) -> list[str]:
    return [str(each.result if each.error is None else each.error) for each in result.state.tool_executions]


async def test_an_agent_searches_and_reads(site: LocalSite) -> None:
    found = site.at("/elements/gallium")
    made = agent(site, call("web_search", query="Who discovered gallium?"), call("fetch_url", url=found))
    searched, read = results(await made.run("Who discovered gallium?"))
    assert f"1. Gallium\n{found}\n" in searched
    assert "| Discovered by | Paul Émile Lecoq de Boisbaudran |" in read
    assert f"URL: {found}\nTitle: Gallium - The Elements" in read


@pytest.mark.parametrize(("search", "tools"), [(True, ["fetch_url", "web_search"]), (False, ["fetch_url"])])
async def test_there_is_a_search_where_an_engine_is_named(site: LocalSite, search: bool, tools: list[str]) -> None:
    model = ScriptedModel("done")
    await Agent(model, web=settings(site) if search else settings(site, search=None)).run("x")
    assert [each.name for each in model.requests[0].tools] == tools


def test_the_tools_say_what_they_read_and_reach() -> None:
    fetch, search = make_web_tools(WebSettings(search="searxng:https://search.example"))
    assert (fetch.effect, fetch.reads, fetch.targets, fetch.egress) == ("pure", "untrusted", ("url",), True)
    assert (search.effect, search.reads, search.targets, search.egress) == ("pure", "untrusted", (), True)


async def test_a_page_cannot_end_its_quotation(site: LocalSite) -> None:
    made = agent(
        site,
        call("fetch_url", url=site.at("/hostile/instructions")),
        call("fetch_url", url=site.at("/hostile/boundary")),
    )
    texts = results(await made.run("x"))
    assert INSTRUCTIONS in texts[0]
    for text in texts:
        found = re.fullmatch(r"Page \(untrusted text.*\):\n<<<data (\w+)\n(.*)\n\1>>>", text, re.DOTALL)
        assert found is not None, text
        assert found[1] not in found[2]


async def test_a_long_page_comes_in_parts_that_make_the_whole(site: LocalSite) -> None:
    url = site.at("/elements/")
    whole = results(await agent(site, call("fetch_url", url=url), page_chars=90_000).run("x"))[0]
    site.received.clear()

    def turn(request: Any) -> Any:
        text = request.messages[-1].content[0]
        said = getattr(text, "text", None) or str(getattr(text, "content", ""))
        found = re.search(r"offset=(\d+)$", said)
        return call("fetch_url", url=url, offset=int(found[1])) if found else "done"

    model = ScriptedModel(call("fetch_url", url=url), *[turn] * 10)
    parts = results(await Agent(model, web=settings(site, page_chars=4_000)).run("x"))
    assert len(parts) > 2
    texts = [re.search(r"\n\n(.*)\n\w+>>>", each, re.DOTALL)[1] for each in parts]  # type: ignore[index]
    assert "".join(texts) == re.search(r"\n\n(.*)\n\w+>>>", whole, re.DOTALL)[1]  # type: ignore[index]
    assert "Characters 0 to 4,000 of " in parts[0]
    assert site.paths == ["/robots.txt", "/elements/"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"url": "http://127.0.0.1:22/"}, "port 22 is not allowed"),
        ({"url": "http://169.254.169.254/latest/meta-data/"}, "not on the public internet"),
        ({"url": "nonsense"}, "expected a whole URL"),
        ({"url": "{site}/nothing"}, "status 404"),
        ({"url": "{site}/private/diary"}, "robots.txt"),
        ({"url": "{site}/about", "offset": -1}, "offset must be 0 or more, got -1"),
        ({"url": "{site}/about", "offset": 9_999}, "offset must be less than"),
        ({"url": 3}, "the arguments of fetch_url are wrong"),
    ],
)
async def test_the_model_reads_why_a_page_is_not_there(site: LocalSite, arguments: dict[str, Any], said: str) -> None:
    if isinstance(arguments["url"], str):
        arguments["url"] = arguments["url"].format(site=site.url)
    result = await agent(site, call("fetch_url", **arguments)).run("x")
    assert said in results(result)[0]
    assert result.stop_reason == "NoToolCalls"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(status=403, body="no"), "may not offer the format json"),
        (Answer(status=500, body="no"), "status 500"),
        (Answer(body="<html>"), "is not JSON"),
        (Answer(body=b"[" * 100_000), "is not JSON"),
        (Answer.of([]), "no list of results"),
        (Answer.of({"results": {}}), "no list of results"),
        (Answer.of({"results": []}), "No results"),
        (Answer.of({"results": [1, {"url": 3}, {"url": "file:///x"}, {"url": "http://u:p@x/"}]}), "No results"),
        (Answer(status=302, headers={"location": "http://169.254.169.254/"}), "status 302"),
        (Answer(body=b"x" * 3_000_000), "larger than 2,000,000 bytes"),
        (Answer(ending="reset"), "cannot be reached: Re"),
    ],
)
async def test_the_model_reads_why_a_search_failed(site: LocalSite, answer: Answer, said: str) -> None:
    site.then(answer)
    result = await agent(site, call("web_search", query="gallium")).run("x")
    assert said in results(result)[0]
    assert site.wait_until_idle()


async def test_results_are_one_line_each_without_invisible_characters(site: LocalSite) -> None:
    title, snippet = "a\u202eb\n\n2. http://evil.example", "c\nd" * 1_000
    site.then(Answer.of({"results": [{"url": "http://x.example/", "title": title, "content": snippet}] * 3}))
    text = results(await agent(site, call("web_search", query="x")).run("x"))[0]
    assert "1. ab 2. http://evil.example\nhttp://x.example/\nc dc d" in text
    assert "\n2. " not in text
    assert len(text) < 1_000


@pytest.mark.parametrize("query", ["", " \n "])
async def test_a_blank_query_is_not_sent(site: LocalSite, query: str) -> None:
    result = await agent(site, call("web_search", query=query)).run("x")
    assert "query must not be blank" in results(result)[0]
    assert site.paths == []


class Broken:
    """An engine of somebody's."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def search(self, query: str, limit: int) -> Sequence[SearchHit]:
        raise self.error


@pytest.mark.parametrize(
    ("error", "said"), [(SearchFailed("quota"), "quota"), (KeyError("x"), "the search engine failed: KeyError: 'x'")]
)
async def test_an_engine_of_ones_own_may_fail(site: LocalSite, error: Exception, said: str) -> None:
    result = await agent(site, call("web_search", query="x"), search=Broken(error)).run("x")
    assert said in results(result)[0]


@pytest.mark.parametrize("tool", ["fetch_url", "web_search"])
async def test_cancelling_a_run_ends_the_call_at_once(site: LocalSite, tool: str) -> None:
    if tool == "fetch_url":
        turn = call("fetch_url", url=site.at("/hostile/silent"))
    else:
        turn = call("web_search", query="x")
        site.then(Answer(body=b"{", ending="silent"))
    made = agent(site, turn, robots=False)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(
                anyio.to_thread.run_sync, lambda: site.wait_for(lambda: bool(site.received)) and made.cancel()
            )
            result = await made.run("x")
    assert result.stop_reason == "Cancelled"
    assert site.wait_until_idle()


# -- settings -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"search": "https://search.example"}, "'searxng:' and the URL"),
        ({"search": "searxng:search.example"}, "expected the URL of a SearXNG instance"),
        ({"search": "searxng:https://me:secret@search.example"}, "without a user"),
        ({"search": "searxng:https://search.example/?q=x"}, "a query"),
        ({"search": 3}, "'searxng:URL' or a SearchEngine"),
        ({"allow": "127.0.0.1"}, "hosts with a port"),
        ({"allow": ["http://127.0.0.1:80"]}, "hosts with a port"),
        ({"allow": ["127.0.0.1:99999"]}, "hosts with a port"),
        ({"allow": [3]}, "list of strings"),
        ({"timeout": 0}, "timeout"),
        ({"max_bytes": 0}, "max_bytes"),
        ({"page_chars": 10}, "page_chars"),
        ({"page_chars": 90_001}, "page_chars"),
        ({"results": 100}, "results"),
    ],
)
def test_settings_that_mean_nothing_are_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises((ValueError, TypeError), match=said) as caught:
        WebSettings(**fields)
    assert "secret" not in str(caught.value)


def test_settings_of_a_file_and_of_a_program_are_the_same(site: LocalSite) -> None:
    made = WebSettings(allow=["[::1]:8000"], search="searxng:https://search.example/sub/")
    assert made.allow == ("[::1]:8000",)
    assert SearxngEngine.from_text(str(made.search)).url == "https://search.example/sub"
    assert [each.name for each in WebHook(made).locus_register_tools()] == ["fetch_url", "web_search"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("search", [True, False])
async def test_models_that_need_examples_are_shown_one_over_the_tools_that_there_are(
    site: LocalSite, search: bool
) -> None:
    model = ScriptedModel("done")
    await Agent(model, web=settings(site) if search else settings(site, search=None)).run("x")
    examples = {tool.name: tool.examples for tool in model.requests[0].tools}
    (read,) = examples["fetch_url"]
    (url,) = read.arguments.values()
    assert str(url) in read.result
    if search:
        (searched,) = examples["web_search"]
        assert searched.user == read.user
        assert str(url) in searched.result
    else:
        assert str(url) in read.user


@pytest.mark.parametrize("name", ["locus\r\nHost: evil.example", "locus\n", "a\x00b", "caf\u00e9", "", " "])
def test_a_user_agent_with_a_line_break_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="user_agent must be printable ASCII, without line breaks, got"):
        WebSettings(user_agent=name)
    assert WebSettings(user_agent="locus/1.0 (me@example.org)").user_agent


async def test_the_model_reads_that_a_page_was_cut_off() -> None:
    packed = gzip.compress(" ".join(map(str, range(900))).encode())
    with LocalSite(robots="") as site:
        site.then(Answer(media_type="text/plain", body=""))
        site.then(Answer(media_type="text/plain", headers={"content-encoding": "gzip"}, body=packed[:-9]))
        (read,) = results(await agent(site, call("fetch_url", url=site.at("/about"))).run("Read it."))
    assert read.endswith("The page goes on, but no more of it could be read; this is its end here.")
