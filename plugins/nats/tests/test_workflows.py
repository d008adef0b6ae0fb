"""Workflows run on a server as they do in memory."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from locus_plugin_nats import DevServer, NatsSettings, NatsStore
from locus_testkit import WorkflowContract

_numbers = count(1)


@pytest.mark.proof
class TestWorkflows(WorkflowContract):
    #: The store has a thread and a loop of its own, so one loop around it is as good as the other.
    backends = ("asyncio",)

    #: A worker dies at every write in the proofs, and at every ninth one in the default run.
    stride = 9 if os.environ.get("LOCUS_PROOFS", "quick") == "quick" else 1

    @pytest.fixture(autouse=True)
    def streams(self, server: DevServer) -> None:
        self.url = server.url

    @asynccontextmanager
    async def open_store(self, folder: Path) -> AsyncIterator[Any]:
        store = NatsStore(self.url, NatsSettings(prefix=f"workflow{next(_numbers)}"))
        try:
            yield store
        finally:
            await store.aclose()
