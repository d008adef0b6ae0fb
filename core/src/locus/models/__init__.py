"""Models: what the loop asks a provider, and what it gets back."""

from typing import TYPE_CHECKING

from locus.core.lazy import exports

if TYPE_CHECKING:
    from locus.models.call import ChildUsage as ChildUsage
    from locus.models.call import ModelCall as ModelCall
    from locus.models.call import ModelCallResult as ModelCallResult
    from locus.models.call import failed_call as failed_call
    from locus.models.cut import estimate_tokens as estimate_tokens
    from locus.models.handoff import describe_left_out as describe_left_out
    from locus.models.handoff import get_writer as get_writer
    from locus.models.handoff import make_plain as make_plain
    from locus.models.handoff import make_portable as make_portable
    from locus.models.handoff import mark_writer as mark_writer
    from locus.models.output import OutputError as OutputError
    from locus.models.output import OutputSchema as OutputSchema
    from locus.models.output import output_schema as output_schema
    from locus.models.prices import PriceSource as PriceSource
    from locus.models.protocol import Chunk as Chunk
    from locus.models.protocol import Model as Model
    from locus.models.protocol import ModelProtocol as ModelProtocol
    from locus.models.protocol import ModelRequest as ModelRequest
    from locus.models.protocol import ModelResponse as ModelResponse
    from locus.models.protocol import ModelSettings as ModelSettings
    from locus.models.protocol import OnChunk as OnChunk
    from locus.models.protocol import OutputSpec as OutputSpec
    from locus.models.protocol import Price as Price
    from locus.models.protocol import StopReason as StopReason
    from locus.models.protocol import ToolChoice as ToolChoice
    from locus.models.protocol import get_model as get_model

_MODULES = {
    "locus.models.call": ("ModelCallResult", "ChildUsage", "ModelCall", "failed_call"),
    "locus.models.cut": ("estimate_tokens",),
    "locus.models.handoff": ("describe_left_out", "get_writer", "make_plain", "make_portable", "mark_writer"),
    "locus.models.output": ("OutputError", "OutputSchema", "output_schema"),
    "locus.models.prices": ("PriceSource",),
    "locus.models.protocol": (
        "Chunk",
        "Model",
        "ModelProtocol",
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
}

__all__ = [name for names in _MODULES.values() for name in names]
__getattr__, __dir__ = exports(__name__, _MODULES)
