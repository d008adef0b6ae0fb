"""What clients of OpenAI's APIs send, as a prompt of the kernel's messages.

The agent's own system prompt and tools are its owner's. Instructions of a client are text of the user. A request with
tools is refused: the agent could not run them.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from locus.core.messages import Block, MediaBlock, Message, Role, TextBlock
from locus.models import ModelSettings
from locus_plugin_serve.bodies import Body
from locus_plugin_serve.problems import Problem

__all__ = ["check_model", "read_messages", "read_settings", "refuse_fields", "refuse_unheeded"]

_DATA = re.compile(r"data:(image/[a-z0-9.+-]+);base64,(.*)", re.DOTALL | re.IGNORECASE | re.ASCII)

#: Roles of messages: whose text it is.
_ROLES = {"user": Role.USER, "system": Role.USER, "developer": Role.USER, "assistant": Role.ASSISTANT}

#: Fields that say nothing to an agent, and that clients send whatever they ask: names of their own, hints about caches.
_HARMLESS: Final = (
    "metadata",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
    "store",
    "stream_options",
    "user",
)

#: The values that fields without effect may have: those that the API documents for a request without the field.
_DEFAULTS: Final[Mapping[str, tuple[Any, ...]]] = {
    "frequency_penalty": (0,),
    "function_call": ("auto", "none"),
    "modalities": (["text"],),
    "parallel_tool_calls": (True,),
    "presence_penalty": (0,),
    "service_tier": ("auto", "default"),
    "tool_choice": ("auto", "none"),  # the client has no tools
    "top_logprobs": (0,),
    "top_p": (1,),
    "truncation": ("disabled",),
    "verbosity": ("medium",),
}

_TEXTS = ("text", "input_text", "output_text")
_IMAGES = ("image_url", "input_image")


def check_model(body: Body, name: str) -> None:
    """Insist that the model is the agent.

    Raises:
        Problem: it is another one.
    """
    asked = body.take("model", str, name)
    if asked != name:
        raise Problem(404, f"the model {asked!r:.80} does not exist; this server has {name!r}", code="model_not_found")


def refuse_fields(body: Body, fields: Sequence[str], why: str) -> None:
    """Refuse fields that would have no effect, unless they are empty or ask for what is so without them.

    Args:
        body: the request.
        fields: their names.
        why: they have none.

    Raises:
        Problem: one is there.
    """
    for name in fields:
        value, ordinary = body.take_unheeded(name), _DEFAULTS.get(name, (False,))
        if value not in (None, *ordinary) and value not in ([], {}, ""):
            raise Problem.of_input(f"{name} is not supported: {why}", param=name, code="unsupported_parameter")


def refuse_unheeded(body: Body, fields: Mapping[str, Sequence[str]]) -> None:
    """Refuse all that would have no effect, when what has one is taken.

    Args:
        body: the request.
        fields: the names of known fields by why they have no effect.

    Raises:
        Problem: there is a field that would have no effect, or an unknown one.
    """
    for why, names in fields.items():
        refuse_fields(body, names, why)
    for name in _HARMLESS:
        body.take_unheeded(name)
    body.refuse_rest()


def read_settings(body: Body, *lengths: str) -> dict[str, Any]:
    """The options of a run: those of the model that clients may choose.

    Args:
        body: the request.
        lengths: the fields that may have the longest answer in tokens.

    Raises:
        Problem: a value is out of range.
    """
    given: dict[str, Any] = {"temperature": body.take_number("temperature"), "seed": body.take("seed", int, None)}
    for name in lengths:
        if body.has(name):
            given["max_tokens"] = body.take(name, int, 0)
    chosen = {name: value for name, value in given.items() if value is not None}
    if not chosen:
        return {}
    try:
        return {"model_settings": ModelSettings(**chosen)}
    except (ValueError, TypeError) as e:
        raise Problem.of_input(str(e)) from None


def read_messages(items: Sequence[Any], param: str) -> list[Message]:
    """The conversation, ending with the user's turn.

    Args:
        items: message objects with ``role`` and ``content``.
        param: the field that has them, for errors.

    Raises:
        Problem: one cannot be used.
    """
    messages: list[Message] = []
    for number, item in enumerate(items):
        at = f"{param}[{number}]"
        named = item.get("role") if isinstance(item, dict) else None
        role = _ROLES.get(named) if isinstance(named, str) else None  # not all that JSON has can be a key
        if role is None or item.get("tool_calls") or item.get("type", "message") != "message":
            raise Problem.of_input(
                f"{at} must be a message of the role system, developer, user or assistant; the agent runs its tools by "
                "itself, so calls and their results are not taken",
                param=at,
            )
        blocks = _read_content(item.get("content"), f"{at}.content")
        if messages and messages[-1].role is role is Role.USER:
            blocks = (*messages.pop().content, *blocks)
        messages.append(Message(role, blocks))
    if not messages or messages[-1].role is not Role.USER:
        raise Problem.of_input(f"{param} must end with a message of the user", param=param)
    return messages


def _read_content(content: Any, at: str) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (TextBlock(content),)
    if not isinstance(content, list) or not content:
        raise Problem.of_input(f"{at} must be text or an array of parts, got {content!r:.80}", param=at)
    return tuple(_read_part(part, f"{at}[{number}]") for number, part in enumerate(content))


def _read_part(part: Any, at: str) -> Block:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in _TEXTS and isinstance(part.get("text"), str):
        return TextBlock(part["text"])
    if kind in _IMAGES:
        image = part.get("image_url")
        url = image.get("url") if isinstance(image, dict) else image
        if isinstance(url, str) and url.startswith("https://"):
            return MediaBlock("image", url=url)
        found = _DATA.fullmatch(url) if isinstance(url, str) else None
        if found is not None:
            try:
                return MediaBlock("image", media_type=found[1].lower(), data=base64.b64decode(found[2], validate=True))
            except binascii.Error:
                pass
    raise Problem.of_input(f"{at} must be a text, or an image with an https or a base64 data URL", param=at)
