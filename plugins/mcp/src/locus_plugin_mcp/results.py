"""From what a server answers to what the model reads. Untrusted: data, bounded, and never more than data."""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any

from locus.core.errors import ToolError
from locus.core.messages import MediaBlock, TextBlock
from locus_plugin_mcp.sanitize import clean_data, clean_result, shorten

if TYPE_CHECKING:
    from mcp.types import CallToolResult

__all__ = ["result_of"]

#: How many parts of a result are looked at.
_PARTS = 200
#: From how many characters on a text that is a part of another one is said already.
_LONG = 100
_REPEATED = object()
_ABOVE = "[as above]"
_KINDS = {"image": "image", "audio": "audio", "application/pdf": "document"}


def result_of(result: CallToolResult, max_chars: int, max_media_bytes: int) -> str | list[TextBlock | MediaBlock]:
    """The result of a call: text, or blocks if it has other content.

    Args:
        result: the server's.
        max_chars: of all texts together; of more, the model gets the beginning.
        max_media_bytes: of all media together; what is beyond is named and not shown.

    Raises:
        ToolError: the server says that the call failed; what it says of that is the message.
    """
    blocks: list[TextBlock | MediaBlock] = []
    for part in result.content[:_PARTS]:
        block = _block(part, max_media_bytes)
        if isinstance(block, MediaBlock):
            max_media_bytes -= len(block.data or b"")
        blocks.append(block)
    if len(result.content) > _PARTS:
        blocks.append(TextBlock(f"[{len(result.content) - _PARTS} more parts of this result are not shown]"))
    texts = [block.text for block in blocks if isinstance(block, TextBlock)]
    structured = clean_data(result.structured_content)
    if structured is not None and not any(_says(text, structured) for text in texts):
        rest = _drop_repeated(structured, "\n".join(texts), set(texts))
        if rest is not _REPEATED:
            form = json.dumps(rest, ensure_ascii=False, separators=(",", ":"))
            blocks.append(TextBlock(form))
            texts.append(form)
    if result.is_error:
        raise ToolError("\n".join(texts).strip() or "the server says that the call failed, but not why")
    if len(texts) == len(blocks):
        return "\n".join(texts) if texts else "(done, no result)"
    return _truncate(blocks, max_chars)


def _truncate(blocks: list[TextBlock | MediaBlock], left: int) -> list[TextBlock | MediaBlock]:
    made: list[TextBlock | MediaBlock] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            if len(block.text) > left:
                block = TextBlock(f"{block.text[:left]} [... cut]")
            left -= min(left, len(block.text))
        made.append(block)
    return made


def _drop_repeated(value: Any, said: str, texts: set[str]) -> Any:
    """Structured data without the texts that are said already; `_REPEATED` if that is all of it.

    A short text counts only where it is a whole text of the result: within one it may mean something else.
    """
    if isinstance(value, str):
        return _REPEATED if value in texts or value == said or (len(value) >= _LONG and value in said) else value
    if isinstance(value, dict):
        inner = {key: _drop_repeated(each, said, texts) for key, each in value.items()}
        parts = list(inner.values())
        kept: Any = {key: _ABOVE if each is _REPEATED else each for key, each in inner.items()}
    elif isinstance(value, list):
        parts = [_drop_repeated(each, said, texts) for each in value]
        kept = [_ABOVE if each is _REPEATED else each for each in parts]
    else:
        return value
    return _REPEATED if parts and all(each is _REPEATED for each in parts) else kept


def _says(text: str, structured: Any) -> bool:
    """Whether a text is the JSON of a value already, as servers are asked to give it for older clients."""
    if isinstance(structured, dict) and set(structured) == {"result"}:
        # How a server's library wraps a value that is not an object.
        inner = structured["result"]
        if text == inner or (not isinstance(inner, str) and _says(text, inner)):
            return True
    try:
        return bool(json.loads(text) == structured)
    except (ValueError, RecursionError):
        return False


def _block(part: Any, limit: int) -> TextBlock | MediaBlock:
    kind = part.type
    if kind == "text":
        return TextBlock(clean_result(part.text))
    if kind in ("image", "audio"):
        return _media(part.data, part.mime_type, limit, kind)
    if kind == "resource_link":
        about = [f"{shorten(part.name, 200)!r}", shorten(part.uri, 2_000)]
        about += [shorten(each, 500) for each in (part.mime_type, part.description) if each]
        return TextBlock(f"[a resource of the server: {', '.join(about)}]")
    resource = part.resource
    where = shorten(resource.uri, 2_000)
    text = getattr(resource, "text", None)
    if text is not None:
        return TextBlock(f"[{where}]\n{clean_result(text)}")
    return _media(resource.blob, resource.mime_type or "", limit, where)


def _media(data: str, mime: str, limit: int, what: str) -> TextBlock | MediaBlock:
    mime = shorten(mime, 100)
    kind = _KINDS.get(mime) or _KINDS.get(mime.partition("/")[0])
    size = len(data) * 3 // 4
    if kind is None or size > limit:
        why = "too large to be shown" if kind is not None else "nothing that can be shown"
        return TextBlock(f"[{what}: {mime or 'data'}, about {size:,} bytes, {why}]")
    try:
        return MediaBlock(kind, mime, data=base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        return TextBlock(f"[{what}: {mime}, damaged: not valid base64]")
