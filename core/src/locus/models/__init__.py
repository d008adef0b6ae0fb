"""Models: what the loop asks a provider, and what it gets back."""

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
]
