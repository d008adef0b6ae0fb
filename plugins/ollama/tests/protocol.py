"""The protocol of Ollama's ``/api/chat`` as its documentation has it, and nothing beyond: what else is sent is refused.

Written from ``docs/openapi.yaml``, ``docs/api.md`` and ``docs/capabilities/*.mdx`` of Ollama, and from the fields of
``api/types.go`` where those say less (``truncate``, ``shift``, ``tool_call_id``). No real server was to be had. A real
one is less strict: it ignores fields that it does not know.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection, Mapping
from typing import Any

__all__ = ["Refused", "check_chat"]

_NUMBER = (int, float)
_OPTIONS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("num_ctx", "num_batch", "num_gpu", "main_gpu", "num_thread", "num_keep", "seed"), (int,)),
    **dict.fromkeys(("num_predict", "top_k", "repeat_last_n", "mirostat"), (int,)),
    **dict.fromkeys(("top_p", "min_p", "typical_p", "temperature", "repeat_penalty"), _NUMBER),
    **dict.fromkeys(("presence_penalty", "frequency_penalty", "mirostat_tau", "mirostat_eta"), _NUMBER),
    **dict.fromkeys(("use_mmap", "use_mlock", "penalize_newline"), (bool,)),
    "stop": (list,),
}
_FIELDS = frozenset({"model", "messages", "tools", "format", "options", "stream", "think", "keep_alive"}) | {
    "logprobs",
    "top_logprobs",
    "truncate",
    "shift",
}
_DURATION = re.compile(r"-?((\d+(\.\d+)?)(ns|us|ms|s|m|h))+|0")
_OF_ROLES = {
    "system": frozenset({"role", "content"}),
    "user": frozenset({"role", "content", "images"}),
    "assistant": frozenset({"role", "content", "thinking", "tool_calls"}),
    "tool": frozenset({"role", "content", "images", "tool_name", "tool_call_id"}),
}


class Refused(Exception):
    """The request is not what the documentation says."""


def _need(holds: object, what: str) -> None:
    if not holds:
        raise Refused(what)


def _check_known(value: Mapping[str, Any], fields: Collection[str], what: str) -> None:
    _need(isinstance(value, Mapping), f"{what} is {value!r}")
    odd = sorted(set(value) - set(fields))
    _need(not odd, f"{what} has the unknown field {odd[:1]}")


def check_chat(body: Any, *, own: Collection[str] = ()) -> None:
    """Check a request.

    Args:
        body: decoded.
        own: further fields of assistant messages and calls, which the server has sent itself.

    Raises:
        Refused: it is none that the documentation knows.
    """
    _check_known(body, _FIELDS, "the request")
    _need(isinstance(body.get("model"), str) and body["model"], "model is required")
    _need(isinstance(body.get("messages"), list) and body["messages"], "messages are required")
    for flag in ("stream", "truncate", "shift", "logprobs"):
        _need(type(body.get(flag, True)) is bool, f"{flag} is {body.get(flag)!r}")
    _need("think" not in body or type(body["think"]) is bool or (body["think"] and type(body["think"]) is str), "think")
    _check_keep_alive(body.get("keep_alive", 0))
    _check_format(body.get("format", "json"))
    _check_options(body.get("options", {}))
    _need(isinstance(body.get("tools", []), list), "tools are no list")
    for tool in body.get("tools", []):
        _check_tool(tool)
    for message in body["messages"]:
        _check_message(message, own)
    _check_order(body["messages"])


def _check_keep_alive(value: Any) -> None:
    number = isinstance(value, _NUMBER) and not isinstance(value, bool)
    _need(number or (isinstance(value, str) and _DURATION.fullmatch(value)), f"keep_alive is {value!r}")


def _check_format(value: Any) -> None:
    _need(value == "json" or (isinstance(value, dict) and value.get("type") == "object"), f"format is {value!r}")


def _check_options(options: Any) -> None:
    _check_known(options, _OPTIONS, "options")
    for name, value in options.items():
        kinds = _OPTIONS[name]
        _need(isinstance(value, kinds) and (kinds == (bool,) or not isinstance(value, bool)), f"{name} is {value!r}")
    _need(all(isinstance(text, str) for text in options.get("stop", ())), "stop holds what is no text")


def _check_tool(tool: Any) -> None:
    _check_known(tool, ("type", "function"), "a tool")
    _need(tool.get("type") == "function", "the type of a tool is not function")
    function = tool["function"]
    _check_known(function, ("name", "description", "parameters"), "the function of a tool")
    _need(isinstance(function.get("name"), str) and function["name"], "a tool has no name")
    _need(isinstance(function.get("description", ""), str), "a description is no text")
    _need(isinstance(function.get("parameters"), dict), "the parameters of a tool are no schema")
    _need(function["parameters"].get("type") == "object", "the parameters of a tool are no object")


def _check_message(message: Any, own: Collection[str]) -> None:
    _need(isinstance(message, dict) and message.get("role") in _OF_ROLES, f"a message is {message!r:.80}")
    role = message["role"]
    _check_known(
        message, _OF_ROLES[role] | (frozenset(own) if role == "assistant" else frozenset()), f"a {role} message"
    )
    _need(isinstance(message.get("content"), str), f"the content of a {role} message is no text")
    for name in ("thinking", "tool_name", "tool_call_id"):
        _need(name not in message or (isinstance(message[name], str) and message[name]), f"{name} is no text")
    for image in message.get("images", ()):
        try:
            base64.b64decode(image, validate=True)
        except (TypeError, ValueError, binascii.Error) as e:
            raise Refused(f"illegal base64 data in an image: {e}") from e
    _need(message.get("tool_calls", [None]), "tool_calls are empty")
    for call in message.get("tool_calls", ()):
        _check_known(call, {"id", "type", "function", *own}, "a call")
        _need(isinstance(call.get("id", "x"), str) and call.get("id", "x"), "the id of a call is no text")
        _check_known(call["function"], {"index", "name", "arguments", *own}, "the function of a call")
        _need(isinstance(call["function"].get("name"), str), "a call names no function")
        _need(isinstance(call["function"].get("arguments"), dict), "the arguments of a call are no object")


def _check_order(messages: list[dict[str, Any]]) -> None:
    """Results follow the turn that asked for them, one a call, in order."""
    waiting: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] != "tool":
            _need(not waiting, f"{len(waiting)} calls have no result before the {message['role']} message")
            waiting = list(message.get("tool_calls", ()))
            continue
        _need(waiting, "a result follows no call")
        call = waiting.pop(0)
        name = message.get("tool_name")
        _need(
            name == call["function"]["name"], f"a result is of {name!r}, and the call was {call['function']['name']!r}"
        )
        _need(message.get("tool_call_id") == call.get("id"), "a result has another id than its call")
