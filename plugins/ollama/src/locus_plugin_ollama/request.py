"""The body of ``/api/chat`` for a request: what stays the same comes first, byte by byte."""

from __future__ import annotations

from typing import Any

from attrs import evolve, frozen

from locus.core import thaw
from locus.models import ModelRequest, ModelResponse
from locus.tools import ToolSpec
from locus_plugin_ollama.errors import PROVIDER, CannotSend
from locus_plugin_ollama.messages import encode_messages
from locus_plugin_ollama.settings import OllamaSettings
from locus_wire import OutputAsTool, join_fields, json_bytes, output_as_tool

__all__ = ["Plan", "body_of", "plan"]

#: Fields of the body that come from elsewhere than from extras.
_OURS = frozenset({"model", "messages", "tools", "stream"})


@frozen(kw_only=True)
class Plan:
    """What is sent, and how the answer is read.

    Args:
        request: to send.
        forced: the way back, where a typed answer is asked for as a call.
    """

    request: ModelRequest
    forced: OutputAsTool | None = None

    @property
    def final(self) -> str | None:
        """The tool whose arguments are the answer, or None."""
        return None if self.forced is None else self.forced.tool.name

    def read(self, response: ModelResponse) -> ModelResponse:
        """The response that the asker expects."""
        return response if self.forced is None else self.forced.read(response)


def plan(request: ModelRequest) -> Plan:
    """How to ask.

    The server constrains everything that the model writes to a schema, calls included. So with tools on offer a typed
    answer is one more tool.

    Raises:
        CannotSend: the request forces a tool call.
    """
    choice = request.settings.tool_choice
    if choice == "none":
        settings = evolve(request.settings, tool_choice=None)
        request = evolve(request, tools=(), settings=settings)
    elif choice not in (None, "auto"):
        raise CannotSend(
            f"tool_choice must not be {choice!r}: this server cannot make a model call a tool; use 'auto' or 'none', "
            "and ask for the call in the prompt"
        )
    if request.output is None or not request.tools:
        return Plan(request=request)
    forced = output_as_tool(request, force=False)
    return Plan(request=forced.request, forced=forced)


def body_of(request: ModelRequest, model: str, settings: OllamaSettings, *, stream: bool) -> bytes:
    """The body.

    Args:
        request: of a `Plan`.
        model: as the server names it.
        settings: of the plugin.
        stream: whether the answer is to come in lines.

    Raises:
        CannotSend: the request holds what the protocol cannot say.
        InputError: a setting has no JSON form.
    """
    extras = thaw(request.settings.extras)
    wrong = sorted(_OURS & extras.keys())
    if wrong:
        raise CannotSend(f"extras of ModelSettings hold {wrong[0]!r}, which comes from the request itself")
    fields: dict[str, Any] = {"model": model, **_plain(settings), **extras}
    options = {**_options(settings), **extras.get("options", {}), **_sampling(request)}
    if options:
        fields["options"] = options
    if request.output is not None:
        fields["format"] = thaw(request.output.schema)
    fields["stream"] = stream
    lists = {
        "messages": encode_messages(request.messages),
        "tools": [spec.wire(PROVIDER, _tool) for spec in request.tools],
    }
    return join_fields(fields, lists)


def _plain(settings: OllamaSettings) -> dict[str, Any]:
    fields: dict[str, Any] = {"think": settings.think, "keep_alive": settings.keep_alive}
    if settings.overflow == "error":
        fields |= {"truncate": False, "shift": False}
    return {name: value for name, value in fields.items() if value is not None}


def _options(settings: OllamaSettings) -> dict[str, Any]:
    own: dict[str, Any] = {
        "num_ctx": settings.num_ctx,
        "num_predict": settings.max_tokens,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "top_k": settings.top_k,
        "seed": settings.seed,
        "stop": list(settings.stop) or None,
    }
    return {**thaw(settings.options), **{name: value for name, value in own.items() if value is not None}}


def _sampling(request: ModelRequest) -> dict[str, Any]:
    settings = request.settings
    asked: dict[str, Any] = {
        "num_predict": settings.max_tokens,
        "temperature": settings.temperature,
        "seed": settings.seed,
        "stop": list(settings.stop) or None,
    }
    return {name: value for name, value in asked.items() if value is not None}


def _tool(spec: ToolSpec) -> bytes:
    function = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return json_bytes({"type": "function", "function": function})
