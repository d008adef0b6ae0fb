"""Any order of what workers do with the queues of a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from locus_plugin_sqlite import SqliteStore
from locus_testkit import FakeClock
from locus_testkit.queues import QueueStoreMachine

_EXAMPLES = 10 if os.environ.get("LOCUS_PROOFS", "quick") == "quick" else 300


class OnAsyncio(QueueStoreMachine):
    persistent = True

    def make_store(self, folder: Path, clock: FakeClock) -> SqliteStore:
        return SqliteStore(folder / "runs.db", sync="normal", clock=clock)


class OnTrio(OnAsyncio):
    backend = "trio"


for machine in (OnAsyncio, OnTrio):
    machine.TestCase.settings = settings(
        max_examples=_EXAMPLES, stateful_step_count=25, deadline=None, database=None, derandomize=True
    )

TestOnAsyncio = pytest.mark.proof(OnAsyncio.TestCase)
TestOnTrio = pytest.mark.proof(OnTrio.TestCase)
