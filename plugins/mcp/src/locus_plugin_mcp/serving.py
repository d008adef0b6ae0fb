"""Tools of Locus served over MCP: to whatever program speaks it, over stdio or over HTTP on this machine.

A call enters the tool's body and nothing else: it has no run, no journal and no model, and an agent's hooks are not
asked. Who must not call a tool must not be served it.
"""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from importlib.metadata import version
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import mcp.types as types
import uvicorn
from attrs import define, field
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

from locus import Agent, Interrupt, Option
from locus.core import thaw
from locus.core.errors import ConfigError, ToolError
from locus.core.messages import MediaBlock
from locus.core.state import AgentState
from locus.plugin import Stash
from locus.tools import ArgumentError, Bound, Tool, ToolContext, ToolRegistry, enter_body, error_text, result_content
from locus_plugin_mcp.naming import IDEMPOTENCY_KEY

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from locus.models import Model, ModelRequest, ModelResponse
    from locus.plugin import Directive, Event

__all__ = ["http_app", "make_server", "serve", "server_of"]

T = TypeVar("T")

#: Where the HTTP server answers.
PATH = "/mcp"


def server_of(source: object, *, name: str = "", deps: Any = None) -> Server[Any]:
    """The tools as a server of the SDK, for transports of its own.

    Args:
        source: an agent, whose own tools are served, or what ``Agent(tools=...)`` takes.
        name: what it is called; the agent's name, or ``"locus"``.
        deps: what tools get as ``ctx.deps``.

    Raises:
        ToolDefinitionError: an item is not a tool.
        ConfigError: no tools are given.
    """
    return make_server(source, lambda ctx: deps, name=name)


def make_server(source: object, deps_of: Callable[[ServerRequestContext[Any]], Any], *, name: str = "") -> Server[Any]:
    """The same with dependencies that are of each call.

    Args:
        source: as for `server_of`.
        deps_of: what the tool of a call gets as ``ctx.deps``.
        name: as for `server_of`.

    Raises:
        ToolDefinitionError, ConfigError: as for `server_of`.
    """
    agent = source if isinstance(source, Agent) else None
    registry = ToolRegistry.of(source) if agent is None else agent.runtime.tools
    if not len(registry):
        raise ConfigError(f"{source!r:.80} has no tools of its own; there is nothing to serve")
    listed = types.ListToolsResult(tools=[_describe(tool) for tool in registry])

    async def on_list(ctx: ServerRequestContext[Any], params: object) -> types.ListToolsResult:
        return listed

    async def on_call(ctx: ServerRequestContext[Any], params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = registry.get(params.name)
        if tool is None:
            return _error_result(registry.unknown(params.name))
        bound = tool.bind(params.arguments or {})
        if isinstance(bound, ArgumentError):
            return _error_result(f"ArgumentError: {bound}")
        return await _call(tool, bound, ctx, deps_of(ctx))

    return Server(
        name or (agent.name if agent is not None else None) or "locus",
        version=version("locus-core"),
        on_list_tools=on_list,
        on_call_tool=on_call,
    )


def http_app(source: object, *, name: str = "", deps: Any = None) -> Starlette:
    """The tools as an ASGI application that answers at ``/mcp``, to callers of this machine.

    Raises:
        ConfigError: as for `server_of`.
    """
    return server_of(source, name=name, deps=deps).streamable_http_app(streamable_http_path=PATH)


async def serve(
    source: object,
    *,
    name: str = "",
    deps: Any = None,
    port: int | None = None,
    host: str = "127.0.0.1",
    started: Callable[[str], object] | None = None,
) -> None:
    """Serve tools until the client leaves (stdio) or the task is cancelled (HTTP).

    Args:
        source: an agent, whose own tools are served, or what ``Agent(tools=...)`` takes.
        name: what the server is called.
        deps: what tools get as ``ctx.deps``.
        port: of HTTP, 0 for a free one; None = this process's standard input and output.
        host: a loopback address. Requests are not authenticated, so other machines must not reach it.
        started: called with the address, once the server answers.

    Raises:
        ConfigError: the host is not a loopback address, or no tools are given.
        OSError: the port is taken.
    """
    server = server_of(source, name=name, deps=deps)
    if port is None:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
        return
    if not _is_loopback(host):
        raise ConfigError(f"host must be a loopback address such as 127.0.0.1, got {host!r}")
    app = server.streamable_http_app(streamable_http_path=PATH, host=host)
    config = uvicorn.Config(app, log_level="warning", lifespan="on", timeout_graceful_shutdown=2)
    listening = _listening(host, port)
    try:
        if started is not None:
            at = f"[{host}]" if ":" in host else host
            started(f"http://{at}:{listening.getsockname()[1]}{PATH}")
        await uvicorn.Server(config).serve(sockets=[listening])
    finally:
        listening.close()


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _describe(tool: Tool[..., Any]) -> types.Tool:
    schema: Any = thaw(tool.spec.parameters)
    # "keyed" says nothing here: a client that knows no key would have its effect twice.
    hints = types.ToolAnnotations(read_only_hint=True) if tool.effect == "pure" else None
    return types.Tool(name=tool.name, description=tool.description, input_schema=schema, annotations=hints)


async def _call(tool: Tool[..., Any], bound: Bound, ctx: ServerRequestContext[Any], deps: Any) -> types.CallToolResult:
    context: ToolContext[Any] | None = None
    if tool.context_parameter is not None:
        meta: Mapping[str, Any] = ctx.meta or {}
        key, own = meta.get(IDEMPOTENCY_KEY), str(uuid4())
        context = _Context(deps, ctx, own, own, key if isinstance(key, str) else own)
    try:
        value = await enter_body(tool, bound, context, seconds=tool.timeout)
    except (Exception, SystemExit, Interrupt) as e:  # noqa: BLE001 - whatever a body raises is its call's error
        return _error_result(error_text(e))
    content = result_content(value, tool)
    blocks = [content] if isinstance(content, str) else content
    structured = _read_object(content) if isinstance(value, Mapping) else None
    return types.CallToolResult(content=[_content(block) for block in blocks], structured_content=structured)


def _read_object(content: object) -> dict[str, Any] | None:
    """The same as the text of a result, for programs; None where the text was cut."""
    try:
        found = json.loads(content) if isinstance(content, str) else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _error_result(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)


def _content(block: Any) -> types.ContentBlock:
    if isinstance(block, MediaBlock):
        kind = block.media_type or "application/octet-stream"
        if block.data is None:
            return types.ResourceLink(type="resource_link", name=block.name or block.kind, uri=str(block.url))
        data = base64.b64encode(block.data).decode()
        if block.kind == "image":
            return types.ImageContent(type="image", data=data, mime_type=kind)
        if block.kind == "audio":
            return types.AudioContent(type="audio", data=data, mime_type=kind)
        blob = types.BlobResourceContents(uri=f"locus:{block.name or block.kind}", mime_type=kind, blob=data)
        return types.EmbeddedResource(type="resource", resource=blob)
    text = block if isinstance(block, str) else getattr(block, "text", None)
    return types.TextContent(type="text", text=text if text is not None else repr(block))


@define
class _Context(ToolContext[Any]):
    """A tool's context outside of a run."""

    deps: Any
    _ctx: ServerRequestContext[Any]
    run_id: str
    call_id: str
    idempotency_key: str
    thread_id: str = ""
    deadline: float | None = None
    state: AgentState = field(factory=AgentState)
    stash: Stash = field(factory=Stash)
    _told: float = 0.0

    def interrupt(self, question: str, *, options: Sequence[str | Option] = ()) -> Any:
        """Refuse: outside of a run no person can be asked."""
        raise ToolError(f"this tool asks a person, which is not possible over MCP: {question}")

    async def step(self, name: str, fn: Callable[[], Awaitable[T]], *, effect: str = "once") -> T:
        """Run it: without a journal it is never resumed."""
        return await fn()

    async def run_child(
        self, agent: Any, prompt: Any, *, budget: Any = None, without_guards: Collection[str] = ()
    ) -> Any:
        """Run the agent outside of a run."""
        if budget is not None:
            raise ToolError("this tool limits the budget of a child run, and over MCP it has no run to take it from")
        return await agent.run(prompt)

    async def call_model(
        self, request: ModelRequest, *, model: Model | str | None = None, purpose: str
    ) -> ModelResponse:
        """Ask a model that the tool brings: outside of a run it has no other."""
        if model is None or isinstance(model, str):
            raise ToolError(f"this tool asks a model ({purpose}), and over MCP it has no run to take it from")
        return await model.complete(request, None)

    async def emit(self, event: Event) -> Directive | None:
        """Do nothing: an event has no listeners outside of a run."""
        return None

    async def emit_progress(
        self, progress: float | None = None, *, total: float | None = None, message: str = ""
    ) -> None:
        """Notify the client, if it asked for progress; without a number, each time counts one."""
        self._told = self._told + 1 if progress is None else progress
        await self._ctx.session.report_progress(self._told, total, message or None)


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen()  # before the address is passed on: a client that comes at once waits, and is not refused
    except OSError:
        made.close()
        raise
    return made
