"""Which tools a server offers, once what it lists is read page by page, bounded and sorted out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen
from pydantic import ValidationError

from locus.tools import Effect
from locus_plugin_mcp.errors import McpProtocolError
from locus_plugin_mcp.lock import Definition, definition_of
from locus_plugin_mcp.sanitize import clean_text, shorten
from locus_plugin_mcp.settings import ToolLabels

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import Tool

    from locus_plugin_mcp.settings import McpSettings, ServerSettings

__all__ = ["Listing", "Offer", "list_tools"]

#: The most pages of a list; a server with more is broken.
_PAGES = 200
_LONGEST_NAME = 256
#: Keys of a schema whose text describes it, those that hold schemas by name, and those that hold none.
_DESCRIBING = frozenset({"description", "title", "$comment"})
_BY_NAME = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
_VALUES = frozenset({"const", "default", "enum", "examples"})


@frozen(kw_only=True)
class Offer:
    """One tool of a server, as the model is going to see it.

    Args:
        tool: its name on the server.
        description: bounded.
        parameters: its schema, as the server wrote it but for invisible characters in its descriptions.
        effect: what a crash in a call means.
        labels: of its results and parameters.
    """

    tool: str
    description: str
    parameters: Mapping[str, Any]
    effect: Effect
    labels: ToolLabels


@frozen
class Listing:
    """The tools that a server offers, and those that are left out, each with the reason."""

    offers: tuple[Offer, ...] = ()
    left_out: tuple[str, ...] = ()
    #: What the server says of each tool that a model could have, those included that are not wanted.
    definitions: Mapping[str, Definition] = field(factory=dict)


async def list_tools(client: Client, name: str, server: ServerSettings, settings: McpSettings) -> Listing:
    """Ask a server for its tools.

    Raises:
        McpProtocolError: it lists them without end, or one name for different tools.
    """
    tools: dict[str, Tool] = {}
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(_PAGES):
        try:
            page = await client.list_tools(cursor=cursor)
        except (ValidationError, RuntimeError) as e:
            raise McpProtocolError(name, f"sent an invalid list of tools in answer to tools/list: {shorten(e)}") from e
        for tool in page.tools:
            if tools.setdefault(tool.name, tool) != tool:
                raise McpProtocolError(
                    name,
                    f"lists two different tools named {shorten(tool.name, 80)!r}, so it is unclear which of them "
                    "a call would reach; this is a bug in the server",
                )
        cursor = page.next_cursor
        if cursor is None:
            found = {tool.name: definition_of(tool) for tool in tools.values() if _unfit(tool, settings) is None}
            return evolve(_select(tools, server, settings), definitions=found)
        if cursor in seen:
            raise McpProtocolError(name, f"gives the page {shorten(cursor, 80)!r} of its list of tools again and again")
        seen.add(cursor)
    raise McpProtocolError(name, f"lists its tools on more than {_PAGES} pages")


def _select(tools: Mapping[str, Tool], server: ServerSettings, settings: McpSettings) -> Listing:
    offers: list[Offer] = []
    left_out: list[str] = []
    for tool in tools.values():
        if not _is_wanted(tool.name, server):
            continue
        why = _unfit(tool, settings)
        if why is None and len(offers) >= settings.max_tools:
            why = f"there are more than {settings.max_tools} tools; name those that are needed in include"
        if why is not None:
            left_out.append(f"{shorten(tool.name, 80)}: {why}")
            continue
        described = tool.description or tool.title or tool.name
        offers.append(
            Offer(
                tool=tool.name,
                description=clean_text(described, settings.max_description_chars),
                parameters=_visible(tool.input_schema),
                effect=(effect := _effect(tool, trusted=server.trust)),
                labels=_labels(tool, server.find_labels(tool.name), effect),
            )
        )
    return Listing(tuple(offers), tuple(left_out))


def _visible(schema: Any) -> Any:
    """The schema without invisible characters in its descriptions; names and values stay as they are."""
    if isinstance(schema, list):
        return [_visible(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    made: dict[str, Any] = {}
    for key, each in schema.items():
        if key in _DESCRIBING and isinstance(each, str):
            made[key] = clean_text(each, len(each))
        elif key in _BY_NAME and isinstance(each, Mapping):
            made[key] = {name: _visible(part) for name, part in each.items()}
        else:
            made[key] = each if key in _VALUES else _visible(each)
    return made


def _is_wanted(name: str, server: ServerSettings) -> bool:
    if any(fnmatchcase(name, pattern) for pattern in server.exclude):
        return False
    return server.include is None or any(fnmatchcase(name, pattern) for pattern in server.include)


def _unfit(tool: Tool, settings: McpSettings) -> str | None:
    """Why a tool cannot be offered to a model, or None."""
    if not tool.name or len(tool.name) > _LONGEST_NAME:
        return f"its name has {len(tool.name)} characters"
    if tool.execution is not None and tool.execution.task_support == "required":
        return "it can be called as a task only, which this client does not do"
    try:
        form = json.dumps(tool.input_schema, allow_nan=False, ensure_ascii=False)
        form.encode()
        _visible(tool.input_schema)
    except (TypeError, ValueError, RecursionError):
        return "its schema is not JSON"
    if len(form) > settings.max_schema_chars:
        return f"its schema has {len(form):,} characters, more than max_schema_chars = {settings.max_schema_chars:,}"
    if tool.input_schema.get("type", "object") != "object":
        return "its schema must describe an object"
    return None


def _labels(tool: Tool, known: ToolLabels, effect: Effect) -> ToolLabels:
    """What is known of a tool, as far as it concerns its parameters, and what follows from what the server says.

    A tool that changes nothing may still carry something out: by default it reaches an open world, so says MCP.
    """
    properties = tool.input_schema.get("properties")
    named = [name for name in known.targets or () if isinstance(properties, Mapping) and name in properties]
    made = evolve(known, targets=named if named or known.targets == () else None)
    if made.egress is None and effect == "pure" and tool.annotations is not None:
        made = evolve(made, egress=tool.annotations.open_world_hint is not False)
    return made


def _effect(tool: Tool, *, trusted: bool) -> Effect:
    """What may happen to a call that a crash interrupted.

    MCP has no idempotency key. But ``idempotentHint`` says that the same arguments once more change nothing more, and
    the second attempt after a crash is just that: the arguments are the key. So it is ``"keyed"``, where the server is
    believed; and not ``"pure"``, for it does change something and is put on record before it is sent.
    """
    hints = tool.annotations
    if not trusted or hints is None:
        return "once"
    if hints.read_only_hint is True:
        return "pure"
    return "keyed" if hints.idempotent_hint is True else "once"
