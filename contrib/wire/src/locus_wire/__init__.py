"""What model providers over HTTP share: a client with typed errors, streams, keys, and the wire forms of OpenAI."""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_wire.bodies import joined, json_bytes
    from locus_wire.calls import arguments_of, tool_call, unique_ids
    from locus_wire.client import Client, Endpoint, Outgoing, Sign, Take
    from locus_wire.keys import Key, hidden
    from locus_wire.output_tool import OutputAsTool, output_as_tool
    from locus_wire.streams import Event, Malformed, Told, json_of, shaped
    from locus_wire.strict_schemas import NotStrict, StrictRules, strict_schema

__all__ = [
    "Client",
    "Endpoint",
    "Event",
    "Key",
    "Malformed",
    "NotStrict",
    "Outgoing",
    "OutputAsTool",
    "Sign",
    "StrictRules",
    "Take",
    "Told",
    "arguments_of",
    "hidden",
    "joined",
    "json_bytes",
    "json_of",
    "output_as_tool",
    "shaped",
    "strict_schema",
    "tool_call",
    "unique_ids",
]

_MODULES = {
    "bodies": ("joined", "json_bytes"),
    "calls": ("arguments_of", "tool_call", "unique_ids"),
    "client": ("Client", "Endpoint", "Outgoing", "Sign", "Take"),
    "keys": ("Key", "hidden"),
    "output_tool": ("OutputAsTool", "output_as_tool"),
    "streams": ("Event", "Malformed", "Told", "json_of", "shaped"),
    "strict_schemas": ("NotStrict", "StrictRules", "strict_schema"),
}

__getattr__, __dir__ = exports(__name__, {f"locus_wire.{module}": names for module, names in _MODULES.items()})
