"""Workflows for the workers of the tests, as a user's program has them; handlers note what they do in ``loops``."""

from __future__ import annotations

import importlib
import json
import os
import random
import time
from pathlib import Path
from typing import Any

from locus.core.errors import OutcomeUnknown
from locus_plugin_workflow import Worker, Workflow
from locus_plugin_workflow.journal import StepJournal

#: How often a worker dies behind the end of an iteration that it has stored, and before the end of its offer.
_DIES = float(os.environ.get("LOOP_DIES", "0"))

_worker: Any = Worker
_dispatch = _worker._dispatch


async def _dispatch_and_die(self: Any, offer: Any, cut: Any) -> Any:
    delay = await _dispatch(self, offer, cut)
    if random.random() < _DIES:
        os._exit(9)
    return delay


_worker._dispatch = _dispatch_and_die

_journal: Any = StepJournal
_move = _journal.move


async def _move_and_die(self: Any, state: Any, *, goes_on: bool = False) -> None:
    await _move(self, state, goes_on=goes_on)
    if goes_on and random.random() < _DIES:  # else it is about to leave the step, see above
        os._exit(9)


_journal.move = _move_and_die


async def _extend_nothing(self: Any, offer: Any, cut: Any) -> None:
    """Find no lost offer."""


if "WORKER_MUTANT" in os.environ:
    importlib.import_module(os.environ["WORKER_MUTANT"])
    _worker._extend = _extend_nothing  # which else cuts what has lost its step before it writes


def _note(what: str, ctx: Any) -> None:
    about = {"what": what, "run": ctx.run_id, "iteration": ctx.iteration, "pid": os.getpid(), "at": time.time()}
    with Path("loops").open("a", encoding="utf-8") as file:
        file.write(json.dumps(about) + "\n")


def look(ctx: Any) -> Any:
    """One cycle: something that may happen once only, some time, and a checkpoint."""

    def charge() -> int:
        _note("charged", ctx)
        return int(ctx.iteration)

    _note("began", ctx)
    try:
        ctx.step("charge", charge)
    except OutcomeUnknown:
        _note("unknown", ctx)
    time.sleep(float(os.environ.get("LOOP_SECONDS", "0")))
    try:
        ctx.checkpoint(ctx.iteration)
    except BaseException:
        _note("refused", ctx)
        raise
    _note("ended", ctx)
    return ctx.continue_(ctx.iteration)


def build(iterations: int) -> Any:
    """A loop that ends by its bound alone."""
    wf = Workflow("loop")
    wf.agent_loop("look", look).with_max_iterations(iterations)
    return wf.build()


five, twenty = build(5), build(20)
