"""From what a tool returned, or raised, to what the model reads. Nothing in here can fail.

A tool may return anything: the model gets text as it is, data as compact JSON, media as blocks, and of what is
too long the beginning and the end.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from locus.core.lazy import Lazy
from locus.core.messages import Block, MediaBlock, RawBlock, TextBlock
from locus.schema.text import clean_text, safe_repr, truncate
from locus.tools.definition import RESULT_CHARS, Tool

if TYPE_CHECKING:
    import msgspec
else:
    msgspec = Lazy("msgspec")

#: What the model reads when a tool returned None.
NOTHING = "(done, no result)"

#: How much of an exception's message the model gets, in characters.
ERROR_CHARS = 4_000

_CONTENT = (TextBlock, MediaBlock, RawBlock)


def result_content(value: Any, tool: Tool[..., Any] | None = None, *, whole: bool = False) -> str | tuple[Block, ...]:
    """What the model gets: text, or blocks when the tool returned blocks (alone, or in a list with texts).

    Args:
        value: what the body returned.
        tool: the tool, for its ``max_result_chars``.
        whole: it may be of any length.
    """
    limit = sys.maxsize if whole else RESULT_CHARS if tool is None else tool.max_result_chars
    if type(value) is str:
        return truncate(clean_text(value), limit)
    blocks = _blocks(value, limit)
    if not blocks:
        return result_text(value, limit)
    return tuple(
        TextBlock(truncate(clean_text(b.text), limit), extras=b.extras) if isinstance(b, TextBlock) else b
        for b in blocks
    )


def _blocks(value: Any, limit: int) -> tuple[Any, ...]:
    if isinstance(value, _CONTENT):
        return (value,)
    if type(value) in (list, tuple) and any(isinstance(each, _CONTENT) for each in value):
        return tuple(each if isinstance(each, _CONTENT) else TextBlock(result_text(each, limit)) for each in value)
    return ()


def result_text(value: Any, limit: int = RESULT_CHARS) -> str:
    """The text of a result, at most ``limit`` characters."""
    try:
        text = _text(value)
    except Exception:  # noqa: BLE001  whatever it holds, the model reads something
        text = safe_repr(value, limit)
    return truncate(clean_text(text), limit)


def _text(value: Any) -> str:
    if value is None:
        return NOTHING
    # By the base types' own methods: an enum, or a number of another library, says more than its value.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return float.__repr__(value)  # JSON has neither NaN nor infinity
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes(bytes(value))
    if isinstance(value, BaseException):
        return error_text(value)
    try:
        data = msgspec.json.encode(value, enc_hook=_encodable)
        # What is one string in JSON, such as a date, needs no quotes.
        return str(msgspec.json.decode(data)) if data.startswith(b'"') else data.decode()
    except Exception:  # noqa: BLE001  lone surrogates, cycles, keys that are not strings
        return _second_try(value)


def _bytes(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"({len(data):,} bytes of binary data)"


def _second_try(value: Any) -> str:
    try:
        plain = msgspec.to_builtins(value, enc_hook=_encodable, str_keys=True)
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    except Exception:  # noqa: BLE001  what is not data is shown as Python shows it
        return repr(value)


def _encodable(value: Any) -> Any:
    """The ``enc_hook`` of msgspec: something that it can encode, in place of something that it cannot."""
    cls = type(value)
    if hasattr(cls, "model_dump"):  # pydantic
        return value.model_dump(mode="json")
    if hasattr(cls, "tolist"):  # numpy
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Set | Sequence):
        return list(value)
    if isinstance(value, BaseException):
        return error_text(value)
    return safe_repr(value, 1_000)


def error_text(error: BaseException) -> str:
    """``"<Type>: <message>"``, never empty; a group names what it holds."""
    name = type(error).__name__
    try:
        message = str(error)
        if isinstance(error, BaseExceptionGroup):
            message += f": {'; '.join(map(error_text, error.exceptions))}"
    except Exception:  # noqa: BLE001  a message is foreign code
        message = ""
    return f"{name}: {truncate(clean_text(message).strip(), ERROR_CHARS) or 'no message'}"
