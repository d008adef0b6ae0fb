"""A provider over a site of the test kit, a model that reads its pages, and a scan of it in a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import anyio
from attrs import frozen

from locus import tool
from locus.models import ModelRequest
from locus_plugin_knowledge import Grounding, ItemRef, KnowledgeRow, scan
from locus_plugin_sqlite import SqliteStore
from locus_testkit import ScriptedModel, Turn, call
from locus_testkit.site import elements

__all__ = ["QUERY", "TRUTH", "ElementRow", "Research", "SiteElements", "read"]

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

    def __init__(self, url: str, *, most: int = 10) -> None:
        self.url, self.most = url, most

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
        return [ItemRef(each["title"], "site") for each in found if each["title"] in TRUTH][: self.most]

    def ground(self, item: ItemRef) -> Grounding:
        page = self._get(f"/elements/{quote(item.name.lower())}")
        words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
        return Grounding(words[:500], {"size": len(page)})

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
        with urlopen(self.url + path) as answer:
            text: str = answer.read().decode()
        return text


def read(request: ModelRequest) -> Turn:
    """A model that reads: it asks for the page of the item, and submits what the table there says."""
    results = [result for message in request.messages for result in message.tool_results]
    if not results:
        asked = next(message.text for message in request.messages if message.role == "user")
        found = re.search(r'^Research this item: "(.+?)"\.', asked)
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


async def go(url: str, folder: Path, die_in: int) -> dict[str, Any]:
    """Scan five items; die when the model is asked for what it found of the one with this number."""
    seen: list[str] = []

    def answer(request: ModelRequest) -> Turn:
        asked = request.messages[1].text
        if asked not in seen:
            seen.append(asked)
        elif len(seen) == die_in:
            os.kill(os.getpid(), signal.SIGKILL)
        return read(request)

    async with SqliteStore(folder / "runs.db") as store:
        model = ScriptedModel(answer, after="repeat")
        provider = SiteElements(url, most=5)
        result = await scan(provider, QUERY, model=model, concurrency=1, checkpointer=store, thread_id="t")
    return {"names": [row.name for row in result.rows], "errors": dict(result.errors)}


if __name__ == "__main__":
    print(json.dumps(anyio.run(go, sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))))  # noqa: T201
