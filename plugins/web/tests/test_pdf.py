"""Pages that are PDF: their text, within the bounds of any page."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator

import pytest

from locus import Agent
from locus.plugins import Catalogue
from locus_plugin_web import Fetcher, FetchFailed, FetchRefused, WebSettings
from locus_plugin_web.manifest import plugin
from locus_testkit import ScriptedModel, call
from locus_testkit.hostile import Answer, LocalServer
from locus_testkit.pdf_files import make_pdf

pytestmark = pytest.mark.anyio

PAPER = make_pdf(["Gallium (Ga) melts\nat 29.8 degrees.", "It costs 5 dollars."], "Gallium")
TEXT = "[page 1]\nGallium (Ga) melts\nat 29.8 degrees.\n[page 2]\nIt costs 5 dollars."

#: Answers with a body of a type, if it has one; gives the address and the settings with which it may be fetched.
Serve = Callable[[bytes, str | None], tuple[str, WebSettings]]


@pytest.fixture
def serve() -> Iterator[Serve]:
    with LocalServer() as server:

        def start(body: bytes, media_type: str | None) -> tuple[str, WebSettings]:
            server.answering = lambda _: Answer(body=body, media_type=media_type)
            return f"{server.url}/paper", WebSettings(allow=(f"127.0.0.1:{server.port}",), robots=False, timeout=60.0)

        yield start


@pytest.mark.parametrize("media_type", ["application/pdf", None])
async def test_a_pdf_is_read_as_the_text_of_its_pages(serve: Serve, media_type: str | None) -> None:
    url, settings = serve(PAPER, media_type)
    page = await Fetcher(settings).fetch(url)
    assert (page.title, page.text, page.is_whole) == ("Gallium", TEXT, True)


async def test_the_model_reads_it_quoted_and_untrusted(serve: Serve) -> None:
    url, settings = serve(PAPER, "application/pdf")
    model = ScriptedModel(call("fetch_url", url=url), "done")
    result = await Agent(model, web=settings, catalogue=Catalogue.only(plugin)).run(f"Read {url}")
    (done,) = result.state.tool_executions
    assert done.result is not None
    assert "untrusted text from the web" in done.result
    assert TEXT in done.result
    assert done.known_label.is_tainted


@pytest.mark.parametrize("body", [b"%PDF-1.7", b"plain text", PAPER[: len(PAPER) // 2]])
async def test_what_is_said_to_be_a_pdf_and_cannot_be_read_is_an_error(serve: Serve, body: bytes) -> None:
    url, settings = serve(body, "application/pdf")
    with pytest.raises(FetchFailed, match="it is damaged, or not a PDF"):
        await Fetcher(settings).fetch(url)


async def test_a_pdf_has_the_bounds_of_a_page(serve: Serve) -> None:
    url, settings = serve(PAPER, "application/pdf")
    with pytest.raises(FetchFailed, match="larger than 100 bytes"):
        await Fetcher(WebSettings(allow=settings.allow, robots=False, max_bytes=100)).fetch(url)


async def test_a_pdf_of_another_type_is_not_read(serve: Serve) -> None:
    url, settings = serve(PAPER, "image/png")
    with pytest.raises(FetchRefused, match="got the type image/png"):
        await Fetcher(settings).fetch(url)


async def test_without_the_library_the_model_reads_what_to_install(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    url, settings = serve(PAPER, "application/pdf")
    with pytest.raises(FetchRefused, match=r'run: pip install "locus-plugin-web\[pdf\]"'):
        await Fetcher(settings).fetch(url)
