"""Whether an error says that the output takes nothing more. Imports nothing of the kernel."""

from __future__ import annotations

import errno
from typing import TypeGuard

__all__ = ["is_full"]

#: What writing to an output may end with that is not its reader's doing.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def is_full(error: Exception) -> TypeGuard[OSError]:
    """Whether the output takes nothing more, such as on a full disk; an error of a file would name the file."""
    return isinstance(error, OSError) and error.errno in _FULL and error.filename is None
