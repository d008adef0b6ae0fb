"""Submitted runs: processes that are killed in any write, and two that work side by side."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from locus import Agent
from locus.core.errors import Fenced
from locus.threads import Threads
from locus_plugin_sqlite import SqliteStore
from locus_testkit import FakeClock, ScriptedModel
from locus_testkit.scripted_model import never

ROOT = Path(__file__).resolve().parents[3]

#: A process dies in every write in the proofs, and in every fifth one in the default run.
STRIDE = 5 if os.environ.get("LOCUS_PROOFS", "quick") == "quick" else 1


def kill(folder: Path, stride: int, control: str = "") -> Any:
    command = [sys.executable, "-m", "plugins.sqlite.tests.submitting", str(folder), str(stride), control]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.proof
def test_a_kill_in_any_write_leaves_one_run_that_paid_once(tmp_path: Path) -> None:
    came = kill(tmp_path, STRIDE)
    assert came["wrong"] == []
    assert came["deaths"] > 20 // STRIDE
    ends, told, submitted, _, signals = came["wanted"]
    assert (ends, told) == ([["start", "think"], ["terminate", "end"]], ["NoToolCalls"])
    assert (submitted, signals) == (1, 0)


@pytest.mark.proof
def test_an_offer_that_is_done_before_the_run_is_found_out(tmp_path: Path) -> None:
    assert kill(tmp_path, 3, "done first")["wrong"] != []


@pytest.mark.anyio
async def test_a_cancel_reaches_a_run_of_another_store(tmp_path: Path) -> None:
    model = ScriptedModel(never)
    async with SqliteStore(tmp_path / "runs.db") as here, SqliteStore(tmp_path / "runs.db") as there:
        agent = Agent(model, checkpointer=here)
        await agent.submit("Work.", thread_id="t")
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:

                async def stop() -> None:
                    while not model.requests:  # noqa: ASYNC110  # until the model is asked
                        await anyio.sleep(0.01)
                    assert await Threads(there).cancel("t", "enough") is True

                group.start_soon(stop)
                result = await agent.resume("t")
        assert result.stop_reason == "Cancelled: enough"
        assert await there.signals("t") == ()


@pytest.mark.anyio
async def test_a_worker_that_was_taken_for_dead_asks_no_model_again(tmp_path: Path) -> None:
    clock, model = FakeClock(), ScriptedModel(never, "never")
    path = tmp_path / "runs.db"
    async with SqliteStore(path, clock=clock) as here, SqliteStore(path, clock=clock) as there:
        agent = Agent(model, checkpointer=here)
        await agent.submit("Work.", thread_id="t")
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:

                async def overtake() -> None:
                    while not model.requests:  # noqa: ASYNC110  # until the model is asked
                        await anyio.sleep(0.01)
                    clock.advance(31)
                    await there.claim("t", "successor")

                group.start_soon(overtake)
                with pytest.raises(Fenced):
                    await agent.resume("t")
        assert len(model.requests) == 1


@pytest.mark.anyio
async def test_more_submits_at_once_than_fit_one_transaction_are_all_stored(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "runs.db", sync="normal") as store:
        agent = Agent(ScriptedModel(), checkpointer=store)
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for n in range(300):
                    group.start_soon(agent.submit, f"Work {n}.")
        assert (await store.depth("default")).ready == 300


@pytest.mark.anyio
async def test_taking_reads_an_index_however_much_waits(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    async with SqliteStore(path, sync="normal") as store:
        await Agent(ScriptedModel(), checkpointer=store).submit("Work.", queue="q")
    with closing(sqlite3.connect(path)) as db:
        plan = "EXPLAIN QUERY PLAN SELECT q.thread FROM queue q WHERE q.queue='q' AND q.priority=0 AND q.due<=1 "
        (detail,) = [row[3] for row in db.execute(f"{plan} ORDER BY q.due LIMIT 1")]
    assert "SEARCH q USING" in detail
    assert "queue_by_due (queue=? AND priority=? AND due<?)" in detail
