"""The tools that plugins bring to one run, on record in its state, and how a run that is resumed finds them again.

What a model read of them it must read again word for word, in whatever process the run goes on, and a replay cannot
ask the plugins. So the list is put into ``state.metadata`` where the run begins, as JSON text, in which the schemas
keep the order of their keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve

from locus.core.errors import CheckpointError, ToolError
from locus.core.frozen import FrozenDict, freeze, frozen, thaw
from locus.core.lazy import Lazy
from locus.tools.definition import SESSION_TOOLS, Bound, Tool, ToolSpec

if TYPE_CHECKING:
    from locus.core.state import AgentState
    from locus.schema import canonical
    from locus.tools import decorator
    from locus.tools.context import ToolContext
else:
    canonical = Lazy("locus.schema.canonical")
    decorator = Lazy("locus.tools.decorator")


@frozen
class SessionTool:
    """A tool and the plugin that brings it."""

    plugin: str
    tool: Tool[..., Any]


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
    if known:
        text = json.dumps(known, separators=(",", ":"))
        return state if before == text else state.with_metadata(SESSION_TOOLS, text)
    if before is None:
        return state
    return evolve(state, metadata=FrozenDict({k: v for k, v in state.metadata.items() if k != SESSION_TOOLS}))


def restore(state: AgentState, live: Iterable[SessionTool] = ()) -> tuple[Tool[..., Any], ...]:
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
        return tuple(_one(each, now.get((each["plugin"], each["origin"]))) for each in json.loads(kept))
    except (KeyError, TypeError, ValueError) as e:
        raise CheckpointError(f"metadata[{SESSION_TOOLS!r}]", f"cannot be read: {e!r}") from e


def _one(record: Mapping[str, Any], live: Tool[..., Any] | None) -> Tool[..., Any]:
    spec = ToolSpec(name=record["name"], description=record["description"], parameters=record["parameters"])
    if live is not None:
        return evolve(live, spec=spec, effect=record["effect"])
    parameters = decorator.as_tool(_take_nothing).parameters
    return _MissingTool(
        fn=_take_nothing,
        spec=spec,
        parameters=parameters,
        is_async=True,
        origin=record["origin"],
        effect=record["effect"],
    )


async def _take_nothing() -> None:
    """The body of a tool that is missing; it is not entered."""


# What a tool compares, hides and shows of itself is `Tool`'s.
@frozen(kw_only=True, eq=False, slots=False, repr=False)
class _MissingTool(Tool[..., Any]):
    """Takes the place of a tool that no plugin brings any more: each call of it is an error."""

    def bind(self, arguments: Mapping[str, Any]) -> Bound:
        return _MissingCall(self, canonical.call_key(self.name, arguments), None, arguments, freeze(arguments))


class _MissingCall(Bound):
    __slots__ = ()

    def call(self, context: ToolContext[Any] | None = None) -> Any:
        raise ToolError(
            f"the tool {self.tool.name} is gone ({self.tool.origin}): it was available when this run began and is not "
            "now; nothing was called, go on without it"
        )
