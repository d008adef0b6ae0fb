"""`ServerConnection`: the connection to one server, from its start to its end, in a task of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
from attrs import evolve
from mcp import Client, MCPError
from mcp.client.subscriptions import SubscriptionLost
from mcp.types import CONNECTION_CLOSED, CallToolResult, Implementation, ToolListChangedNotification
from pydantic import ValidationError

from locus.core.errors import OutcomeUnknown
from locus.plugins import Secret
from locus.tools import ToolContext
from locus_plugin_mcp.errors import (
    McpCallCancelled,
    McpCallRefused,
    McpConnectionLost,
    McpProtocolError,
    McpResultInvalid,
    McpServerError,
    McpStartError,
    McpToolChanged,
    McpToolsChanged,
)
from locus_plugin_mcp.events import ServerReport, Status
from locus_plugin_mcp.listing import Listing, list_tools
from locus_plugin_mcp.lock import Definition, ServerLock
from locus_plugin_mcp.naming import IDEMPOTENCY_KEY
from locus_plugin_mcp.results import result_of
from locus_plugin_mcp.review import current_review
from locus_plugin_mcp.sanitize import clean_text, shorten
from locus_plugin_mcp.settings import HeaderUnusable
from locus_plugin_mcp.transports import LastWords, to_server

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectSendStream
    from mcp.types import RequestParamsMeta

    from locus_plugin_mcp.settings import McpSettings, ServerSettings

__all__ = ["ServerConnection"]

_INFO = Implementation(name="locus", version="0.1")

#: Seconds that a server gets to take leave.
LEAVING = 8.0
#: How many progress reports are queued; beyond that the oldest is dropped.
_PROGRESS = 64
_MESSAGE = 500
_STDERR = "what it wrote to its standard error:"

_Progress = tuple[float, float | None, str | None]


class ServerConnection:
    """One server, connected.

    Args:
        name: of the server.
        server: how to get there.
        settings: the bounds on what it says.
    """

    def __init__(self, name: str, server: ServerSettings, settings: McpSettings) -> None:
        self.name, self.server, self._settings = name, server, settings
        self.listing = Listing()
        self.report = ServerReport(server=name, status="connected")
        #: The file with its accepted tool definitions, or None.
        self.lock = ServerLock.of(settings.lock, name, server)
        #: Its definitions since it announced a change, and whether they have to be listed again.
        self._now: Mapping[str, Definition] | None = None
        self._is_stale = False
        #: Why it cannot be used, once that is known.
        self.error: McpServerError | None = None
        self._client: Client | None = None
        given = (*server.env.values(), *server.headers.values())
        self._words = LastWords(each.reveal() for each in given if isinstance(each, Secret) and not each.is_function)
        self._scope = anyio.CancelScope()
        self._ready, self._closing = anyio.Event(), anyio.Event()
        self._lost: anyio.Event = anyio.Event()

    # -- life ---------------------------------------------------------------------------------------

    async def wait_open(self) -> None:
        """Wait until it can be used, or is known not to: then `error` says why."""
        with anyio.move_on_after(self.server.connect_timeout):
            await self._ready.wait()
        if not self._ready.is_set():
            self._fail(
                McpStartError(
                    self.name,
                    f"did not answer within connect_timeout = {self.server.connect_timeout:g} s{self._words}; "
                    f"is {self._where} a server of MCP?",
                )
            )
            self._scope.cancel()

    def close(self) -> None:
        """Ask it to end."""
        if self._ready.is_set():
            self._closing.set()
        else:
            self._scope.cancel()

    async def __call__(self) -> None:
        """Connect, and hold the connection until it is closed; whatever fails is kept in `error`."""
        try:
            with self._scope:
                await self._connect()
        except Exception as e:  # noqa: BLE001 - a server's failure is not the run's
            cause = _single(e)
            explained = self._explain(cause)
            if explained is not cause:
                explained.__cause__ = cause
            self._fail(explained)
        finally:
            self._client = None
            self._ready.set()

    async def _connect(self) -> None:
        client = Client(
            to_server(self.server, self._words),
            client_info=_INFO,
            message_handler=self._handle_message,
            cache=None,
        )
        async with client:
            # The check of results against a schema of the server's own could be made to take for ever.
            setattr(client.session, "validate_tool_result", _as_it_is)  # noqa: B010
            self.listing = self._hold_back(await list_tools(client, self.name, self.server, self._settings))
            self.report = evolve(
                self.report, left_out=self.listing.left_out, protocol=shorten(client.protocol_version, 40)
            )
            self._client = client
            self._ready.set()
            async with anyio.create_task_group() as group:
                capabilities = client.server_capabilities.tools
                if capabilities is not None and capabilities.list_changed:
                    group.start_soon(self._watch, client)
                await self._closing.wait()
                group.cancel_scope.cancel()
            self._scope.deadline = anyio.current_time() + LEAVING

    def _hold_back(self, listing: Listing) -> Listing:
        """The list without the tools that a person has not accepted; at first use all are.

        Raises:
            McpStartError: it cannot be found out what was accepted.
            McpToolsChanged: tools have changed, and the server is required, or a command asks about them.
        """
        if self.lock is None:
            return listing
        try:
            accepted = self.lock.read()
            if accepted is None:
                self.lock.write(listing.definitions)
                self.report = evolve(self.report, first_use=True)
                return listing
        except (OSError, ValueError, RuntimeError) as e:
            raise McpStartError(
                self.name,
                f"cannot be used, because its lock {self.lock.path} cannot be read or written: {shorten(e)}; "
                f"repair it, set lock to another folder, or accept its tools again with {self._accepting}",
            ) from e
        wanted = {offer.tool for offer in listing.offers}
        changes = tuple(c for c in self.lock.changes(accepted, listing.definitions) if c.tool in wanted)
        if not changes:
            return listing
        held = {change.tool for change in changes}
        told = f"look at it, and accept it with {self._accepting}"
        review = current_review()
        if self.server.required or (review is not None and not review.is_declined(self.name, changes)):
            merged = {**accepted, **{name: listing.definitions[name] for name in held}}
            named = "; ".join(f"{shorten(c.tool, 80)!r}: {c.reason}" for c in changes)
            message = f"has tools that are held back ({named}); {told}"
            raise McpToolsChanged(self.name, message, changes, partial(self.lock.write, merged))
        self.report = evolve(self.report, held_back=changes)
        return evolve(
            listing,
            offers=tuple(offer for offer in listing.offers if offer.tool not in held),
            left_out=(*listing.left_out, *(f"{shorten(c.tool, 80)}: {c.reason}; {told}" for c in changes)),
        )

    @property
    def _accepting(self) -> str:
        return f"`locus mcp lock --accept {self.name}`"

    async def _check_unchanged(self, client: Client, tool: str) -> None:
        """Check a tool again after the server has announced that its list changed.

        Raises:
            McpToolChanged: its definition is no longer the one that the model was offered.
        """
        if self._is_stale:
            try:
                self._now = (await list_tools(client, self.name, self.server, self._settings)).definitions
            except (MCPError, McpServerError) as e:
                raise McpToolChanged(
                    self.name, f"announced that its tools changed, and cannot list them: {shorten(e)}"
                ) from e
            self._is_stale = False
        if self._now is not None and self._now.get(tool) != self.listing.definitions.get(tool):
            raise McpToolChanged(
                self.name,
                f"has changed its tool {shorten(tool, 80)!r} since this run began, so it was not called; do without it",
            )

    async def _watch(self, client: Client) -> None:
        """Listen to changes where the protocol requires a request for that."""
        try:
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._refresh()
        except (MCPError, RuntimeError, SubscriptionLost, TimeoutError, ValidationError):
            return  # the server does not report changes

    async def _handle_message(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._refresh()
        elif isinstance(message, ValidationError):
            self._words.garbage = self._words.garbage or str(message.errors()[0].get("input", ""))[:1_000]

    def _refresh(self) -> None:
        self._is_stale = True
        self.report = evolve(self.report, changed=True)

    @property
    def _where(self) -> str:
        server = self.server
        return shorten((server.url and server.url.partition("?")[0]) or server.command, 200)

    def _fail(self, error: McpServerError) -> None:
        self._client = None
        if self.error is None:
            self.error = error
            status: Status = "lost" if self._ready.is_set() else "failed"
            detail = shorten(error, 1_000)
            if status == "failed" and len(self._words.whole.splitlines()) > 1:
                # Why a program could not start is seldom in the last line that it wrote.
                error.add_note(f"{_STDERR}\n{self._words.whole}")
                detail = f"{detail}\n{_STDERR}\n{self._words.whole}"
            self.report = evolve(self.report, status=status, detail=detail)

    def _explain(self, error: Exception) -> McpServerError:
        """Any failure as one of ours, with what to do about it."""
        if isinstance(error, McpServerError):
            return error
        name, where = self.name, self._where
        if isinstance(error, FileNotFoundError | PermissionError | NotADirectoryError):
            return McpStartError(
                name, f"cannot be started: {where}: {error.strerror}; install it, or give the whole path (and a cwd)"
            )
        if isinstance(error, HeaderUnusable):
            return McpStartError(name, f"was not asked: {error}")
        if isinstance(error, httpx2.HTTPError | OSError):
            what = f"{type(error).__name__}: {shorten(error)}" if str(error) else type(error).__name__
            return McpStartError(name, f"cannot be reached at {where}: {what}; is it running?")
        if isinstance(error, MCPError):
            if error.code == CONNECTION_CLOSED:
                return McpStartError(name, f"closed the connection before it had answered{self._words}")
            return McpProtocolError(
                name, f"refuses: {shorten(self._words.hide(error.message))} (code {error.code}){self._words}"
            )
        return McpProtocolError(
            name, f"does not follow the MCP protocol: {type(error).__name__}: {shorten(error)}{self._words}"
        )

    # -- calls --------------------------------------------------------------------------------------

    async def call(self, tool: str, effect: str, arguments: dict[str, Any], ctx: ToolContext[Any]) -> Any:
        """Call a tool; the body of the Locus tool that wraps it.

        Raises:
            ToolError: the server says that it failed.
            McpToolError: the call gave no result.
            OutcomeUnknown: the caller cancelled the run. The server hears of it, and may have done its part by then.
        """
        client = self._client
        if client is None:
            raise McpConnectionLost(
                self.name, "is no longer connected; nothing was called, and its tools cannot be used in this run"
            )
        await self._check_unchanged(client, tool)
        send, receive = anyio.create_memory_object_stream[_Progress](_PROGRESS)
        answered: list[CallToolResult | Exception] = []
        with ctx.cut_scope() as cut:
            async with receive, anyio.create_task_group() as group:
                group.start_soon(self._request, client, tool, effect, arguments, ctx, send, answered)
                async for progress, total, message in receive:
                    told = clean_text(message, _MESSAGE) if message else ""
                    await ctx.emit_progress(progress, total=total, message=told)
        if cut.is_cut and not answered:
            if effect != "pure":
                raise OutcomeUnknown(tool)
            raise McpCallCancelled(self.name, "did not answer the call before the run was cancelled")
        [answer] = answered
        if isinstance(answer, Exception):
            raise answer
        return result_of(answer, self._settings.max_result_chars, self._settings.max_media_bytes)

    async def _request(
        self,
        client: Client,
        tool: str,
        effect: str,
        arguments: dict[str, Any],
        ctx: ToolContext[Any],
        progress: MemoryObjectSendStream[_Progress],
        answered: list[CallToolResult | Exception],
    ) -> None:
        """The request itself. When it is cancelled, the SDK tells the server."""
        meta: RequestParamsMeta | None = None
        if effect == "keyed":
            key: Any = {IDEMPOTENCY_KEY: ctx.idempotency_key}
            meta = key
        with progress:
            try:
                answer: CallToolResult | Exception = await client.call_tool(
                    tool, arguments, progress_callback=partial(_note, progress), meta=meta
                )
            except Exception as e:  # noqa: BLE001 - it is the call's, and raised where the call was made
                answer = self._call_error(_single(e))
            answered.append(answer)

    def _call_error(self, error: Exception) -> Exception:
        name = self.name
        if isinstance(error, MCPError) and error.code != CONNECTION_CLOSED:
            told = f"refuses the call: {clean_text(self._words.hide(error.message), 2_000)} (code {error.code})"
            return McpCallRefused(name, told, error.code)
        if isinstance(error, ValidationError):
            fault = error.errors()[0]
            at = ".".join(map(str, fault.get("loc", ())))
            return McpResultInvalid(name, f"sent an invalid tool result: {shorten(fault.get('msg'))} at {at}")
        if isinstance(
            error, MCPError | httpx2.HTTPError | anyio.ClosedResourceError | anyio.BrokenResourceError | OSError
        ):
            lost = McpConnectionLost(
                name,
                f"went away while the call was in progress{self._words}; it is unknown whether it had its "
                "effect; find out before calling it again",
            )
            if self.server.command is not None:
                self._fail(McpStartError(name, f"went away{self._words}"))
            return lost
        return McpResultInvalid(name, f"gives no result: {type(error).__name__}: {shorten(error)}")


async def _as_it_is(name: str, result: CallToolResult) -> None:
    """Take a result unchecked."""


async def _note(
    stream: MemoryObjectSendStream[_Progress], progress: float, total: float | None, message: str | None
) -> None:
    """Hand progress to the task of the call, which tells it; what comes too fast or too late is dropped."""
    if not math.isfinite(progress):
        return
    try:
        stream.send_nowait((progress, total if total is None or math.isfinite(total) else None, message))
    except (anyio.WouldBlock, anyio.ClosedResourceError, anyio.BrokenResourceError):
        return


def _single(error: Exception) -> Exception:
    """The first error that a task group has wrapped."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error
