"""The page "from one machine to many": its commands in three terminals, and the worker that has the run is killed."""

from __future__ import annotations

import os
import re
import shlex
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest
from plugins.cli.tests.conftest import vouch
from plugins.cli.tests.warm import Warm, WarmServer

from .processes import PATIENCE, hold_third_call, until

pytestmark = pytest.mark.proof

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def block(comment: str) -> str:
    found = re.search(rf"<!-- {re.escape(comment)} -->\n```\w+\n(.*?)```", README, re.DOTALL)
    assert found is not None, comment
    return found[1]


def test_a_killed_worker_is_followed_by_the_other_one_before_the_eyes_of_a_watcher(
    here: Path, environment: dict[str, str], warm_server: WarmServer
) -> None:
    held = here / "held"
    (here / "shop.py").write_text(hold_third_call(block("file: shop.py"), held))
    # So that the page need not wait for the lease of every day.
    (here / "locus.toml").write_text("[plugins.sqlite]\nlease = 1.0\n")
    vouch(here)
    commands = [line.removeprefix("$ ") for line in block("recorded-run").splitlines()]
    with ExitStack() as stack:

        def begin(command: str, name: str) -> Warm:
            program, *arguments = shlex.split(command)
            assert program == "locus"
            nothing, out = (
                stack.enter_context(Path(os.devnull).open("rb")),
                stack.enter_context((here / name).open("wb")),
            )
            streams = (nothing.fileno(), out.fileno(), out.fileno())
            started = warm_server.start(arguments, streams=streams, folder=here, environment=environment)
            stack.callback(started.wait, PATIENCE)
            stack.callback(started.kill)
            return started

        def said(name: str) -> str:
            return (here / name).read_text(encoding="utf-8")

        workers = {name: begin(command, name) for name, command in zip(("one", "two"), commands[:2], strict=True)}
        watcher = begin(commands[2], "watcher")
        until(lambda: "<- check: order 2" in said("watcher"), f"two orders: {[said(n) for n in (*workers, 'watcher')]}")
        (has,) = [name for name in workers if " take " in said(name)]
        workers[has].send_signal(signal.SIGKILL)
        workers[has].wait(PATIENCE)
        held.unlink()

        assert watcher.wait(PATIENCE) == 0, said("watcher")

    lines = said("watcher").splitlines()
    assert lines[-1] == "ended: NoToolCalls"
    assert "goes on" in lines
    assert sum("outcome unknown" in line for line in lines) <= 1
    returned = [line for line in lines if line.startswith("<- check")]
    assert len(returned) == len(set(returned)) == 5
