"""`KnowledgeContract`: what a scan relies on when it asks a provider of a research domain, one test a promise.

A scan may die and go on in another process, research several items at once, and keep its rows for years. So a provider
can be opened again, names the same items again, and makes the same row of the same findings.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, ClassVar

import anyio
import pytest

from locus.core import decode, encode, encode_data, freeze
from locus.models import output_schema
from locus.tools import as_tool, call_in_thread
from locus_testkit.contracts.base import Contract

__all__ = ["KnowledgeContract"]

_METHODS = ("open", "tools_for_agent", "output_schema", "discover", "ground", "merge_to_row", "close")

#: How many items are looked at.
_ITEMS = 5


@pytest.mark.anyio
class KnowledgeContract(Contract):
    """The promises of a `KnowledgeProvider`, whose methods are sync or async. Subclass it and say how yours is made.

    Example::

        class TestElements(KnowledgeContract):
            query = "metals"

            def make_provider(self):
                return Elements()

            def make_research(self, item):
                return Research(density=1.0)
    """

    #: A query that discovers at least two items.
    query: ClassVar[str]

    def make_provider(self) -> Any:
        """A new provider of the domain, not open yet."""
        raise NotImplementedError

    def make_research(self, item: Any) -> Any:
        """What an agent may have submitted about an item: a value of the provider's output schema."""
        raise NotImplementedError

    # -- its life ---------------------------------------------------------------------------------

    def test_provider_has_every_method(self) -> None:
        """A scan calls seven methods."""
        provider = self.make_provider()
        assert [name for name in _METHODS if not callable(getattr(provider, name, None))] == []

    async def test_provider_can_be_opened_again(self) -> None:
        """A scan that is resumed in the same process opens it again; a scan that finds nothing only closes it."""
        provider = self.make_provider()
        for _ in range(2):
            async with _hold_open(provider):
                pass
        async with _hold_open(provider):
            assert await _discover(provider, self.query)

    # -- its agent --------------------------------------------------------------------------------

    async def test_tools_have_names_of_their_own(self) -> None:
        """The agent of an item gets the tools as they are."""
        async with _hold_open(self.make_provider()) as provider:
            tools = [as_tool(each) for each in await _call(provider.tools_for_agent)]
        names = [each.name for each in tools]
        assert len(set(names)) == len(names)

    async def test_output_schema_has_a_json_form(self) -> None:
        """A model can be told what to submit, and what a submission is made into is what the rows are made of."""
        async with _hold_open(self.make_provider()) as provider:
            source = await _call(provider.output_schema)
            (item, *_) = await _discover(provider, self.query)
        if source is not None:
            assert output_schema(source).spec.schema
            made = self.make_research(item)
            assert not isinstance(source, type) or isinstance(made, source | Mapping)

    # -- its items --------------------------------------------------------------------------------

    async def test_items_have_names_and_keys_of_their_own(self) -> None:
        """The key is the row's in a catalog, so no two items share one."""
        async with _hold_open(self.make_provider()) as provider:
            items = await _discover(provider, self.query)
        assert len(items) >= 2
        for item in items:
            for text in (item.name, item.provider, item.key):
                assert isinstance(text, str)
                assert text.strip()
            assert all(isinstance(tag, str) for tag in item.tags)
            assert decode(encode(item), type(item)) == item
        assert len({item.key for item in items}) == len(items)
        assert len({item.provider for item in items}) == 1

    async def test_items_keep_their_keys(self) -> None:
        """A later scan writes over the rows of an earlier one, and does not add them again."""
        found = []
        for _ in range(2):
            async with _hold_open(self.make_provider()) as provider:
                found.append([item.key for item in await _discover(provider, self.query)])
        assert found[0] == found[1]

    async def test_evidence_is_a_text_with_data(self) -> None:
        """Evidence is kept with the scan, so its payload has a JSON form."""
        async with _hold_open(self.make_provider()) as provider:
            for item in (await _discover(provider, self.query))[:_ITEMS]:
                evidence = await _call(provider.ground, item)
                assert isinstance(evidence.summary, str)
                assert isinstance(evidence.payload, Mapping)
                encode_data(freeze(evidence.payload))

    async def test_items_are_grounded_side_by_side(self) -> None:
        """Several items are researched at once: each gets its own evidence."""
        async with _hold_open(self.make_provider()) as provider:
            items = (await _discover(provider, self.query))[:_ITEMS]
            one_by_one = {item.key: (await _call(provider.ground, item)).summary for item in items}
            together: dict[str, str] = {}

            async def ground(item: Any) -> None:
                together[item.key] = (await _call(provider.ground, item)).summary

            async with anyio.create_task_group() as group:
                for item in items:
                    group.start_soon(ground, item)
        assert together == one_by_one

    # -- its rows ---------------------------------------------------------------------------------

    async def test_row_is_of_its_item(self) -> None:
        """A row is found again by the item, and says which model and which prompt made it."""
        for item, row in await self._rows():
            assert (row.name, row.provider) == (item.name, item.provider)
            assert row.model_id in ("", "test:model")
            assert row.prompt_hash in ("", "0" * 64)

    async def test_row_has_a_json_form_that_reads_back(self) -> None:
        """A row outlives the process that made it, as the class that `merge_to_row` is annotated to return."""
        for _, row in await self._rows():
            assert decode(encode(row), type(row)) == row
        returns = inspect.get_annotations(self.make_provider().merge_to_row, eval_str=False).get("return")
        assert returns in (None, "Any") or _name_of(returns) == type(row).__name__

    async def test_row_is_made_of_what_was_found_and_nothing_else(self) -> None:
        """A row that is made again after a crash is the same."""
        assert await self._rows() == await self._rows()

    async def _rows(self) -> list[tuple[Any, Any]]:
        pairs = []
        async with _hold_open(self.make_provider()) as provider:
            for item in (await _discover(provider, self.query))[:_ITEMS]:
                evidence = await _call(provider.ground, item)
                merge = partial(provider.merge_to_row, item, evidence, self.make_research(item))
                pairs.append((item, await _call(merge, model_id="test:model", prompt_hash="0" * 64)))
        return pairs


@asynccontextmanager
async def _hold_open(provider: Any) -> AsyncIterator[Any]:
    await _call(provider.open)
    try:
        yield provider
    finally:
        await _call(provider.close)


async def _call(method: Any, *arguments: Any, **named: Any) -> Any:
    """What a method gives, sync or async; a synchronous one in a worker thread, as a scan calls it."""
    return await call_in_thread(partial(method, *arguments, **named))


async def _discover(provider: Any, query: str) -> list[Any]:
    found = await _call(provider.discover, query)
    return [item async for item in found] if hasattr(found, "__aiter__") else list(found)


def _name_of(annotation: Any) -> str:
    return annotation.rpartition(".")[2] if isinstance(annotation, str) else getattr(annotation, "__name__", "")
