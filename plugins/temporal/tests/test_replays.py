"""Stored histories are replayed: what ran once is never decided otherwise by a later version."""

from __future__ import annotations

import builtins
import os
import socket
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from locus import Agent
from locus_plugin_temporal import LocusPlugin
from locus_plugin_temporal.effects import WorkflowEffects
from locus_testkit import ScriptedModel

from .histories import asking_agent, stored
from .shop import Sell, Shop

pytestmark = pytest.mark.anyio

_HISTORIES = list(stored())


def test_there_are_histories() -> None:
    assert {history.workflow_id for history in _HISTORIES} >= {"sell", "asking-0", "asking-1"}


async def _replay(history: WorkflowHistory, shop: Agent[Any, Any], **options: Any) -> None:
    plugin = LocusPlugin([shop, asking_agent()])
    await Replayer(workflows=[Sell], plugins=[plugin], **options).replay_workflow(history)
    assert not plugin.agents.effects, "nothing is left behind"


@pytest.mark.parametrize("history", _HISTORIES, ids=lambda history: history.workflow_id)
async def test_a_stored_history_is_replayed_without_an_effect(history: WorkflowHistory, tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    await _replay(history, shop.agent())
    assert shop.done() == []


@pytest.mark.parametrize("history", _HISTORIES, ids=lambda history: history.workflow_id)
async def test_nothing_is_read_from_outside_of_a_workflow(
    history: WorkflowHistory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def watch(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def watched(*args: Any, **options: Any) -> Any:
            if workflow.in_workflow():
                read.append(f"{name} {args[:2]}")
            return real(*args, **options)

        monkeypatch.setattr(owner, name, watched)

    for owner, name in (
        (builtins, "open"),
        (os, "open"),
        (os, "getenv"),
        (os, "stat"),
        (type(os.environ), "__getitem__"),
        (socket, "socket"),
        (subprocess, "Popen"),
    ):
        watch(owner, name)
    shop = Shop(tmp_path).agent()
    await _replay(history, shop)
    # Python reads the files of modules that the sandbox loads; they are this test's own, or the library's.
    assert [each for each in read if "site-packages" not in each and ".py" not in each and "/tests" not in each] == []


_SELL = next(history for history in _HISTORIES if history.workflow_id == "sell")


@pytest.mark.parametrize(
    "changed",
    [{"max_iterations": 1}, {"model": "renamed"}],
    ids=["iterations", "model"],
)
async def test_an_agent_that_decides_otherwise_is_found_out(changed: dict[str, Any], tmp_path: Path) -> None:
    shop = Shop(tmp_path).agent(**{k: v for k, v in changed.items() if k != "model"})
    if "model" in changed:
        shop = Agent(ScriptedModel(name="another:model"), tools=[*shop.runtime.tools], name="shop")
    with pytest.raises(Exception, match=r"[Nn]ondeterminism|not the code that was running"):
        await _replay(_SELL, shop)


async def test_a_loop_that_makes_up_ids_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorkflowEffects, "new_id", staticmethod(lambda: str(uuid.uuid4())))
    with pytest.raises(Exception, match="this is not the code that was running"):
        await _replay(_SELL, Shop(tmp_path).agent())


async def test_a_loop_that_runs_a_tool_in_the_workflow_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = WorkflowEffects.run

    async def run(self: Any, step_id: Any, fn: Any, policy: Any, digest: str) -> Any:
        return await (fn() if policy == "pure" else real(self, step_id, fn, policy, digest))

    monkeypatch.setattr(WorkflowEffects, "run", run)
    with pytest.raises(Exception, match=r"[Nn]ondeterminism"):
        await _replay(_SELL, Shop(tmp_path).agent())
