"""What model providers over HTTP share: a client with typed errors, streams, keys, and the wire forms of OpenAI."""

from typing import TYPE_CHECKING

from locus.plugin import exports

if TYPE_CHECKING:
    from locus_wire.bodies import join_fields, json_bytes
    from locus_wire.calls import arguments_of, tool_call, unique_ids
    from locus_wire.client import Client, Endpoint, Outgoing, Sign, Take
    from locus_wire.keys import Key, hide_secrets
    from locus_wire.output_tool import OutputAsTool, output_as_tool
    from locus_wire.streams import ErrorInAnswer, Event, Malformed, check_shape, json_of
    from locus_wire.strict_schemas import NotStrict, StrictRules, strict_schema

__all__ = [
    "Client",
    "Endpoint",
    "ErrorInAnswer",
    "Event",
    "Key",
    "Malformed",
    "NotStrict",
    "Outgoing",
    "OutputAsTool",
    "Sign",
    "StrictRules",
    "Take",
    "arguments_of",
    "check_shape",
    "hide_secrets",
    "join_fields",
    "json_bytes",
    "json_of",
    "output_as_tool",
    "strict_schema",
    "tool_call",
    "unique_ids",
]

_MODULES = {
    "bodies": ("join_fields", "json_bytes"),
    "calls": ("arguments_of", "tool_call", "unique_ids"),
    "client": ("Client", "Endpoint", "Outgoing", "Sign", "Take"),
    "keys": ("Key", "hide_secrets"),
    "output_tool": ("OutputAsTool", "output_as_tool"),
    "streams": ("Event", "Malformed", "ErrorInAnswer", "json_of", "check_shape"),
    "strict_schemas": ("NotStrict", "StrictRules", "strict_schema"),
}

__getattr__, __dir__ = exports(__name__, {f"locus_wire.{module}": names for module, names in _MODULES.items()})
