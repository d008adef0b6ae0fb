"""Each test of the knowledge contract passes for a provider that keeps it, and fails for one that does not."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import anyio
import pytest
from attrs import evolve, frozen

from locus.core import EMPTY
from locus_testkit import KnowledgeContract


@frozen
class Item:
    name: str
    provider: str = "letters"
    key: str = ""
    tags: tuple[str, ...] = ()


@frozen
class Evidence:
    summary: Any
    payload: Mapping[str, Any] = EMPTY


@frozen
class Research:
    size: int


@frozen
class Row:
    name: str
    provider: str
    size: int
    model_id: str
    prompt_hash: str


def look_up(name: str) -> str:
    """Look a letter up."""
    return name


class Letters:
    """Keeps the contract, with sync methods."""

    is_open = False

    def open(self) -> None:
        assert not self.is_open
        self.is_open = True

    def tools_for_agent(self) -> list[Any]:
        return [look_up]

    def output_schema(self) -> Any:
        return Research

    def discover(self, query: str) -> Any:
        return [Item(name, key=f"letters:{name}") for name in "abc"]

    def ground(self, item: Item) -> Any:
        assert self.is_open
        return Evidence(f"{item.name} is a letter", {"code": ord(item.name)})

    def merge_to_row(self, item: Item, grounding: Any, research: Any, model_id: str, prompt_hash: str) -> Row:
        return Row(item.name, item.provider, research.size, model_id, prompt_hash)

    def close(self) -> None:
        self.is_open = False


class AsyncLetters(Letters):
    """Keeps it with async ones."""

    async def open(self) -> None:  # type: ignore[override]
        super().open()

    async def discover(self, query: str) -> Any:
        for item in super().discover(query):
            yield item

    async def ground(self, item: Item) -> Any:
        return super().ground(item)

    async def close(self) -> None:  # type: ignore[override]
        super().close()


class TestLetters(KnowledgeContract):
    query = "all"

    def make_provider(self) -> Any:
        return Letters()

    def make_research(self, item: Any) -> Any:
        return Research(1)


class TestAsyncLetters(TestLetters):
    def make_provider(self) -> Any:
        return AsyncLetters()


# -- and those that break it ---------------------------------------------------------------------------

_COUNT = itertools.count()


class WithoutMerge(Letters):
    merge_to_row = None  # type: ignore[assignment]


class StaysOpen(Letters):
    def close(self) -> None:
        """Forget to."""


class SameTools(Letters):
    def tools_for_agent(self) -> list[Any]:
        return [look_up, look_up]


class NoSchema(Letters):
    def output_schema(self) -> Any:
        return 3


class OtherSchema(Letters):
    def output_schema(self) -> Any:
        return Row


class SameKeys(Letters):
    def discover(self, query: str) -> Any:
        return [evolve(item, key="letters:a") for item in super().discover(query)]


class NewKeys(Letters):
    def discover(self, query: str) -> Any:
        return [evolve(item, key=f"{item.key}-{next(_COUNT)}") for item in super().discover(query)]


class NoText(Letters):
    def ground(self, item: Item) -> Any:
        return Evidence(3)


class NoJson(Letters):
    def ground(self, item: Item) -> Any:
        return Evidence("fine", {"thing": object()})


class Mixes(AsyncLetters):
    """Keeps what it is asked in itself."""

    async def ground(self, item: Item) -> Any:
        self.item = item
        await anyio.sleep(0.01)
        return Evidence(f"{self.item.name} is a letter")


class OtherItem(Letters):
    def merge_to_row(self, *arguments: Any, **named: Any) -> Row:
        return evolve(super().merge_to_row(*arguments, **named), name="z")


class OtherModel(Letters):
    def merge_to_row(self, *arguments: Any, **named: Any) -> Row:
        return evolve(super().merge_to_row(*arguments, **named), model_id="my own")


class OtherClass(Letters):
    def merge_to_row(self, *arguments: Any, **named: Any) -> Item:  # type: ignore[override]
        return super().merge_to_row(*arguments, **named)  # type: ignore[return-value]


class NewRows(Letters):
    def merge_to_row(self, *arguments: Any, **named: Any) -> Row:
        return evolve(super().merge_to_row(*arguments, **named), size=next(_COUNT))


BROKEN = {
    WithoutMerge: "test_provider_has_every_method",
    StaysOpen: "test_provider_can_be_opened_again",
    SameTools: "test_tools_have_names_of_their_own",
    NoSchema: "test_output_schema_has_a_json_form",
    OtherSchema: "test_output_schema_has_a_json_form",
    SameKeys: "test_items_have_names_and_keys_of_their_own",
    NewKeys: "test_items_keep_their_keys",
    NoText: "test_evidence_is_a_text_with_data",
    NoJson: "test_evidence_is_a_text_with_data",
    Mixes: "test_items_are_grounded_side_by_side",
    OtherItem: "test_row_is_of_its_item",
    OtherModel: "test_row_is_of_its_item",
    OtherClass: "test_row_has_a_json_form_that_reads_back",
    NewRows: "test_row_is_made_of_what_was_found_and_nothing_else",
}


@pytest.mark.anyio
@pytest.mark.parametrize(("kind", "promise"), BROKEN.items(), ids=lambda value: getattr(value, "__name__", value))
async def test_a_provider_that_breaks_a_promise_is_caught(kind: type[Letters], promise: str) -> None:
    class Case(TestLetters):
        def make_provider(self) -> Any:
            return kind()

    caught: BaseException | None = None
    try:
        made = getattr(Case(), promise)()
        if made is not None:
            await made
    except BaseException as e:  # noqa: BLE001  # whatever the test fails with
        caught = e
    assert caught is not None
    assert not isinstance(caught, AttributeError | NameError)  # a mistake in the class above


def test_every_promise_has_a_provider_that_breaks_it() -> None:
    promises = {name for name in vars(KnowledgeContract) if name.startswith("test_")}
    assert promises == set(BROKEN.values())
