"""The command line with the plugin's commands, and a program that has workflows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from plugins.cli.tests.conftest import Locus, environment, here, run_in_process, site, tools, warm_server
from plugins.worker.tests.conftest import place, start

__all__ = ["environment", "everything", "here", "locus", "place", "shop", "site", "start", "tools", "warm_server"]

PROGRAM = """
from locus.workflow import Workflow

wf = Workflow("review")
broken = [True]

async def look(ctx):
    if ctx.iteration < 2:
        return ctx.continue_(ctx.input())
    return ctx.complete({"looked at": ctx.input()})

def publish(ctx):
    if broken:
        broken.clear()
        raise OSError("the printer is on fire")
    return ctx.complete(["published", ctx.input()])

wf.agent_loop("look", look).with_max_iterations(5)
wf.step("publish", publish, depends_on="look")
built = wf.build()

async def rest(ctx):
    await ctx.sleep(3_600)

naps = Workflow("naps")
naps.step("rest", rest).with_retry(2)
wrong = Workflow("wrong")
"""


@pytest.fixture
def shop(here: Path) -> Iterator[Path]:
    """The program, in the working directory."""
    path = here / "shop.py"
    path.write_text(PROGRAM, encoding="utf-8")
    yield path
    sys.modules.pop("shop", None)


@pytest.fixture
def locus(here: Path, shop: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Locus:
    """Runs a command line in this process, where this plugin and those that keep threads are installed."""
    monkeypatch.syspath_prepend(here)
    return run_in_process(here, capsys, monkeypatch, {"cli", "sqlite", "workflow"})


@pytest.fixture
def everything(here: Path, shop: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Locus:
    """The same, with the commands of workers."""
    monkeypatch.syspath_prepend(here)
    return run_in_process(here, capsys, monkeypatch, {"cli", "sqlite", "worker", "workflow"})
