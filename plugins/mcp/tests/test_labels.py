"""Labels of a server's tools: whose words they bring, and which parameters say whom a call reaches."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.types import ListToolsResult, Tool, ToolAnnotations

from locus_plugin_mcp import McpSettings, ServerSettings, ToolLabels
from locus_plugin_mcp.listing import Offer, list_tools

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}, "text": {"type": "string"}}}
READ_ONLY = ToolAnnotations(read_only_hint=True)
CLOSED = ToolAnnotations(read_only_hint=True, open_world_hint=False)


class Client:
    """Lists one tool."""

    def __init__(self, hints: ToolAnnotations | None) -> None:
        self.tool = Tool(name="send", input_schema=SCHEMA, annotations=hints)

    async def list_tools(self, *, cursor: str | None) -> ListToolsResult:
        return ListToolsResult(tools=[self.tool])


async def offer(hints: ToolAnnotations | None = None, **server: Any) -> Offer:
    settings = ServerSettings(command="x", **server)
    return (await list_tools(Client(hints), "s", settings, McpSettings())).offers[0]  # type: ignore[arg-type]


async def test_a_tool_is_untrusted_and_names_no_targets_unless_the_configuration_says_so() -> None:
    assert (await offer()).labels == ToolLabels()
    assert (await offer(READ_ONLY)).labels == ToolLabels()


@pytest.mark.parametrize(
    ("targets", "found"), [(["to"], ("to",)), (["to", "gone"], ("to",)), (["gone"], None), ([], ())]
)
async def test_targets_are_those_that_the_tool_has(targets: list[str], found: tuple[str, ...] | None) -> None:
    labels = {"other": ToolLabels(reads="user"), "se*": ToolLabels(reads="own", targets=targets)}
    assert (await offer(labels=labels)).labels == ToolLabels(reads="own", targets=found)


@pytest.mark.parametrize(("hints", "egress"), [(READ_ONLY, True), (CLOSED, False), (None, None)])
async def test_a_read_only_tool_of_a_trusted_server_sends_out_unless_it_says_that_it_does_not(
    hints: ToolAnnotations | None, egress: bool | None
) -> None:
    assert (await offer(hints, trust=True)).labels.egress is egress
    assert (await offer(hints, trust=True, labels={"*": ToolLabels(egress=False)})).labels.egress is False


def test_a_level_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="reads"):
        ToolLabels(reads="trusted")  # type: ignore[arg-type]
