"""The model of the documents, scripted: what stands behind ``llamacpp:...`` while a block is run by a test.

The programs that readers see name the embedded model. Here the plugin of that name is the installed one with another
factory, so settings, discovery and everything else is what readers get; only the answers come from the document.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from attrs import evolve

from locus.models.protocol import ModelRequest, ModelResponse, OnChunk, Price
from locus_plugin_llamacpp.manifest import plugin as embedded
from locus_testkit import ScriptedModel, call, malformed_call

#: The same plugin, with a scripted model.
plugin = evolve(embedded, provides={"model": "tests.docs.stand_in:make"})

_NAMES = {"call": call, "malformed_call": malformed_call}
_NO_SCRIPT = "no block under test says what the model answers; put <!-- model: TURN, ... --> before it"


class _Playing:
    """The script of the block under way, shared by every model that the block makes."""

    model: ScriptedModel | None = None
    unscripted = 0


class StandIn:
    """A model by its name; answers with the turns of the block under way."""

    price = Price(prompt=0.0, completion=0.0)

    def __init__(self, name: str) -> None:
        self.name = name

    async def complete(self, request: ModelRequest, on_chunk: OnChunk | None = None) -> ModelResponse:
        """The next turn of the block's script."""
        if _Playing.model is None:
            _Playing.unscripted += 1
            raise AssertionError(_NO_SCRIPT)
        return await _Playing.model.complete(request, on_chunk)


def make(name: str, settings: Any) -> StandIn:
    """What the plugin provides."""
    return StandIn(f"llamacpp:{name}")


def turns_of(text: str) -> list[Any]:
    """The turns in the text of a ``model:`` comment."""
    # The text comes from a document of this repository.
    turns: list[Any] = eval(f"[{text}\n]", _NAMES)
    return turns


@contextmanager
def script(turns: str | None) -> Iterator[None]:
    """Answer with these turns, the text of a ``model:`` comment; all of them must be used within the block."""
    _Playing.unscripted = 0
    _Playing.model = None if turns is None else ScriptedModel(*turns_of(turns), chunks=True)
    try:
        yield
        assert not _Playing.unscripted, _NO_SCRIPT
        if _Playing.model is not None:
            assert _Playing.model.overrun is None, _Playing.model.overrun
            assert not _Playing.model.remaining, f"{_Playing.model.remaining} turn(s) of the script were not used"
    finally:
        _Playing.model = None
