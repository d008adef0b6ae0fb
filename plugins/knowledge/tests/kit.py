"""A small domain, whose provider notes what is asked of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from attrs import frozen

from locus import tool
from locus.models import ModelRequest
from locus_plugin_knowledge import Grounding, ItemRef, KnowledgeRow
from locus_testkit import ScriptedModel, Turn, call

__all__ = ["ELEMENTS", "AsyncElements", "ElementRow", "Elements", "Research", "model_of", "name_in"]

#: Name -> density.
ELEMENTS = {"lithium": 0.53, "aluminium": 2.7, "iron": 7.9, "copper": 9.0, "gold": 19.3}


@frozen
class Research:
    """What the agent submits."""

    density: float
    uses: str = ""


@frozen(kw_only=True)
class ElementRow(KnowledgeRow):
    """A row of the domain."""

    density: float
    is_noble: bool = False
    symbol: str | None = None


@tool(effect="pure")
def look_up(name: str) -> str:
    """Look an element up."""
    return f"The density of {name} is {ELEMENTS[name]}."


class Elements:
    """A provider with sync methods.

    Args:
        note: gets a line for each call of a method.
        fail: method, or ``"method name"`` of an item -> what it raises.
        names: what is discovered.
    """

    def __init__(
        self,
        note: Callable[[str], None],
        *,
        fail: dict[str, BaseException] | None = None,
        names: Sequence[str] = tuple(ELEMENTS),
    ) -> None:
        self.note, self.fail, self.names = note, fail or {}, names
        self.closed = threading.Event()

    def _do(self, *words: str) -> None:
        said = " ".join(words)
        self.note(said)
        error = self.fail.get(said)
        if error is not None:
            raise error

    def open(self) -> None:
        self._do("open")

    def tools_for_agent(self) -> list[Any]:
        self._do("tools")
        return [look_up]

    def output_schema(self) -> type:
        self._do("schema")
        return Research

    def discover(self, query: str) -> Any:
        self._do("discover")
        return [ItemRef(name, "elements", tags=["metal"]) for name in self.names]

    def ground(self, item: ItemRef) -> Grounding:
        self._do("ground", item.name)
        return Grounding(f"{item.name} is an element", {"letters": len(item.name)})

    def merge_to_row(
        self, item: ItemRef, grounding: Grounding, research: Research, model_id: str, prompt_hash: str
    ) -> ElementRow:
        self._do("merge", item.name)
        return ElementRow(
            name=item.name,
            provider=item.provider,
            descriptions=[grounding.summary, research.uses],
            density=research.density,
            model_id=model_id,
            prompt_hash=prompt_hash,
        )

    def close(self) -> None:
        self.closed.set()
        self._do("close")


class AsyncElements(Elements):
    """The same with async methods."""

    async def open(self) -> None:  # type: ignore[override]
        super().open()

    async def tools_for_agent(self) -> list[Any]:  # type: ignore[override]
        return super().tools_for_agent()

    async def output_schema(self) -> type:  # type: ignore[override]
        return super().output_schema()

    async def discover(self, query: str) -> Any:
        for item in super().discover(query):
            yield item

    async def ground(self, item: ItemRef) -> Grounding:  # type: ignore[override]
        return super().ground(item)

    async def merge_to_row(self, *arguments: Any, **named: Any) -> ElementRow:  # type: ignore[override]
        return super().merge_to_row(*arguments, **named)

    async def close(self) -> None:  # type: ignore[override]
        super().close()


def name_in(request: ModelRequest) -> str:
    """The element that a request is about."""
    asked = next(message.text for message in request.messages if message.role == "user")
    return next(name for name in ELEMENTS if f'item: "{name}".' in asked)


def model_of(note: Callable[[str], None] = lambda line: None, **turns: Sequence[Turn]) -> ScriptedModel:
    """A model that looks an element up and submits its density, in whatever process.

    Args:
        note: gets a line for each request.
        turns: the element -> what the model answers about it instead.
    """

    def script(request: ModelRequest) -> Sequence[Turn]:
        name = name_in(request)
        note(f"model {name}")
        found = turns.get(name)
        return found or (call("look_up", name=name), f'{{"density": {ELEMENTS[name]}, "uses": "Uses of {name}."}}')

    return ScriptedModel(script=script)
