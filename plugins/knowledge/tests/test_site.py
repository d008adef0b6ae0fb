"""A provider over a real site: found by its search, read from its pages, and compared with the data behind them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest
from attrs import frozen

from locus import tool
from locus.journal import MemoryStore
from locus.models import ModelRequest
from locus_plugin_knowledge import Grounding, ItemRef, KnowledgeRow, ScanItemEvent, SqliteCatalog, scan
from locus_testkit import KnowledgeContract, ScriptedModel, Turn, call
from locus_testkit.site import LocalSite, elements

QUERY = "metals discovered in Sweden"
TRUTH = {each.name: each for each in elements()}


@frozen
class Research:
    """What the agent submits."""

    symbol: str
    melting_point: float | None = None
    discoverers: str = ""


@frozen(kw_only=True)
class ElementRow(KnowledgeRow):
    """An element."""

    symbol: str
    melting_point: float | None = None


class SiteElements:
    """Elements, by the search and the pages of a site."""

    def __init__(self, site: LocalSite) -> None:
        self.site = site

    def open(self) -> None:
        self._get("/robots.txt")

    def tools_for_agent(self) -> list[Any]:
        @tool(effect="pure", egress=True)
        def read_page(name: str) -> str:
            """Read the page of an element."""
            return re.sub(r"<[^>]+>", " ", self._get(f"/elements/{quote(name.lower())}"))

        return [read_page]

    def output_schema(self) -> type:
        return Research

    def discover(self, query: str) -> list[ItemRef]:
        found = json.loads(self._get(f"/search?format=json&q={quote(query)}"))["results"]
        return [ItemRef(each["title"], "site") for each in found if each["title"] in TRUTH]

    def ground(self, item: ItemRef) -> Grounding:
        page = self._get(f"/elements/{quote(item.name.lower())}")
        words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
        return Grounding(words[:500], {"url": self.site.at(f"/elements/{item.name.lower()}"), "size": len(page)})

    def merge_to_row(
        self, item: ItemRef, grounding: Grounding, research: Research, model_id: str, prompt_hash: str
    ) -> ElementRow:
        return ElementRow(
            name=item.name,
            provider=item.provider,
            descriptions=(f"Discovered by {research.discoverers}.",),
            symbol=research.symbol,
            melting_point=research.melting_point,
            model_id=model_id,
            prompt_hash=prompt_hash,
        )

    def close(self) -> None:
        self._get("/about")

    def _get(self, path: str) -> str:
        with urlopen(self.site.at(path)) as answer:
            text: str = answer.read().decode()
        return text


def read(request: ModelRequest) -> Turn:
    """A model that reads: it asks for the page of the item, and submits what the table there says."""
    results = [result for message in request.messages for result in message.tool_results]
    if not results:
        asked = next(message.text for message in request.messages if message.role == "user")
        found = re.search(r"The item:\n<<<data \w+\n(.+)\n", asked)
        assert found is not None
        return call("read_page", name=found[1])
    page = re.sub(r"\s+", " ", str(results[-1].content))

    def value(name: str, pattern: str) -> str:
        found = re.search(rf"{name} ({pattern})", page)
        return found[1] if found else ""

    melting = value("Melting point", r"[\d.]+(?= K)")
    discoverers = value("Discovered by", r".+?(?= Discovered in| Origin of)")
    submitted = {"symbol": value("Symbol", r"\w+"), "melting_point": float(melting) if melting else None}
    return json.dumps({**submitted, "discoverers": discoverers})


@pytest.fixture
def site() -> Iterator[LocalSite]:
    with LocalSite() as made:
        yield made


@pytest.mark.anyio
async def test_rows_of_a_site_are_what_its_data_say_and_are_found_again(site: LocalSite, tmp_path: Any) -> None:
    catalog = SqliteCatalog(tmp_path / "elements.db", row_type=ElementRow)
    model, store = ScriptedModel(read, after="repeat"), MemoryStore()
    run = scan(
        SiteElements(site),
        "metals discovered in Sweden",
        model=model,
        catalog=catalog,
        checkpointer=store,
        thread_id="t",
    )
    seen = [event async for event in run if isinstance(event, ScanItemEvent)]
    result = run.result

    assert result.errors == {}
    assert len(result.rows) == len(result.items) == len(seen) > 3
    for row in result.rows:
        assert isinstance(row, ElementRow)
        truth = TRUTH[row.name]
        assert (row.symbol, row.melting_point) == (truth.symbol, truth.melting_point)
        assert truth.discoverers.split(",")[0] in row.descriptions[0]
        assert row.facts == ("fact_001",)
    assert site.paths[0] == "/robots.txt"
    assert site.paths[1].startswith("/search?")
    assert site.paths[-1] == "/about"
    assert site.paths.count("/about") == 1

    first = result.rows[0]
    (found, *_) = await catalog.search(first.descriptions[0], where={"symbol": TRUTH[first.name].symbol})
    assert found.row == first


class TestSiteElements(KnowledgeContract):
    query = QUERY

    @pytest.fixture(autouse=True)
    def _site(self, site: LocalSite) -> None:
        self.site = site

    def make_provider(self) -> Any:
        return SiteElements(self.site)

    def make_research(self, item: Any) -> Any:
        return Research(TRUTH[item.name].symbol)
