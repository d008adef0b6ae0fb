"""`FilesystemSettings`: where the files of an agent are, who may touch which, and how much there may be."""

from __future__ import annotations

import os
from typing import Any

from attrs import field, frozen
from attrs.validators import instance_of

from locus.files import BackendProtocol, FileStore
from locus_kit.validators import integer, optional, strings, to_tuple
from locus_plugin_filesystem.permissions import Rule

__all__ = ["FilesystemSettings"]

_MAX_FILES, _MAX_BYTES = 10_000, 100_000_000


def _is_place(_: object, attribute: Any, value: Any) -> None:
    if value is not None and not isinstance(value, str | BackendProtocol | FileStore):
        raise ValueError(f"{attribute.name} must be 'plugin:rest' or a backend, see locus.files, got {value!r:.60}")


def _are_rules(_: object, attribute: Any, value: tuple[str, ...]) -> None:
    for text in value:
        Rule.of(text)


@frozen(kw_only=True)
class FilesystemSettings:
    """Where the files are, who may touch which, and how much there may be.

    Args:
        root: a directory on disk, made where it does not exist; the agent sees it as ``/``. A relative path counts from
            the working directory, ``~`` is the user's home.
        backend: another place: ``"plugin:rest"``, a `locus.files.BackendProtocol` or a `locus.files.FileStore`. Without
            ``root`` and ``backend`` the files are in memory and follow the conversation: they are saved with it.
        permissions: ``"ACTION PATTERN"`` or ``"ACTION read|write PATTERN"``, with ``allow``, ``deny`` or ``ask`` as
            action and a path, which is about all below it, or a pattern as of the tool ``glob``, which here matches
            names that begin with a dot as well. Both begin with ``/``. The first rule that fits counts; what none fits
            is allowed.
        max_files: how many files there may be, of those that follow the conversation.
        max_bytes: how much they may hold together. Elsewhere, the place has to have bounds of its own.
        max_depth: how many parts a path may have, in any place.
        offload_chars: a result of another tool with more characters is kept as a file in ``/large_results``, and the
            model gets its beginning and end; None = none is.
        images: whether ``read_file`` shows the model an image, of up to 3,750,000 bytes: for models that take them.

    Raises:
        ValueError: ``root`` and ``backend`` are both given, or bounds that do not hold there, or a value is out of
            range.
    """

    root: str | os.PathLike[str] | None = field(default=None)
    backend: Any = field(default=None, validator=_is_place)
    permissions: tuple[str, ...] = field(default=(), converter=to_tuple, validator=[strings, _are_rules])
    max_files: int = field(default=_MAX_FILES, validator=integer(1))
    max_bytes: int = field(default=_MAX_BYTES, validator=integer(1))
    max_depth: int = field(default=64, validator=integer(1))
    offload_chars: int | None = field(default=80_000, validator=optional(integer(10_000)))
    images: bool = field(default=False, validator=instance_of(bool))

    def __attrs_post_init__(self) -> None:
        if self.root is not None and self.backend is not None:
            raise ValueError("root and backend are both given; a directory is a backend, so give one of them")
        follows = self.root is None and self.backend is None
        if not follows and (self.max_files, self.max_bytes) != (_MAX_FILES, _MAX_BYTES):
            raise ValueError("max_files and max_bytes bound files that follow the conversation, not root or a backend")
