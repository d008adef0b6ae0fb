"""Images, clips and documents as URLs."""

from __future__ import annotations

import base64

from locus.core.errors import InputError
from locus.core.messages import MediaBlock

__all__ = ["base64_of", "data_url", "unsupported_media", "url_of"]


def url_of(block: MediaBlock) -> str:
    """Where a block can be fetched, or its bytes as a ``data:`` URL."""
    return block.url if block.url is not None else data_url(block)


def data_url(block: MediaBlock) -> str:
    """The bytes of a block as a ``data:`` URL."""
    return f"data:{block.media_type};base64,{base64_of(block)}"


def base64_of(block: MediaBlock) -> str:
    """The bytes of a block."""
    return base64.b64encode(block.data or b"").decode("ascii")


def unsupported_media(provider: str, block: MediaBlock, instead: str) -> InputError:
    """What a provider cannot be sent.

    Args:
        provider: the scheme of the provider, or `Options.writer`.
        block: what it cannot be sent.
        instead: what to do, in words.
    """
    how = "by URL" if block.url is not None else "as bytes"
    scheme = provider.partition("@")[0]
    return InputError(
        f"{scheme} does not accept {block.kind} of the type {block.media_type or 'unknown'!r} {how}; {instead}"
    )
