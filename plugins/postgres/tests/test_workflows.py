"""Workflows run on a server as they do in memory."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path

import pytest

from locus_plugin_postgres import PostgresStore
from locus_testkit import WorkflowContract

from .server import Server

_numbers = count(1)


@pytest.mark.proof
class TestWorkflows(WorkflowContract):
    #: The store has a thread and a loop of its own, so one loop around it is as good as the other.
    backends = ("asyncio",)

    #: A worker dies at every write in the proofs, and at every ninth one in the default run.
    stride = 9 if os.environ.get("LOCUS_PROOFS", "quick") == "quick" else 1

    @pytest.fixture(autouse=True)
    def _place(self, server: Server) -> None:
        self.server = server

    def open_store(self, folder: Path) -> PostgresStore:
        return PostgresStore(self.server.url(), schema=f"workflow_{next(_numbers)}", sync="normal")
