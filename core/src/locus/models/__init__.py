"""Models: what the loop asks a provider, and what it gets back."""

from typing import TYPE_CHECKING

from locus.core.lazy import exports

if TYPE_CHECKING:
    from locus.models.forced import ForcedAnswer, forced_answer
    from locus.models.handoff import portable, writer, written_by
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
    from locus.models.strictness import NotStrict, StrictRules, strict_schema

__all__ = [
    "Chunk",
    "ForcedAnswer",
    "Model",
    "ModelRequest",
    "ModelResponse",
    "ModelSettings",
    "NotStrict",
    "OnChunk",
    "OutputSpec",
    "Price",
    "PriceSource",
    "StopReason",
    "StrictRules",
    "ToolChoice",
    "forced_answer",
    "get_model",
    "portable",
    "strict_schema",
    "writer",
    "written_by",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "Chunk": "locus.models.protocol",
        "ForcedAnswer": "locus.models.forced",
        "Model": "locus.models.protocol",
        "ModelRequest": "locus.models.protocol",
        "ModelResponse": "locus.models.protocol",
        "ModelSettings": "locus.models.protocol",
        "NotStrict": "locus.models.strictness",
        "OnChunk": "locus.models.protocol",
        "OutputSpec": "locus.models.protocol",
        "Price": "locus.models.protocol",
        "PriceSource": "locus.models.prices",
        "StopReason": "locus.models.protocol",
        "StrictRules": "locus.models.strictness",
        "ToolChoice": "locus.models.protocol",
        "forced_answer": "locus.models.forced",
        "get_model": "locus.models.registry",
        "portable": "locus.models.handoff",
        "strict_schema": "locus.models.strictness",
        "writer": "locus.models.handoff",
        "written_by": "locus.models.handoff",
    },
)
