"""The settings of the plugin: the table ``[plugins.mcp]``, and one server each in the common ``mcpServers`` shape."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, get_args

from attrs import Attribute, field, frozen
from attrs.validators import in_

from locus.core import FrozenDict
from locus.core.labels import Reads
from locus.plugins import Secret, redact
from locus_kit.validators import integer, optional, seconds
from locus_wire.headers import find_header_fault

__all__ = ["HeaderUnusable", "McpSettings", "ServerSettings", "ToolLabels", "check_header"]

_LONGEST_NAME = 40


def _texts(value: Iterable[str]) -> tuple[str, ...]:
    if isinstance(value, str):
        raise ValueError(f"expected a list of strings, got {value!r}")
    return tuple(value)


def _patterns(value: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if value is None else _texts(value)


def _to_secrets(value: Mapping[str, str | Secret]) -> FrozenDict[str, Secret]:
    # A key that was pasted into the file is as secret as one that was not.
    return FrozenDict({name: each if isinstance(each, Secret) else Secret(each) for name, each in value.items()})


def _sendable(_: object, attribute: Attribute[Any], value: Mapping[str, Secret]) -> None:
    for name, secret in value.items():
        # A function is asked for each request, and what it gives is looked at then.
        check_header(name, "" if secret.is_function else secret.reveal())


class HeaderUnusable(ValueError):
    """A header cannot be sent; the text does not show its value."""


def check_header(name: str, value: str) -> None:
    """Reject a header that cannot be sent, because the error of an HTTP client would show its value.

    Raises:
        HeaderUnusable: it has letters that no header may have.
    """
    if fault := find_header_fault(name, value):
        raise HeaderUnusable(fault)


def _servers(value: Mapping[str, Any]) -> FrozenDict[str, Any]:
    return FrozenDict(value)


def _check_names(_: object, attribute: Attribute[Any], value: Mapping[str, Any]) -> None:
    for name in value:
        if not name.strip() or len(name) > _LONGEST_NAME:
            raise ValueError(f"the name of a server must have 1 to {_LONGEST_NAME} characters, got {name!r:.80}")


def _lockable(_: object, attribute: Attribute[Any], value: object) -> None:
    if not isinstance(value, bool) and not (isinstance(value, str) and value.strip()):
        raise ValueError(f"lock must be a folder, true or false, got {value!r}")


@frozen(kw_only=True)
class ToolLabels:
    """What the user knows about a server's tools, for plugins that decide about calls; the server has no say.

    Args:
        reads: whose words their results may hold: ``"untrusted"``, ``"own"`` or ``"user"``, as of `locus.tool`.
        targets: the parameters that say whom or what a call reaches; None = all, but for a tool that changes nothing
            and sends nothing out. A tool that has none of these parameters counts as one without a list.
        egress: whether a call sends something out; None = if a parameter is a URL, or the server says that the tool
            reaches beyond it.
    """

    reads: Reads = field(default="untrusted", validator=in_(get_args(Reads)))
    targets: tuple[str, ...] | None = field(default=None, converter=_patterns)
    egress: bool | None = None


_NO_LABELS = ToolLabels()


@frozen(kw_only=True)
class ServerSettings:
    """One server: a ``command`` to start, or a ``url`` to reach.

    Args:
        command: the program, which speaks MCP over its standard input and output.
        args: its arguments.
        env: environment variables beside a few harmless ones (``PATH``, ``HOME``, ...); nothing else of this process's
            environment reaches it. A value is text or a secret, and never shown.
        cwd: the folder it runs in; None = this process's.
        url: of a server that speaks streamable HTTP.
        headers: of every request to it, such as ``Authorization``; text or secrets, never shown. The function of a
            secret is asked for each request.
        type: ``"stdio"``, or ``"http"`` (also spelled ``"streamable-http"``); None = by what else is given.
        trust: believe what it says of its own tools: a read-only one may run again after a crash, and so may one that
            calls itself idempotent. Otherwise a call that a crash interrupted is never repeated.
        include: patterns (``*``, ``?``, ``[...]``) of the names of its tools that are used; None = all.
        exclude: patterns of those that are not; they win.
        labels: by patterns of the names of its tools, what is known of their results and parameters; the first one that
            fits counts. Otherwise results are untrusted, and every parameter of a tool with an effect is a target.
        timeout: seconds one call may take; None = as long as the run.
        connect_timeout: seconds until it has started, answered and listed its tools.
        required: a run without it does not begin; otherwise it begins, and its report says what is missing.
        disabled: leave it out.
    """

    command: str | None = None
    args: tuple[str, ...] = field(default=(), converter=_texts)
    env: Mapping[str, str | Secret] = field(factory=dict, converter=_to_secrets)
    cwd: Path | None = None
    url: str | None = field(default=None, repr=lambda url: repr(None if url is None else redact(url)))
    headers: Mapping[str, str | Secret] = field(factory=dict, converter=_to_secrets, validator=_sendable)
    type: Literal["stdio", "http", "streamable-http", "streamableHttp", "sse"] | None = None
    trust: bool = False
    include: tuple[str, ...] | None = field(default=None, converter=_patterns)
    exclude: tuple[str, ...] = field(default=(), converter=_texts)
    labels: Mapping[str, ToolLabels] = field(factory=dict, converter=_servers)
    timeout: float | None = field(default=60.0, validator=optional(seconds))
    connect_timeout: float = field(default=30.0, validator=seconds)
    required: bool = False
    disabled: bool = False

    def find_labels(self, tool: str) -> ToolLabels:
        """What is known of one of its tools."""
        return next((each for pattern, each in self.labels.items() if fnmatchcase(tool, pattern)), _NO_LABELS)

    def __attrs_post_init__(self) -> None:
        if self.type == "sse":
            raise ValueError('the type "sse" is an old transport; use the server\'s streamable HTTP address')
        if (self.command is None) == (self.url is None):
            raise ValueError("a server must have either a command or a url")
        if self.command is not None and (self.headers or self.type not in (None, "stdio")):
            raise ValueError("headers and any type but stdio need a url, not a command")
        if self.url is not None:
            if self.args or self.env or self.cwd is not None or self.type == "stdio":
                raise ValueError("args, env, cwd and the type stdio need a command, not a url")
            if not self.url.startswith(("http://", "https://")):
                raise ValueError("url must start with http:// or https://")
            if not self.url.isprintable() or any(map(str.isspace, self.url)):
                raise ValueError("url must not have blanks, line breaks or control characters")


@frozen(kw_only=True)
class McpSettings:
    """What servers there are, and how much of what they say is taken.

    Args:
        servers: by name; the names of their tools begin with it.
        mcpServers: the same, as other programs spell it.
        file: a JSON file with ``{"mcpServers": {...}}``; its servers come beside the others. A relative path counts
            from the working directory.
        lock: the folder with the accepted tool definitions of the servers: a tool that is new or differs is held back.
            True = in the user's state folder; False = accept any definitions.
        max_tools: how many tools of one server are used; the rest is left out and reported.
        max_description_chars: how much of a tool's description the model gets.
        max_schema_chars: a tool whose schema is longer (as JSON) is left out and reported.
        max_result_chars: how much of a result the model gets; of more, the beginning and the end.
        max_media_bytes: an image, a sound or a document that is larger is named in place of being shown.
    """

    servers: Mapping[str, ServerSettings] = field(factory=dict, converter=_servers, validator=_check_names)
    mcpServers: Mapping[str, ServerSettings] = field(factory=dict, converter=_servers, validator=_check_names)  # noqa: N815
    file: Path | None = None
    lock: str | bool = field(default=True, validator=_lockable)
    max_tools: int = field(default=100, validator=integer(1))
    max_description_chars: int = field(default=2_000, validator=integer(200))
    max_schema_chars: int = field(default=20_000, validator=integer(200))
    max_result_chars: int = field(default=100_000, validator=integer(200))
    max_media_bytes: int = field(default=5_000_000, validator=integer(1))

    def __attrs_post_init__(self) -> None:
        twice = sorted(set(self.servers) & set(self.mcpServers))
        if twice:
            raise ValueError(f"servers and mcpServers both have {', '.join(map(repr, twice))}; give each one name")
