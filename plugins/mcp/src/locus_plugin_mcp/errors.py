"""What goes wrong with a server, one class each.

```
LocusError
├── McpServerError       a server cannot be used: raised by a run that requires it, else reported
│   ├── McpStartError        it was never there, or never answered
│   ├── McpProtocolError     its messages are not MCP
│   └── McpToolsChanged      its tool definitions have changed since they were accepted
└── ToolError
    └── McpToolError     a call has no result, and the model reads why
        ├── McpCallCancelled     the caller cancelled the run, and the call changes nothing
        ├── McpConnectionLost    the server went away
        ├── McpToolChanged       the tool is no longer what was offered to the model
        ├── McpCallRefused       the server answers the call with an error of the protocol
        └── McpResultInvalid     the server's answer is not a tool result
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from locus.core.errors import LocusError, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from locus_plugin_mcp.lock import ToolChange

__all__ = [
    "McpCallCancelled",
    "McpCallRefused",
    "McpConnectionLost",
    "McpProtocolError",
    "McpResultInvalid",
    "McpServerError",
    "McpStartError",
    "McpToolChanged",
    "McpToolError",
    "McpToolsChanged",
]


class McpServerError(LocusError):
    """A server cannot be used.

    Args:
        server: its name in the settings.
        message: what happened, and what to do.
    """

    def __init__(self, server: str, message: str) -> None:
        self.server = server
        super().__init__(f"MCP server {server!r} {message}")


class McpStartError(McpServerError):
    """It could not be started or reached, or did not answer in time."""


class McpProtocolError(McpServerError):
    """It answered, but not as the protocol says."""


class McpToolsChanged(McpServerError):
    """Its tool definitions have changed since they were accepted, and the run requires it, or a command asks about it.

    Args:
        changes: the tools.
        accept: accepts them as they are; it may raise `OSError`.
    """

    def __init__(
        self,
        server: str,
        message: str,
        changes: tuple[ToolChange, ...],
        accept: Callable[[], None] | None = None,
    ) -> None:
        self.changes, self.accept = changes, accept
        super().__init__(server, message)


class McpToolError(ToolError):
    """A call has no result.

    Args:
        server: the server's name in the settings.
        message: what happened, for the model.
    """

    def __init__(self, server: str, message: str) -> None:
        self.server = server
        super().__init__(f"MCP server {server!r} {message}")


class McpConnectionLost(McpToolError):
    """The server went away, before the call or during it."""


class McpToolChanged(McpToolError):
    """The server has changed the tool since it was offered to the model; it was not called."""


class McpCallCancelled(McpToolError):
    """The caller cancelled the run while a call that changes nothing was in progress."""


class McpCallRefused(McpToolError):
    """The server answered the call with an error of the protocol.

    Args:
        code: the JSON-RPC code.
    """

    def __init__(self, server: str, message: str, code: int) -> None:
        self.code = code
        super().__init__(server, message)


class McpResultInvalid(McpToolError):
    """The server's answer is not a tool result."""
