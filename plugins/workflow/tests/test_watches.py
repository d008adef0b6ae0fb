"""``locus workflow work`` in processes of their own: a loop that hangs, and what Prometheus gets to see."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plugins.cli.tests.conftest import Locus
from plugins.worker.tests.processes import Process, until
from plugins.worker.tests.test_metrics import address, get, samples

Start = Callable[..., Process]

STORE = ("--checkpointer", "runs.db")


def of_type(worker: Process, kind: str) -> list[dict[str, Any]]:
    return [line for line in tuple(worker.lines) if line.get("type") == kind]


def outcomes(url: str) -> dict[str, float]:
    """The dispatches of a worker, by what became of them."""
    found = samples(get(url)[2]).items()
    return {labels[0].partition("=")[2]: v for (name, *labels), v in found if name == "locus_worker_runs_total"}


def test_a_worker_whose_loop_hangs_loses_its_step_to_another(here: Path, start: Start, locus: Locus) -> None:
    shutil.copy(Path(__file__).with_name("stuck.py"), here)
    assert locus("workflow", "start", "stuck:wf", "--id", "r", *STORE).status == 0
    hangs = start("workflow", "work", "stuck:wf", "--stuck-after", "0.5", "--metrics")
    url = address(hangs)
    until(lambda: get(url, "/healthz")[0] == 500, "a loop that hangs")

    other = start("workflow", "work", "stuck:wf")
    until(lambda: of_type(other, "run.completed"), "the end of the run, at another worker")
    (here / "gate").touch()
    until(lambda: get(url, "/healthz")[0] == 200, "a loop that turns again")
    until(lambda: samples(get(url)[2])["locus_worker_slots_in_use",] == 0, "the end of the step that hung")

    assert not of_type(hangs, "step.completed")
    assert "the event loop has not turned for 0.5 s" in "".join(hangs.said)
    assert outcomes(url) == {"done": 1, "failed": 0, "yielded": 0, "lost": 1}
    ready = ("locus_queue_depth", "queue=workflow", "state=ready")
    until(lambda: samples(get(url)[2]).get(ready) == 0, "a new look into the queue of runs")
    shown = json.loads(locus("workflow", "show", "r", "--json", *STORE).out)
    assert (shown["status"], shown["output"]) == ("completed", other.pid)
    assert len((here / "runs").read_text(encoding="utf-8").splitlines()) == 2
