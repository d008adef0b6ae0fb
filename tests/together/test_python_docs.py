"""The pages of Python's documentation, as Debian ships them: what the tools for web and files make of real HTML.

The package is fetched and unpacked here, which needs apt and dpkg but no root.
"""

from __future__ import annotations

import http.server
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from locus import Agent, AgentResult
from locus_plugin_web.markdown import read_page
from locus_testkit import ScriptedModel, call
from locus_testkit.site import LocalSite, Page

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

PACKAGE = "python3.11-doc"
#: Pages of each kind, and words that they say.
PAGES = {
    "library/json.html": "JSON encoder and decoder",
    "library/asyncio-task.html": "Coroutines and Tasks",
    "reference/simple_stmts.html": "Simple statements",
    "tutorial/classes.html": "Classes provide a means of bundling data and functionality together.",
    "howto/regex.html": "Regular Expression HOWTO",
    "whatsnew/3.11.html": "PEP 654: Exception Groups and except*",
    "c-api/intro.html": "Include Files",
    "glossary.html": "EAFP",
    "genindex-A.html": "a2b_base64",
}
#: What is around the content of every page.
AROUND = ("Quick search", "Report a Bug", "Show Source", "Navigation", "toggle", "¶")


@pytest.fixture
def anyio_backend() -> str:
    """The plugins' own tests run on both."""
    return "asyncio"


@pytest.fixture(scope="session")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, unpacked."""
    folder = tmp_path_factory.mktemp("docs")
    if not download(folder):
        # Lists of one's own: those of the machine may be old or missing, and are root's.
        own = [
            f"Dir::State={folder / 'state'}",
            f"Dir::Cache={folder / 'cache'}",
            "Dir::State::status=/var/lib/dpkg/status",
        ]
        for each in ("state/lists/partial", "cache/archives/partial"):
            (folder / each).mkdir(parents=True)
        options = [part for each in own for part in ("-o", each)]
        subprocess.run(["apt-get", *options, "update"], cwd=folder, check=True, capture_output=True)
        assert download(folder, *options), f"apt-get has no package {PACKAGE}"
    (package,) = folder.glob("*.deb")
    subprocess.run(["dpkg-deb", "-x", package, folder / "unpacked"], check=True)
    return folder / "unpacked" / "usr" / "share" / "doc" / "python3.11" / "html"


def download(folder: Path, *options: str) -> bool:
    done = subprocess.run(["apt-get", *options, "download", PACKAGE], cwd=folder, capture_output=True, check=False)
    return done.returncode == 0


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Says nothing of what it is asked."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name that its base gives it
        """Nothing."""


@pytest.fixture(scope="module")
def address(docs: Path) -> Iterator[str]:
    """Host and port of a server of the pages."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(docs))) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def texts(result: AgentResult[Any]) -> list[str]:
    assert [each.error for each in result.state.tool_executions] == [None] * len(result.state.tool_executions)
    return [str(each.result) for each in result.state.tool_executions]


async def test_a_page_is_its_content_and_nothing_that_is_around_it(address: str) -> None:
    calls = [call("fetch_url", url=f"http://{address}/{path}") for path in PAGES]
    agent = Agent(ScriptedModel(calls, "done"), web={"allow": [address], "page_chars": 90_000})
    for (path, words), text in zip(PAGES.items(), texts(await agent.run("Read them.")), strict=True):
        assert words in text, path
        assert [sign for sign in AROUND if sign in text] == [], path
        assert "Python 3.11" in text.partition("\n\n")[0], path


async def test_code_and_links_of_a_page_are_whole(address: str) -> None:
    calls = [call("fetch_url", url=f"http://{address}/library/json.html")]
    agent = Agent(ScriptedModel(calls, "done"), web={"allow": [address], "page_chars": 90_000})
    (text,) = texts(await agent.run("Read it."))
    assert (
        ">>> json.dumps(['foo', {'bar': ('baz', None, 1.0, 2)}])\n'[\"foo\", {\"bar\": [\"baz\", null, 1.0, 2]}]'"
        in text
    )
    assert f"(http://{address}/library/" in text


@pytest.mark.parametrize("size", [20_000, 50_000])
async def test_a_long_page_is_read_part_by_part_and_nothing_is_lost(address: str, docs: Path, size: int) -> None:
    path = "library/asyncio-eventloop.html"
    expected = read_page((docs / path).read_text(encoding="utf-8"), f"http://{address}/{path}").text
    parts: list[str] = []
    offset: int | None = 0
    while offset is not None:
        asked = call("fetch_url", url=f"http://{address}/{path}", offset=offset)
        agent = Agent(ScriptedModel([asked], "done"), web={"allow": [address], "page_chars": size})
        (text,) = texts(await agent.run("Read on."))
        found = re.search(r"<<<data (\w+)\n.*?\n\n(.*)\n\1>>>", text, re.DOTALL)
        assert found is not None, text[:300]
        parts.append(found[2])
        following = re.search(r"For the next part: offset=(\d+)$", text)
        offset = None if following is None else int(following[1])
    assert len(parts) == -(-len(expected) // size)
    assert "".join(parts) == expected


async def test_the_folder_is_searched_listed_and_read_as_files(docs: Path) -> None:
    calls = [
        call("grep", pattern=r"asyncio\.TaskGroup", path="/library"),
        call("glob", pattern="/library/asyncio-*.html"),
        call("read_file", path="/library/asyncio-task.html"),
    ]
    agent = Agent(ScriptedModel(calls, "done"), filesystem={"root": str(docs)})
    found, listed, page = texts(await agent.run("Look."))
    assert "/library/asyncio-task.html" in found
    assert {each["path"]: each["size"] for each in json.loads(listed)} == {
        f"/library/{path.name}": path.stat().st_size for path in (docs / "library").glob("asyncio-*.html")
    }
    assert "<title>Coroutines and Tasks" in page


async def test_what_is_searched_for_is_found_and_fetched(docs: Path) -> None:
    """A search over all pages of the reference, then the first result."""
    pages = [_page(path) for path in sorted((docs / "reference").glob("*.html"))]
    with LocalSite(pages) as site:

        def first_result(request: Any) -> Any:
            found = re.search(rf"{re.escape(site.url)}/reference/[\w-]+", str(request.messages[-1]))
            assert found is not None
            return call("fetch_url", url=found[0])

        model = ScriptedModel(call("web_search", query="assert statement AssertionError"), first_result, "done")
        web = {"search": f"searxng:{site.url}", "allow": [site.address]}
        _, page = texts(await Agent(model, web=web).run("Which exception does it raise?"))
    assert "AssertionError" in page


def _page(path: Path) -> Page:
    """One with the content of the file."""
    text = path.read_text(encoding="utf-8")
    title = re.search(r"<title>(.*?) &#8212;", text)
    main = re.search(r'<div class="body" role="main">(.*)<div class="sphinxsidebar"', text, re.DOTALL)
    assert title is not None
    assert main is not None
    return Page(path=f"/reference/{path.stem}", title=title[1], body=main[1])
