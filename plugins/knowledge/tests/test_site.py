"""A provider over a real site: found by its search, read from its pages, and compared with the data behind them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from locus.journal import MemoryStore
from locus_plugin_knowledge import ScanItemEvent, SqliteCatalog, scan
from locus_testkit import KnowledgeContract, ScriptedModel
from locus_testkit.site import LocalSite

from .site_kit import QUERY, TRUTH, ElementRow, Research, SiteElements, read

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def site() -> Iterator[LocalSite]:
    with LocalSite() as made:
        yield made


@pytest.mark.anyio
async def test_rows_of_a_site_are_what_its_data_say_and_are_found_again(site: LocalSite, tmp_path: Any) -> None:
    catalog = SqliteCatalog(tmp_path / "elements.db", row_type=ElementRow)
    model, store = ScriptedModel(read, after="repeat"), MemoryStore()
    run = scan(
        SiteElements(site.url),
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


@pytest.mark.proof
def test_a_process_that_is_killed_in_the_third_of_five_items_reads_no_page_of_those_before_again(
    site: LocalSite, tmp_path: Path
) -> None:
    def run(die_in: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "plugins.knowledge.tests.site_kit", site.url, str(tmp_path), str(die_in)]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)

    assert run(3).returncode == -9
    before = list(site.paths)
    done = run(0)
    assert done.returncode == 0, done.stderr
    came = json.loads(done.stdout)

    assert (len(came["names"]), came["errors"]) == (5, {})
    pages = [f"/elements/{name.lower()}" for name in came["names"]]
    assert len([path for path in before if path in pages]) == 6
    # For each its evidence and what its agent read. The result of the tool is written while the model is asked, so of
    # the item under way the page may be read again. Opened twice, and closed once: who is killed closes nothing.
    counts = Counter(site.paths)
    assert [counts[page] for page in pages if page != pages[2]] == [2] * 4
    assert counts[pages[2]] in (2, 3)
    assert (counts["/robots.txt"], counts["/about"]) == (2, 1)
    assert sum(path.startswith("/search") for path in site.paths) == 1


class TestSiteElements(KnowledgeContract):
    query = QUERY

    @pytest.fixture(autouse=True)
    def _site(self, site: LocalSite) -> None:
        self.site = site

    def make_provider(self) -> Any:
        return SiteElements(self.site.url)

    def make_research(self, item: Any) -> Any:
        return Research(TRUTH[item.name].symbol)
