"""Models: what the loop asks a provider, and what it gets back."""

from typing import TYPE_CHECKING

from locus.core.lazy import exports

if TYPE_CHECKING:
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
    from locus.models.strict import NotOneObject, json_object
    from locus.models.swaps import portable, writer, written_by

__all__ = [
    "Chunk",
    "Model",
    "ModelRequest",
    "ModelResponse",
    "ModelSettings",
    "NotOneObject",
    "OnChunk",
    "OutputSpec",
    "Price",
    "PriceSource",
    "StopReason",
    "ToolChoice",
    "get_model",
    "json_object",
    "portable",
    "writer",
    "written_by",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "Chunk": "locus.models.protocol",
        "Model": "locus.models.protocol",
        "ModelRequest": "locus.models.protocol",
        "ModelResponse": "locus.models.protocol",
        "ModelSettings": "locus.models.protocol",
        "NotOneObject": "locus.models.strict",
        "OnChunk": "locus.models.protocol",
        "OutputSpec": "locus.models.protocol",
        "Price": "locus.models.protocol",
        "PriceSource": "locus.models.prices",
        "StopReason": "locus.models.protocol",
        "ToolChoice": "locus.models.protocol",
        "get_model": "locus.models.registry",
        "json_object": "locus.models.strict",
        "portable": "locus.models.swaps",
        "writer": "locus.models.swaps",
        "written_by": "locus.models.swaps",
    },
)
