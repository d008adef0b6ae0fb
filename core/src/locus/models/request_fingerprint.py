"""What every request of a run says again: the system prompt, the tools, the settings, the output schema.

Worked out once a run, and only where a journal is kept: its fingerprint is recorded with each answer.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from attrs import astuple

from locus.core.data import encode_data
from locus.core.errors import NotSerialisable
from locus.core.fingerprint import fingerprint, short_hash
from locus.models.protocol import ModelSettings

if TYPE_CHECKING:
    from locus.core.messages import Message
    from locus.core.state import AgentState
    from locus.models.protocol import OutputSpec
    from locus.tools.registry import ToolRegistry

__all__ = ["request_fingerprint"]

_DEFAULT = ModelSettings()


def request_fingerprint(
    state: AgentState,
    system: Message | None,
    tools: ToolRegistry,
    settings: ModelSettings,
    output: OutputSpec | None,
) -> str:
    """The fingerprint of what the requests of a segment have in common.

    Args:
        state: what the segment begins with.
        system: the agent's system prompt; it counts where it is the conversation's.
        tools: the agent's tools.
        settings: the agent's, with the run's over them.
        output: the schema of the answer, or None.
    """
    parts = {}
    if system is not None and state.messages and state.messages[0] == system:
        parts["p"] = short_hash(system.text)
    if len(tools):
        parts["t"] = tools.digest
    if settings != _DEFAULT:
        parts["s"] = short_hash(_json(astuple(settings, recurse=False)))
    if output is not None:
        parts["o"] = short_hash(_json([output.name, output.schema, output.strict]))
    return fingerprint(parts)


def _json(value: Any) -> str:
    try:
        return json.dumps(encode_data(value))
    except NotSerialisable:  # a provider's extras may be anything; an address in a repr would differ in each process
        return json.dumps(value, default=lambda other: type(other).__qualname__, skipkeys=True)
