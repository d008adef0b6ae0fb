"""The tools that plugins bring to one run, on record in its state, and how a run that is resumed finds them again.

What a model read of them it must read again word for word, in whatever process the run goes on, and a replay cannot
ask the plugins. So the list is put into ``state.metadata`` where the run begins: in a short form, because a store
writes the metadata as a whole whenever some of it changes.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve

from locus.core.errors import CheckpointError, ToolError
from locus.core.frozen import FrozenDict, frozen, thaw
from locus.core.lazy import Lazy

if TYPE_CHECKING:
    from locus.core.state import AgentState
    from locus.tools import schematool
    from locus.tools.schematool import SchemaTool
else:
    schematool = Lazy("locus.tools.schematool")

__all__ = ["SESSION_TOOLS", "SessionTool", "record", "restore"]

#: The key of the list in ``state.metadata``.
SESSION_TOOLS = "locus.tools"

# A thread may come from elsewhere, and a few compressed bytes can claim to be gigabytes.
_LONGEST = 64 * 2**20


@frozen
class SessionTool:
    """A tool and the plugin that brings it."""

    plugin: str
    tool: SchemaTool


def record(state: AgentState, brought: Iterable[SessionTool]) -> AgentState:
    """The state with these tools on record, in place of those of an earlier run on its thread."""
    known = [
        {
            "plugin": each.plugin,
            "origin": each.tool.origin,
            "name": each.tool.name,
            "description": each.tool.description,
            "parameters": thaw(each.tool.spec.parameters),
            "effect": each.tool.effect,
        }
        for each in brought
    ]
    before = state.metadata.get(SESSION_TOOLS)
    if not known:
        return state if before is None else _without(state)
    text = json.dumps(known, separators=(",", ":"))
    if before is not None and _text(before) == text:
        return state
    packed = base64.b64encode(zlib.compress(text.encode())).decode()
    return state.with_metadata(SESSION_TOOLS, {"names": [each["name"] for each in known], "tools": packed})


def _without(state: AgentState) -> AgentState:
    return evolve(state, metadata=FrozenDict({k: v for k, v in state.metadata.items() if k != SESSION_TOOLS}))


def restore(state: AgentState, live: Iterable[SessionTool] = ()) -> tuple[SchemaTool, ...]:
    """The tools on record, as the model read of them, in order.

    Args:
        state: of a run that began earlier, maybe elsewhere.
        live: what plugins bring now. A tool that is found there by plugin and origin takes the calls; each call of
            one that is not found is an error.

    Raises:
        CheckpointError: the record is damaged.
    """
    kept = state.metadata.get(SESSION_TOOLS)
    if kept is None:
        return ()
    now = {(each.plugin, each.tool.origin): each.tool for each in live}
    try:
        return tuple(_one(each, now.get((each["plugin"], each["origin"]))) for each in json.loads(_text(kept) or ""))
    except (KeyError, TypeError, ValueError) as e:
        raise CheckpointError(f"metadata[{SESSION_TOOLS!r}]", f"cannot be read: {e!r}") from e


def _text(record: Any) -> str | None:
    """The list as JSON, or None where that cannot be read."""
    try:
        unpacked = zlib.decompressobj().decompress(base64.b64decode(record["tools"], validate=True), _LONGEST)
        return unpacked.decode()
    except (KeyError, TypeError, ValueError, zlib.error):
        return None


def _one(record: Mapping[str, Any], live: SchemaTool | None) -> SchemaTool:
    tool = live if live is not None else _MissingTool(record["name"], record["origin"])
    return schematool.schema_tool(
        tool.fn,
        name=record["name"],
        description=record["description"],
        parameters=record["parameters"],
        origin=record["origin"],
        effect=record["effect"],
        timeout=tool.timeout,
        **({} if live is None else {"max_result_chars": live.max_result_chars}),
    )


@frozen
class _MissingTool:
    """Takes the place of a tool that no plugin brings any more."""

    name: str
    origin: str
    timeout: float | None = None

    async def fn(self, arguments: dict[str, Any], ctx: Any) -> Any:
        """Say so."""
        raise ToolError(
            f"the tool {self.name} is gone ({self.origin}): it was there when this run began and is not any more; "
            "nothing was called, go on without it"
        )
