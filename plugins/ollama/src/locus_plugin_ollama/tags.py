"""What a server has, from ``/api/tags``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

__all__ = ["Tag", "names_of", "tags_of"]


@frozen(kw_only=True)
class Tag:
    """A model that a server has.

    Args:
        name: with its tag, as in ``"qwen3:latest"``.
        note: how large it is, in words.
    """

    name: str
    note: str


def tags_of(data: Any) -> list[Tag]:
    """The models in an answer of ``/api/tags``, in its order.

    Raises:
        TypeError, AttributeError, KeyError: it is not a list of models.
    """
    return [_tag(each) for each in data["models"] or ()]


def names_of(data: Any) -> list[str]:
    """The names of the models; see `tags_of`."""
    return [tag.name for tag in tags_of(data)]


def _tag(data: Mapping[str, Any]) -> Tag:
    name = data.get("model") or data["name"]
    if not isinstance(name, str):
        raise TypeError("the name of a model is not text")
    details = data.get("details")
    told = details if isinstance(details, Mapping) else {}
    notes = [told.get("parameter_size"), told.get("quantization_level"), _size(data.get("size"))]
    if isinstance(host := data.get("remote_host"), str) and host:
        notes = [f"runs at {host}"]
    return Tag(name=name, note=", ".join(note for note in notes if isinstance(note, str) and note))


def _size(size: Any) -> str:
    if isinstance(size, bool) or not isinstance(size, int) or size <= 0:
        return ""
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.0f} MB"
