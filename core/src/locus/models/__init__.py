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
        get_model,
    )

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
        "locus.models.call": ("Called",),
        "locus.models.handoff": ("get_writer", "make_portable", "mark_writer"),
        "locus.models.output": ("OutputError", "OutputSchema", "output_schema"),
        "locus.models.prices": ("PriceSource",),
        "locus.models.protocol": (
            "Chunk",
            "Model",
            "ModelRequest",
            "ModelResponse",
            "ModelSettings",
            "OnChunk",
            "OutputSpec",
            "Price",
            "StopReason",
            "ToolChoice",
            "get_model",
        ),
    },
)
