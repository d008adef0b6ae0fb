"""Images in files, by their first bytes."""

from __future__ import annotations

from locus.core.messages import MediaBlock
from locus.files import BackendError

__all__ = ["MAX_IMAGE_BYTES", "show_image"]

#: The largest image that is shown, in bytes: five million characters in base64, which every provider takes.
MAX_IMAGE_BYTES = 3_750_000

#: How each type begins; of WebP, what comes after the size in its first twelve bytes.
_BEGINNINGS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def show_image(path: str, start: bytes, *, is_wanted: bool) -> MediaBlock | None:
    """The block of a file that is not text; None unless it is an image of a type that providers take.

    Args:
        path: the file.
        start: its first bytes, one more than `MAX_IMAGE_BYTES` where it has so many.
        is_wanted: whether the model takes images.

    Raises:
        BackendError: ``not_text``: it is an image, and images are not wanted; ``too_large``.
    """
    media_type = next((found for begins, found in _BEGINNINGS.items() if start.startswith(begins)), None)
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        media_type = "image/webp"
    if media_type is None:
        return None
    if not is_wanted:
        raise BackendError("not_text", f"{path} is an image ({media_type}), and this agent reads text alone")
    if len(start) > MAX_IMAGE_BYTES:
        raise BackendError("too_large", f"{path} is an image of more than {MAX_IMAGE_BYTES:,} bytes")
    return MediaBlock("image", media_type, data=start, name=path.rpartition("/")[2])
