"""Models: what the loop asks a provider, and what it gets back."""

from typing import TYPE_CHECKING

from locus.core.lazy import exports

if TYPE_CHECKING:
    from locus.models.call import Called
    from locus.models.handoff import get_writer, make_portable, mark_writer
    from locus.models.output import OutputError, OutputSchema, output_schema
    from locus.models.prices import PriceSource
    from locus.models.protocol import (
        Chunk,
        Model,
        ModelRequest,
        ModelResponse,
        ModelSettings,
        OnChunk,
        OutputSpec,
        Price,
        StopReason,
        ToolChoice,
    )
    from locus.models.registry import get_model

__all__ = [
    "Called",
    "Chunk",
    "Model",
    "ModelRequest",
    "ModelResponse",
    "ModelSettings",
    "OnChunk",
    "OutputError",
    "OutputSchema",
    "OutputSpec",
    "Price",
    "PriceSource",
    "StopReason",
    "ToolChoice",
    "get_model",
    "get_writer",
    "make_portable",
    "mark_writer",
    "output_schema",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "Called": "locus.models.call",
        "Chunk": "locus.models.protocol",
        "Model": "locus.models.protocol",
        "ModelRequest": "locus.models.protocol",
        "ModelResponse": "locus.models.protocol",
        "ModelSettings": "locus.models.protocol",
        "OnChunk": "locus.models.protocol",
        "OutputError": "locus.models.output",
        "OutputSchema": "locus.models.output",
        "OutputSpec": "locus.models.protocol",
        "Price": "locus.models.protocol",
        "PriceSource": "locus.models.prices",
        "StopReason": "locus.models.protocol",
        "ToolChoice": "locus.models.protocol",
        "get_model": "locus.models.registry",
        "output_schema": "locus.models.output",
        "make_portable": "locus.models.handoff",
        "get_writer": "locus.models.handoff",
        "mark_writer": "locus.models.handoff",
    },
)
