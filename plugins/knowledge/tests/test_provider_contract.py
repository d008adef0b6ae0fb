"""The providers of these tests keep the contract of the test kit."""

from __future__ import annotations

from typing import Any

from locus_testkit import KnowledgeContract

from .kit import ELEMENTS, AsyncElements, Elements, Research


class TestElements(KnowledgeContract):
    query = "metals"

    def make_provider(self) -> Any:
        return Elements(lambda line: None)

    def make_research(self, item: Any) -> Any:
        return Research(ELEMENTS[item.name])


class TestAsyncElements(TestElements):
    def make_provider(self) -> Any:
        return AsyncElements(lambda line: None)
