"""What workflows need of a store: memory keeps it, and what is broken on purpose is found."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from locus.journal import MemoryStore, QueueStore
from locus_testkit import WorkflowContract


class TestInMemory(WorkflowContract):
    @asynccontextmanager
    async def open_store(self, folder: Path) -> AsyncIterator[QueueStore]:
        yield MemoryStore()
