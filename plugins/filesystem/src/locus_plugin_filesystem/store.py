"""`StoreBackend`: files in one SQLite file, such as an agent's long-term memory."""

from __future__ import annotations

import os

from locus_kit.sqlite_files import SqliteFiles
from locus_plugin_filesystem.operations import StoreFiles

__all__ = ["StoreBackend"]


class StoreBackend(StoreFiles):
    """Files in an SQLite file, shared by any number of threads and processes: what one run keeps, the next one finds.

    An edit compares versions: of two that change a file at the same time, the second gets ``conflict`` and reads it
    again. A search asks an index first which files can have what it looks for.

    Args:
        path: the SQLite file. Its folder must exist.
        namespace: files of different namespaces know nothing of each other: one per user, or per agent.
        busy_timeout: seconds to wait for a write of another process.

    Raises:
        ConfigError: the path is not one of a file.
    """

    def __init__(self, path: str | os.PathLike[str], *, namespace: str = "", busy_timeout: float = 10.0) -> None:
        super().__init__(SqliteFiles(path, namespace=namespace, busy_timeout=busy_timeout))
