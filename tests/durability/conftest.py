"""Where the files of these tests lie."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_MEMORY = Path("/dev/shm")

#: Bytes that must be free there.
_ROOM = 512 * 2**20


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: a kill loses nothing that was written, so no disk need be waited for."""
    if not (os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="locus-", dir=_MEMORY) as folder:
        yield Path(folder)
