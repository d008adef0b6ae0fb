"""Workers that are killed inside of activities: finished effects never run again, and `once` happens at most once."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from temporalio.client import Client

from locus.core.state import AgentState
from locus_plugin_temporal import DevServer, LocusPlugin

from .shop import DONE, Shop
from .world import PATIENCE, ending, supervised_worker

pytestmark = pytest.mark.anyio


async def _survive(server: DevServer, queue: str, folder: Path, kills: list[str]) -> None:
    (folder / "kills").write_text(",".join(kills))
    shop = Shop(folder)
    client = await Client.connect(server.address, plugins=[LocusPlugin([shop.agent()])])
    with supervised_worker(server.address, queue, folder) as died:
        state = await asyncio.wait_for(
            client.execute_workflow("Sell", "Sell.", id=queue, task_queue=queue, result_type=AgentState), PATIENCE
        )
    assert died[:-1] == [-9] * len(kills), "the process died in each of them"
    (folder / "plain").mkdir()
    expected = (await Shop(folder / "plain").agent().run("Sell.")).state
    again = [name for name in kills if name != "pay"]
    assert Counter(shop.done()) == Counter(DONE) + Counter(again), "only what was under way ran again"
    lost = [e for e in state.tool_executions if e.outcome_unknown]
    if "pay" in kills:
        (one,) = lost
        assert one.tool_name == "pay"
        assert "may have had its effect" in str(one.error)
        assert [m.role for m in state.messages] == [m.role for m in expected.messages]
        assert state.messages[-1].text == "Done."
    else:
        assert not lost
        assert ending(state) == ending(expected)


async def test_a_worker_killed_in_a_model_call_and_in_a_keyed_tool_repeats_those_alone(
    server: DevServer, queue: str, tmp_path: Path
) -> None:
    await _survive(server, queue, tmp_path, ["think 4", "ship"])


async def test_a_worker_killed_in_a_tool_that_may_run_once_does_not_run_it_again(
    server: DevServer, queue: str, tmp_path: Path
) -> None:
    await _survive(server, queue, tmp_path, ["pay"])


@pytest.mark.proof
async def test_a_worker_killed_in_every_activity_repeats_those_alone(
    server: DevServer, queue: str, tmp_path: Path
) -> None:
    await _survive(server, queue, tmp_path, list(DONE))
